/* How the engine of a job acts on the world: through these functions alone. dtrun's driver
 * (launcher/driver) implements them with links, a loop and descriptors; a simulator with model
 * hosts and a clock of its own.
 *
 * None of them may call back into the engine: what follows from a call comes later, as an event
 * (job.h). What the engine says goes through log.h, to the sink that is set there. */
#ifndef DT_JOB_OPS_H
#define DT_JOB_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/wire/codec.h"

/* Setting a timer that runs sets it anew. */
enum dt_job_timer {
    DT_TIMER_COLLECT,     /* for news that may change what the cause of a failure is */
    DT_TIMER_LAST_CALLS,  /* until the last calls of ranks are printed */
    DT_TIMER_FENCE,       /* until ranks may start again */
    DT_TIMER_PAUSE,       /* until all ranks are stopped for Ctrl-Z */
    DT_TIMER_GATHER,      /* for a signal to reach all processes that it was sent to */
    DT_TIMER_GRACE,       /* for ranks to end by themselves */
    DT_TIMER_PATIENCE,    /* for agents to end */
    DT_TIMER_CUT,         /* until what is left is dropped */
    DT_TIMER_TIMEOUT,     /* --timeout */
    DT_TIMER_START,       /* --start-timeout, until GO */
    DT_TIMER_TICK,        /* heartbeats */
    DT_TIMER_STRAGGLERS,  /* since the first rank of the generation exited with 0 */
    DT_TIMER_AUXILIARIES, /* since the last rank exited with 0 */
    DT_JOB_TIMERS,
};

struct dt_job_ops {
    void *arg; /* the first argument of all */

    /* Hosts are indices into the job's. A host has one connection that counts, the newest: open()
     * comes first, or after the one before has ended (dt_job_disconnected) or was closed. */
    void (*open)(void *arg, size_t host);
    /* What opening the connection waits for, as "authenticate"; only before dt_job_greeted. */
    const char *(*phase)(void *arg, size_t host);
    void (*send)(void *arg, size_t host, uint8_t type, const struct dt_put *frames);
    /* Ends the connection at once. Then nothing more comes of it but dt_job_hung_up. */
    void (*close)(void *arg, size_t host);

    /* CLOCK_BOOTTIME. It never runs backwards. */
    uint64_t (*now_ns)(void *arg);
    void (*set_timer)(void *arg, enum dt_job_timer timer, uint64_t ms); /* once; 0: very soon */
    void (*stop_timer)(void *arg, enum dt_job_timer timer);

    /* What a process has written; number: as of role.h, fd: 1 or 2. dt_job_shown gives the same
     * bytes back as they are dealt with. */
    void (*output)(void *arg, uint32_t number, int fd, const void *data, size_t n);
    /* Nothing follows for now: an unfinished line may be shown. */
    void (*output_quiet)(void *arg, uint32_t number, int fd);
    void (*output_eof)(void *arg, uint32_t number, int fd);
    void (*output_end)(void *arg); /* no stream goes on: unfinished lines are shown */
    /* NULL when all output, and all that was said, is out; else how it is not: "read" or "written
     * to --output-dir". */
    const char *(*output_awaits)(void *arg);

    /* n more bytes of dtrun's standard input are wanted; none, until the next credit. */
    void (*stdin_credit)(void *arg, size_t n);
    void (*stdin_hold)(void *arg);

    void (*suspend)(void *arg); /* stops dtrun, as Ctrl-Z does; returns when it is continued */
    void (*end)(void *arg);     /* the job is over, and no connection is open; the last call */
};

#endif
