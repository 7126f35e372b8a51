#include "launcher/job/state/history.h"

#include <inttypes.h>
#include <stdlib.h>

#include "launcher/base/mem.h"
#include "launcher/job/state/restart.h"
#include "launcher/watch/words.h"

void dt_history_begin(struct dt_history *h, const struct dt_recovery_record *recovery)
{
    struct dt_recovery_record *r;

    h->recoveries = dt_xrealloc(h->recoveries, h->nrecoveries + 1, sizeof *h->recoveries);
    r = &h->recoveries[h->nrecoveries++];
    *r = *recovery;
    r->cause = dt_xstrdup(recovery->cause);
}

struct dt_recovery_record *dt_history_last(const struct dt_history *h)
{
    return h->nrecoveries ? &h->recoveries[h->nrecoveries - 1] : NULL;
}

bool dt_history_is_recovering(const struct dt_history *h)
{
    return h->nrecoveries && dt_history_last(h)->seconds < 0;
}

void dt_history_recovered(struct dt_history *h, double seconds)
{
    dt_history_last(h)->seconds = seconds;
}

/* The record of an absence that is not over, or NULL. */
static struct dt_absence *absence_of(struct dt_history *h, size_t host)
{
    for (size_t i = h->nabsences; i-- > 0;) {
        if (h->absences[i].host == host)
            return h->absences[i].until ? NULL : &h->absences[i];
    }
    return NULL;
}

void dt_history_note_host(struct dt_history *h, size_t host, bool out, uint32_t generation)
{
    struct dt_absence *absence = absence_of(h, host);

    if (out && !absence) {
        h->absences = dt_xrealloc(h->absences, h->nabsences + 1, sizeof *h->absences);
        h->absences[h->nabsences++] = (struct dt_absence){ host, generation, 0 };
    } else if (!out && absence) {
        if (absence->from == generation) /* no generation began without it */
            *absence = h->absences[--h->nabsences];
        else
            absence->until = generation;
    }
}

void dt_history_add_note(struct dt_history *h, uint32_t generation, size_t host, const char *text)
{
    if (h->nnotes == DT_HISTORY_NOTES)
        return;
    h->notes = dt_xrealloc(h->notes, h->nnotes + 1, sizeof *h->notes);
    h->notes[h->nnotes++] = (struct dt_note){ generation, host, dt_xstrdup(text) };
}

int64_t dt_history_lost_steps(const struct dt_history *h, bool *known)
{
    int64_t lost = 0;

    *known = true;
    for (size_t i = 0; i < h->nrecoveries; i++) {
        *known &= h->recoveries[i].lost_steps >= 0;
        lost = dt_restart_add_lost(lost, h->recoveries[i].lost_steps);
    }
    return lost;
}

static void add_lost_steps(const struct dt_history *h, struct dt_strbuf *out)
{
    bool known = true;
    int64_t lost = dt_history_lost_steps(h, &known);

    if (!known && lost == 0)
        return;
    dt_strbuf_puts(out, known ? ", lost " : ", lost at least ");
    dt_words_count(out, (uint64_t)lost, "step");
}

static void add_manner(const struct dt_history *h, bool linked, struct dt_strbuf *out)
{
    uint64_t from_beginning = 0, waited = 0;

    for (size_t i = 0; i < h->nrecoveries; i++) {
        from_beginning += h->recoveries[i].from_step < 0;
        waited += h->recoveries[i].delay_s;
    }
    if (from_beginning > 0 && linked)
        dt_strbuf_printf(out, " (%" PRIu64 " from the beginning)", from_beginning);
    if (waited > 0)
        dt_strbuf_printf(out, ", waited %" PRIu64 " s before restarts", waited);
}

static void add_absences(const struct dt_history *h, const struct dt_hostlist *hosts,
                         struct dt_strbuf *out)
{
    const char *separator = ", left out ";

    for (size_t host = 0; host < hosts->n; host++) {
        bool was_out = false;

        for (size_t i = 0; i < h->nabsences; i++)
            was_out |= h->absences[i].host == host;
        if (!was_out)
            continue;
        dt_strbuf_printf(out, "%s%s", separator, hosts->v[host].name);
        separator = " and ";
    }
}

/* If the program does not link the library, dtrun knows for how long no ranks ran, but not which
 * work was repeated. */
void dt_history_words(const struct dt_history *h, const struct dt_hostlist *hosts, bool linked,
                      double total, struct dt_strbuf *out)
{
    double recovering = 0;

    for (size_t i = 0; i < h->nrecoveries; i++)
        recovering += h->recoveries[i].seconds > 0 ? h->recoveries[i].seconds : 0;
    dt_strbuf_puts(out, linked ? "; recovered from " : "; restarted after ");
    dt_words_count(out, h->nrecoveries, "failure");
    add_manner(h, linked, out);
    add_absences(h, hosts, out);
    add_lost_steps(h, out);
    dt_strbuf_puts(out, linked ? ", " : ", without ranks for ");
    dt_words_duration(out, recovering);
    if (linked)
        dt_strbuf_printf(out, " (%.1f %% of the time went into training)",
                         total > 0 ? 100 * (total - recovering) / total : 100);
}

void dt_history_free(struct dt_history *h)
{
    for (size_t i = 0; i < h->nrecoveries; i++)
        free(h->recoveries[i].cause);
    free(h->recoveries);
    free(h->absences);
    for (size_t i = 0; i < h->nnotes; i++)
        free(h->notes[i].text);
    free(h->notes);
    *h = (struct dt_history){ 0 };
}
