#include "launcher/job/state/deaths.h"

#include <stdlib.h>

#include "launcher/base/mem.h"
#include "runtime/wire/msg.h"

void dt_deaths_init(struct dt_deaths *d, size_t most)
{
    *d = (struct dt_deaths){ .v = dt_xcalloc(most, sizeof *d->v) };
    dt_deaths_forget(d);
}

static void weigh(struct dt_deaths *d, size_t last)
{
    for (int peers_wait = 0; peers_wait < 2; peers_wait++)
        d->causes[peers_wait] = dt_cause_next(d->v, d->causes[peers_wait], (int)last, peers_wait);
}

void dt_deaths_add(struct dt_deaths *d, const struct dt_death *death)
{
    d->v[d->n] = *death;
    weigh(d, d->n);
    d->n++;
    d->lost_peer |= (death->flags & DT_EXITED_PEER_LOST) != 0;
}

void dt_deaths_say_peer_lost(struct dt_deaths *d, uint32_t rank)
{
    d->causes[0] = d->causes[1] = -1;
    for (size_t i = 0; i < d->n; i++) {
        d->v[i].says_peer_lost |= d->v[i].rank == rank && !d->v[i].host && !d->v[i].auxiliary;
        weigh(d, i);
    }
}

const struct dt_death *dt_deaths_first_done(const struct dt_deaths *d)
{
    const struct dt_death *first = NULL;

    for (size_t i = 0; i < d->n; i++) {
        const struct dt_death *v = &d->v[i];

        if (!v->host && !v->auxiliary && v->code == 0 && v->signo == 0 &&
            (!first || v->time_ns < first->time_ns))
            first = v;
    }
    return first;
}

/* Ranks wait for each other if a linked one is alive, or if a dead one had a call return
 * DT_ERR_PEER. */
const struct dt_death *dt_deaths_cause(const struct dt_deaths *d, bool linked_alive)
{
    int cause = d->causes[linked_alive || d->lost_peer];

    return cause < 0 ? NULL : &d->v[cause];
}

void dt_deaths_forget(struct dt_deaths *d)
{
    d->n = 0;
    d->causes[0] = d->causes[1] = -1;
    d->lost_peer = false;
}

void dt_deaths_free(struct dt_deaths *d)
{
    free(d->v);
}
