/* Files that the launcher sends before it starts ranks: the program, libraries beside it.
 *
 * They go into a directory of this agent alone (hosts may share a home), which the keeper removes
 * with the job. Writing blocks the loop, which has nothing else to do: no rank runs yet. A thread
 * tells launcher and keeper meanwhile that the agent is alive (standby.h). */
#ifndef DT_AGENT_FILES_H
#define DT_AGENT_FILES_H

#include "launcher/agent/io/channel.h"
#include "launcher/agent/keeper.h"

struct dt_files;

/* blocked: the loop has waited for a file system for so many ms, and is alive. It is called by
 * another thread, which may use the channel. */
struct dt_files *dt_files_create(struct dt_channel *channel, struct dt_keeper *keeper,
                                 void (*blocked)(void *arg, uint64_t ms), void *arg);
/* Each file that begins is answered with one FILE_DONE, at its last byte or its first error. */
void dt_files_begin(struct dt_files *f, const struct dt_msg_file *m);
void dt_files_data(struct dt_files *f, const struct dt_msg_file_data *m);
/* Leaves no thread, for the process is about to fork. */
void dt_files_rest(struct dt_files *f);

#endif
