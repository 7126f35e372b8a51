/* What a signal to dtrun means for the job, and what signals are called. Pure. */
#ifndef DT_WATCH_SIGNAL_MEANING_H
#define DT_WATCH_SIGNAL_MEANING_H

enum dt_signal_meaning {
    DT_SIGNAL_IGNORE,
    DT_SIGNAL_FORWARD, /* sent to every rank, with no other effect */
    DT_SIGNAL_PAUSE,   /* Ctrl-Z: stops all ranks, then dtrun, until SIGCONT */
    DT_SIGNAL_STOP,    /* ends the job: sends this signal to every rank, waits for the grace period,
                          then kills */
    DT_SIGNAL_KILL,    /* ends the job at once */
};

/* stopped_by is the signal that has already begun to stop the job, or 0. */
enum dt_signal_meaning dt_signal_meaning(int signo, int stopped_by);
/* Returns the signal for the ranks when signo stops the job. */
int dt_signal_for_ranks(int signo);
/* Returns "SIGSEGV" and so on; "SIGRTMIN+n" or "signal n" for signals without a name. Static. */
const char *dt_signal_name(int signo);
/* Returns "Segmentation fault" and so on for signals that report a fault of the program, else NULL.
 */
const char *dt_signal_fault(int signo);

#endif
