/* What a signal to dtrun means for the job. Pure. */
#ifndef DT_WATCH_SIGNALS_H
#define DT_WATCH_SIGNALS_H

#include <stdbool.h>

enum dt_signal_meaning {
    DT_SIGNAL_IGNORE,
    DT_SIGNAL_FORWARD, /* to every rank, and nothing else */
    DT_SIGNAL_PAUSE,   /* Ctrl-Z: stop all ranks, then dtrun, until SIGCONT */
    DT_SIGNAL_STOP,    /* end the job: this signal to every rank, grace, KILL */
    DT_SIGNAL_KILL,    /* end the job at once */
};

/* stopped_by: the signal that already began to stop the job, or 0. */
enum dt_signal_meaning dt_signal_meaning(int signo, int stopped_by);
/* What is sent to the ranks when signo stops the job. */
int dt_signal_for_ranks(int signo);
/* "SIGSEGV" and so on; "SIGRTMIN+n" or "signal n" for those without a name. Static. */
const char *dt_signal_name(int signo);
/* For signals that tell of a fault in the program: "Segmentation fault"; else NULL. */
const char *dt_signal_fault(int signo);

#endif
