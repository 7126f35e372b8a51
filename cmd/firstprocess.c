#include "cmd/firstprocess.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/base/error.h"

/* The terminal sends these to all its foreground processes, of which the child is one. Of a hangup
 * it tells only the first process. */
static bool child_has_it(const siginfo_t *info)
{
    return info->si_code == SI_KERNEL && info->si_signo != SIGHUP && info->si_signo != SIGCONT;
}

static void reap(pid_t child)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == child)
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : DT_EXIT_SIGNAL + WTERMSIG(status));
    }
}

static void __attribute__((noreturn)) serve(pid_t child, const sigset_t *all)
{
    siginfo_t info;

    prctl(PR_SET_NAME, "init"); /* "pkill dtrun" finds only the child */
    for (;;) {
        if (sigwaitinfo(all, &info) < 0)
            continue;
        if (info.si_signo == SIGCHLD)
            reap(child);
        else if (!child_has_it(&info))
            kill(child, info.si_signo);
    }
}

void dt_first_process(void)
{
    sigset_t all, before;
    pid_t child;

    if (getpid() != 1)
        return;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    child = fork();
    if (child > 0)
        serve(child, &all);
    sigprocmask(SIG_SETMASK, &before, NULL);
}
