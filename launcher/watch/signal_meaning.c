#include "launcher/watch/signal_meaning.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum dt_signal_meaning dt_signal_meaning(int signo, int stopped_by)
{
    switch (signo) {
    case SIGUSR1:
    case SIGUSR2:
        return stopped_by ? DT_SIGNAL_IGNORE : DT_SIGNAL_FORWARD;
    case SIGTSTP:
        return DT_SIGNAL_PAUSE;
    case SIGINT:
        return stopped_by ? DT_SIGNAL_KILL : DT_SIGNAL_STOP;
    case SIGTERM:
    case SIGHUP:
        /* Service managers send both, in any order, so the second does not mean "at once". */
        return stopped_by ? DT_SIGNAL_IGNORE : DT_SIGNAL_STOP;
    default:
        return DT_SIGNAL_IGNORE;
    }
}

int dt_signal_for_ranks(int signo)
{
    return signo == SIGINT ? SIGINT : SIGTERM;
}

const char *dt_signal_name(int signo)
{
    static char text[24];
    const char *name = sigabbrev_np(signo);

    if (name)
        snprintf(text, sizeof text, "SIG%s", name);
    else if (signo >= SIGRTMIN && signo <= SIGRTMAX)
        snprintf(text, sizeof text, "SIGRTMIN+%d", signo - SIGRTMIN);
    else
        snprintf(text, sizeof text, "signal %d", signo);
    return text;
}

const char *dt_signal_fault(int signo)
{
    switch (signo) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGABRT:
    case SIGSYS:
    case SIGTRAP:
        return strsignal(signo);
    default:
        return NULL;
    }
}
