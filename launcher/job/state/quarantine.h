/* Which hosts a job does without for a while, since its failures keep beginning there. Pure.
 *
 * A host goes into quarantine when DT_QUARANTINE_FAILURES in a row began there and no newer
 * checkpoint was saved between them. It comes back with the first failure after its time is over;
 * if the next failure begins there again, it goes at once, for twice as long. If a single rank was
 * to blame each time, and then fails on another host too, the program is at fault: the host comes
 * back, and no host goes until there is a newer checkpoint. */
#ifndef DT_JOB_STATE_QUARANTINE_H
#define DT_JOB_STATE_QUARANTINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DT_QUARANTINE_FAILURES = 3, DT_QUARANTINE_S = 60, DT_QUARANTINE_MAX_S = 3600 };

#define DT_QUARANTINE_NO_RANK UINT32_MAX

enum dt_quarantine_news {
    DT_QUARANTINE_NOTHING,
    DT_QUARANTINE_OUT,     /* the host went into quarantine */
    DT_QUARANTINE_BACK,    /* its time is over */
    DT_QUARANTINE_CLEARED, /* a rank that had failed there fails elsewhere, too */
};

struct dt_quarantine_host {
    bool out;
    enum dt_quarantine_news news; /* of the last failure */
    uint64_t until_ns;            /* while out */
    unsigned times;               /* that it went and made no progress afterwards */
};

struct dt_quarantine {
    struct dt_quarantine_host *hosts;
    size_t n;
    size_t host;       /* where the last failure began */
    uint32_t rank;     /* whose it was */
    unsigned failures; /* so many in a row began there, without progress */
    bool one_rank;     /* all of them were that rank's */
    bool just_went;    /* "host" went with the last failure */
    bool at_fault;     /* the program is: a rank fails wherever it runs */
};

struct dt_quarantine_failure {
    size_t host;
    uint32_t rank; /* whose failure it was; DT_QUARANTINE_NO_RANK: the host itself was lost */
    bool progress; /* a newer checkpoint was saved since the failure before */
    uint64_t time_ns;
};

void dt_quarantine_init(struct dt_quarantine *q, size_t hosts);
/* The job is to be started again after this failure. Returns whether there is news of a host. */
bool dt_quarantine_failed(struct dt_quarantine *q, const struct dt_quarantine_failure *f);
uint64_t dt_quarantine_seconds(const struct dt_quarantine_host *h); /* for how long it went */
/* The job cannot do without the hosts in quarantine: none is left there. Returns whether that is
 * news. It is none for a host that went with the last failure. */
bool dt_quarantine_end_all(struct dt_quarantine *q);
void dt_quarantine_free(struct dt_quarantine *q);

#endif
