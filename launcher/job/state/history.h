/* The failures that a job recovered from, the hosts that it left out, and what agents and ranks
 * said. Pure. */
#ifndef DT_JOB_STATE_HISTORY_H
#define DT_JOB_STATE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/base/strbuf.h"
#include "launcher/hosts/hostlist.h"

struct dt_recovery_record { /* a failure and the recovery from it, perhaps still in progress */
    uint32_t generation;    /* the generation that the recovery starts */
    char *cause;
    int64_t from_step; /* -1: from the beginning */
    uint64_t failed_ns;
    double detect_seconds;
    double seconds;     /* the time until the job continued; below 0: it failed again before that */
    int64_t lost_steps; /* -1: unknown */
    unsigned delay_s;   /* how long the restart waited */
};

struct dt_absence { /* of a host in quarantine */
    size_t host;
    uint32_t from;  /* the first generation without it */
    uint32_t until; /* the first generation with it again; 0: it is still left out */
};

enum { DT_HISTORY_NOTES = 100 }; /* more are not kept */

struct dt_note { /* what an agent, or a rank through it, said */
    uint32_t generation;
    size_t host;
    char *text;
};

struct dt_history { /* zero-initialised */
    struct dt_recovery_record *recoveries;
    size_t nrecoveries;
    struct dt_absence *absences;
    size_t nabsences;
    struct dt_note *notes;
    size_t nnotes;
};

/* A recovery begins; its seconds are below 0. Its cause is copied. */
void dt_history_begin(struct dt_history *h, const struct dt_recovery_record *recovery);
struct dt_recovery_record *dt_history_last(const struct dt_history *h); /* NULL: there was none */
bool dt_history_is_recovering(const struct dt_history *h); /* the last one is not complete */
/* The last recovery is complete. */
void dt_history_recovered(struct dt_history *h, double seconds);
/* From this generation on, the job leaves out the host, or uses it (again). */
void dt_history_note_host(struct dt_history *h, size_t host, bool out, uint32_t generation);
/* The text is copied. */
void dt_history_add_note(struct dt_history *h, uint32_t generation, size_t host, const char *text);
/* Returns the number of steps lost in all recoveries. *known: the number is known for every
 * recovery. */
int64_t dt_history_lost_steps(const struct dt_history *h, bool *known);
/* Writes "; recovered from 2 failures, lost 3 steps, 1.2 s (99.1 % of the time went into
 * training)". seconds: how long the job took; linked: some of its ranks called dt_init. */
void dt_history_words(const struct dt_history *h, const struct dt_hostlist *hosts, bool linked,
                      double seconds, struct dt_strbuf *out);
void dt_history_free(struct dt_history *h);

#endif
