/* The files that the launcher sends before it starts ranks: the program and libraries beside it.
 *
 * They go into a directory of this agent alone (hosts may share a home), which the keeper removes
 * with the job. Writing blocks the loop, which has nothing else to do, because no rank runs yet.
 * Meanwhile a thread reports to launcher and keeper that the agent is alive (standby.h). */
#ifndef DT_AGENT_IO_FILES_H
#define DT_AGENT_IO_FILES_H

#include "launcher/agent/io/channel.h"
#include "launcher/agent/io/standby.h"
#include "launcher/agent/keeper.h"

struct dt_files;

/* The thread of standby may use the channel. */
struct dt_files *dt_files_create(struct dt_channel *channel, struct dt_keeper *keeper,
                                 struct dt_standby *standby);
/* Begins a file. Sends one FILE_DONE for each file, after its last byte or its first error. */
void dt_files_begin(struct dt_files *f, const struct dt_msg_file *m);
void dt_files_data(struct dt_files *f, const struct dt_msg_file_data *m);

#endif
