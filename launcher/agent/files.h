/* Files that the launcher sends before it starts ranks: the program, libraries beside it.
 *
 * They go into a directory of this agent alone (hosts may share a home), which the keeper removes
 * with the job. Writing blocks the loop, which has nothing else to do: no rank runs yet, and a file
 * system that hangs looks to launcher and keeper like a host that hangs. */
#ifndef DT_AGENT_FILES_H
#define DT_AGENT_FILES_H

#include "launcher/agent/channel.h"
#include "launcher/agent/keeper.h"

struct dt_files;

struct dt_files *dt_files_create(struct dt_channel *channel, struct dt_keeper *keeper);
/* Each file that begins is answered with one FILE_DONE, at its last byte or its first error. */
void dt_files_begin(struct dt_files *f, const struct dt_msg_file *m);
void dt_files_data(struct dt_files *f, const struct dt_msg_file_data *m);

#endif
