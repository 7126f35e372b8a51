/* Decides which hosts a job leaves out for a while because its failures keep beginning there. Pure.
 *
 * A host goes into quarantine when DT_QUARANTINE_FAILURES failures in a row began there and no
 * newer checkpoint was saved between them. It comes back at the first failure after its time is
 * over. If a failure begins there again without progress, it goes into quarantine at once, for
 * twice as long. If the same rank was to blame each time, and then fails on another host too, the
 * program is at fault: the host comes back, and no host goes into quarantine until there is a newer
 * checkpoint. */
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
    DT_QUARANTINE_CLEARED, /* the rank that had failed there also fails elsewhere */
};

struct dt_quarantine_host {
    bool out;
    enum dt_quarantine_news news; /* what the last failure changed, until the user is told */
    uint64_t until_ns;            /* when its time is over, if out */
    /* how often it has gone into quarantine since the last progress */
    unsigned times;
};

struct dt_quarantine {
    struct dt_quarantine_host *hosts;
    size_t n;
    size_t host;       /* where the last failure began */
    uint32_t rank;     /* the rank that failed there last, or DT_QUARANTINE_NO_RANK */
    unsigned failures; /* number of failures in a row that began there, without progress */
    bool one_rank;     /* all of them were failures of that rank */
    bool just_went;    /* the last failure put "host" into quarantine */
    bool at_fault;     /* the program is at fault: a rank fails wherever it runs */
};

struct dt_quarantine_failure {
    size_t host;
    uint32_t rank; /* the rank that failed; DT_QUARANTINE_NO_RANK: the host itself was lost */
    bool progress; /* a newer checkpoint was saved since the previous failure */
    uint64_t time_ns;
};

void dt_quarantine_init(struct dt_quarantine *q, size_t hosts);
/* The job will start again after this failure. Returns whether any host has news. */
bool dt_quarantine_failed(struct dt_quarantine *q, const struct dt_quarantine_failure *f);
/* Returns how long its quarantine lasts or lasted. */
uint64_t dt_quarantine_seconds(const struct dt_quarantine_host *h);
/* Takes all hosts out of quarantine, because the job cannot run without them. Returns whether any
 * host comes back. One does not count if the user has not been told yet that it is left out. */
bool dt_quarantine_end_all(struct dt_quarantine *q);
void dt_quarantine_free(struct dt_quarantine *q);

#endif
