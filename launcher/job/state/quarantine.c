#include "launcher/job/state/quarantine.h"

#include <stdlib.h>

#include "launcher/base/mem.h"

void dt_quarantine_init(struct dt_quarantine *q, size_t hosts)
{
    *q = (struct dt_quarantine){ .hosts = dt_xcalloc(hosts, sizeof *q->hosts), .n = hosts };
}

uint64_t dt_quarantine_seconds(const struct dt_quarantine_host *h)
{
    uint64_t seconds = DT_QUARANTINE_S;

    for (unsigned i = 1; i < h->times && seconds < DT_QUARANTINE_MAX_S; i++)
        seconds *= 2;
    return seconds < DT_QUARANTINE_MAX_S ? seconds : DT_QUARANTINE_MAX_S;
}

static void bring_back(struct dt_quarantine_host *h, enum dt_quarantine_news news)
{
    h->out = false;
    h->news = news;
}

static void note_progress(struct dt_quarantine *q)
{
    q->failures = 0;
    q->just_went = q->at_fault = false;
    for (size_t i = 0; i < q->n; i++) {
        if (!q->hosts[i].out)
            q->hosts[i].times = 0;
    }
}

/* If the rank that drove its host into quarantine now fails on another host, the program is at
 * fault, and the first host is cleared. */
static void clear_host_of_failing_rank(struct dt_quarantine *q,
                                       const struct dt_quarantine_failure *f)
{
    struct dt_quarantine_host *h = &q->hosts[q->host];

    if (!q->just_went || !q->one_rank || f->rank != q->rank || f->host == q->host)
        return;
    q->at_fault = true;
    bring_back(h, DT_QUARANTINE_CLEARED);
    h->times = 0;
}

static void count(struct dt_quarantine *q, const struct dt_quarantine_failure *f)
{
    bool again = q->failures > 0 && f->host == q->host;

    q->one_rank =
        f->rank != DT_QUARANTINE_NO_RANK && (!again || (q->one_rank && f->rank == q->rank));
    q->failures = again ? q->failures + 1 : 1;
    q->host = f->host;
    q->rank = f->rank;
    q->just_went = false;
}

static void bring_back_due_hosts(struct dt_quarantine *q, uint64_t now_ns)
{
    for (size_t i = 0; i < q->n; i++) {
        if (q->hosts[i].out && q->hosts[i].until_ns <= now_ns)
            bring_back(&q->hosts[i], DT_QUARANTINE_BACK);
    }
}

static bool has_to_go(const struct dt_quarantine *q)
{
    unsigned enough = q->hosts[q->host].times > 0 ? 1 : DT_QUARANTINE_FAILURES;

    return !q->at_fault && q->failures >= enough;
}

static void put_out(struct dt_quarantine *q, uint64_t now_ns)
{
    struct dt_quarantine_host *h = &q->hosts[q->host];

    h->out = q->just_went = true;
    h->news = DT_QUARANTINE_OUT;
    h->times++;
    h->until_ns = now_ns + dt_quarantine_seconds(h) * UINT64_C(1000000000);
}

bool dt_quarantine_failed(struct dt_quarantine *q, const struct dt_quarantine_failure *f)
{
    bool news = false;

    for (size_t i = 0; i < q->n; i++)
        q->hosts[i].news = DT_QUARANTINE_NOTHING;
    if (f->progress)
        note_progress(q);
    clear_host_of_failing_rank(q, f);
    count(q, f);
    bring_back_due_hosts(q, f->time_ns);
    if (has_to_go(q))
        put_out(q, f->time_ns);
    for (size_t i = 0; i < q->n; i++)
        news |= q->hosts[i].news != DT_QUARANTINE_NOTHING;
    return news;
}

bool dt_quarantine_end_all(struct dt_quarantine *q)
{
    bool news = false;

    q->just_went = false;
    for (size_t i = 0; i < q->n; i++) {
        struct dt_quarantine_host *h = &q->hosts[i];

        if (!h->out)
            continue;
        bring_back(h, h->news == DT_QUARANTINE_OUT ? DT_QUARANTINE_NOTHING : DT_QUARANTINE_BACK);
        news |= h->news == DT_QUARANTINE_BACK;
    }
    return news;
}

void dt_quarantine_free(struct dt_quarantine *q)
{
    free(q->hosts);
}
