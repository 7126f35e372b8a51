/* How dtrun and dtrun-agent begin as processes, whatever started them, and how dtrun ends. */
#ifndef DT_BASE_PROCESS_H
#define DT_BASE_PROCESS_H

#include <stdbool.h>

/* To be called first in main. Undoes what a parent may hand down by mistake: blocked signals,
 * an ignored SIGCHLD, closed standard descriptors. Ignores the signals that only repeat what a
 * system call returns as an error. Ends the process where /dev/null cannot be opened. */
void dt_process_init(void);

/* Notes that this signal ended the job, for dt_process_end(). */
void dt_process_ended_by(int signo);
/* To be called last in main. Dies of the signal that was noted if code says that it ended the job:
 * a shell ends its loop only if Ctrl-C killed the command. Returns code otherwise. */
int dt_process_end(int code);

/* Whether the process that started this one made it ignore the signal, as nohup does. */
bool dt_process_ignores(int signo);

#endif
