/* The engine of a job acts on the world through these functions alone. dtrun's driver
 * (launcher/driver) implements them with links, an event loop and descriptors. A simulator
 * implements them with model hosts and its own clock.
 *
 * None of them may call back into the engine: the effects of a call arrive later, as events
 * (job.h). The engine's messages to the user go through log.h to the sink that is set there. */
#ifndef DT_JOB_OPS_H
#define DT_JOB_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/wire/codec.h"

/* Setting a running timer restarts it. Each comment says what the timer is for. */
enum dt_job_timer {
    DT_TIMER_COLLECT,     /* waits for news that may change the cause of a failure */
    DT_TIMER_LAST_CALLS,  /* waits until the last calls of ranks are printed */
    DT_TIMER_FENCE,       /* waits until ranks may start again */
    DT_TIMER_OUTAGE,      /* waits until dtrun connects again to hosts that it needs */
    DT_TIMER_REJOIN,      /* waits until dtrun checks whether lost hosts are back */
    DT_TIMER_PAUSE,       /* waits until all ranks are stopped for Ctrl-Z */
    DT_TIMER_GATHER,      /* waits for a signal to reach all processes that it was sent to */
    DT_TIMER_GRACE,       /* waits for ranks to end by themselves */
    DT_TIMER_PATIENCE,    /* waits for agents to end */
    DT_TIMER_READER,      /* waits for a reader of output once the job was told to stop */
    DT_TIMER_CUT,         /* waits until dtrun drops what is left */
    DT_TIMER_TIMEOUT,     /* --timeout */
    DT_TIMER_START,       /* --start-timeout, or a warning without it; until GO */
    DT_TIMER_TICK,        /* heartbeats */
    DT_TIMER_STRAGGLERS,  /* runs once a rank of the generation has exited with 0 */
    DT_TIMER_MISSED,      /* runs while ranks of MPI wait for one that exited with 0 */
    DT_TIMER_AUXILIARIES, /* runs once all ranks have exited with 0 */
    DT_JOB_TIMERS,
};

struct dt_job_ops {
    void *arg; /* the first argument of each function */

    /* A host is an index into the job's hosts. Only the newest connection to a host counts. open()
     * is called only if there was none before, or the previous one has ended (dt_job_disconnected)
     * or was closed. */
    void (*open)(void *arg, size_t host);
    /* Returns what opening the connection waits for, as in "authenticate". Called only before
     * dt_job_greeted. */
    const char *(*phase)(void *arg, size_t host);
    void (*send)(void *arg, size_t host, uint8_t type, const struct dt_put *frames);
    /* Ends the connection at once. dt_job_hung_up is then its only event. */
    void (*close)(void *arg, size_t host);

    /* Returns CLOCK_BOOTTIME, which never runs backwards. */
    uint64_t (*now_ns)(void *arg);
    /* expires once; 0 ms: very soon */
    void (*set_timer)(void *arg, enum dt_job_timer timer, uint64_t ms);
    void (*stop_timer)(void *arg, enum dt_job_timer timer);

    /* Output of a process. number is as in role.h, fd is 1 or 2. dt_job_shown reports the same
     * number of bytes once they have been shown or dropped. */
    void (*output)(void *arg, uint32_t number, int fd, const void *data, size_t n);
    /* No more output follows for now, so an unfinished line may be shown. */
    void (*output_quiet)(void *arg, uint32_t number, int fd);
    void (*output_eof)(void *arg, uint32_t number, int fd);
    void (*output_end)(void *arg); /* no stream continues, so unfinished lines are shown */
    /* Returns NULL if all output of fd has been written (of 2, all messages, too), or some in the
     * last ms. With ms > 0, only output for which there is no credit yet counts. Otherwise returns
     * the words that complete "the last output was not ...": "read" or "written to --output-dir".
     */
    const char *(*output_awaits)(void *arg, int fd, uint64_t ms);

    /* stdin_credit asks for n more bytes of dtrun's standard input. After stdin_hold the engine
     * wants none until the next credit. */
    void (*stdin_credit)(void *arg, size_t n);
    void (*stdin_hold)(void *arg);

    void (*suspend)(void *arg); /* stops dtrun, as Ctrl-Z does; returns when it is continued */
    void (*end)(void *arg);     /* the last call: the job is over, and no connection is open */
};

#endif
