/* How dtrun and dtrun-agent start as processes, whatever started them, and how dtrun ends. */
#ifndef DT_BASE_PROCESS_H
#define DT_BASE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* Call this first in main. It undoes what a parent may pass on by mistake: blocked signals, an
 * ignored SIGCHLD, closed standard descriptors. It ignores the signals that only repeat what a
 * system call returns as an error. If /dev/null cannot be opened, it ends the process. */
void dt_process_init(void);

/* Like fork, with the child in this cgroup (a descriptor of its directory) if that is possible; -1:
 * in the parent's. All signals are blocked in the child until it unblocks them: it inherits libuv's
 * signal handlers, which would write into the parent's loop. No other thread may use malloc. After
 * dt_cgroup_kill, some kernels kill the child as well. */
pid_t dt_process_fork(int cgroup);
void dt_process_unblock_signals(void);

/* Records for dt_process_end that this signal ended the job. */
void dt_process_ended_by(int signo);
/* Call this last in main. If code says that the recorded signal ended the job, the process dies of
 * that signal, because a shell ends its loop only if Ctrl-C killed the command. Otherwise returns
 * code. */
int dt_process_end(int code);

/* Returns whether the parent made this process ignore the signal, as nohup does. */
bool dt_process_ignores(int signo);

#endif
