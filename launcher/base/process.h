/* How dtrun and dtrun-agent start as processes, whatever started them, and how dtrun ends. */
#ifndef DT_BASE_PROCESS_H
#define DT_BASE_PROCESS_H

#include <stdbool.h>

/* Call this first in main. It undoes what a parent may pass on by mistake: blocked signals, an
 * ignored SIGCHLD, closed standard descriptors. It ignores the signals that only repeat what a
 * system call returns as an error. If /dev/null cannot be opened, it ends the process. */
void dt_process_init(void);

/* Records for dt_process_end that this signal ended the job. */
void dt_process_ended_by(int signo);
/* Call this last in main. If code says that the recorded signal ended the job, the process dies of
 * that signal, because a shell ends its loop only if Ctrl-C killed the command. Otherwise returns
 * code. */
int dt_process_end(int code);

/* Returns whether the parent made this process ignore the signal, as nohup does. */
bool dt_process_ignores(int signo);

#endif
