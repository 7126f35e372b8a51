#include "launcher/job/cause.h"

#include "runtime/wire/msg.h"

enum weight { NO_FAILURE = 0, CONSEQUENCE, LEFT, EXITED, KILLED };

/* Also one that never called dt_init: no other rank's dt_init returns without it. */
static bool left_early(const struct dt_death *d)
{
    return !(d->flags & DT_EXITED_FINALIZED);
}

static enum weight weigh(const struct dt_death *d, bool peers_wait)
{
    if (d->host || d->hung)
        return KILLED;
    if (d->flags & DT_EXITED_STOPPED)
        return NO_FAILURE;
    if (d->flags & DT_EXITED_PEER_LOST)
        return CONSEQUENCE;
    if (d->code == 0 && d->signo == 0)
        return left_early(d) && peers_wait ? LEFT : NO_FAILURE;
    return d->signo ? KILLED : EXITED;
}

static bool is_before(const struct dt_death *a, const struct dt_death *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->rank < b->rank;
}

bool dt_cause_is_suspect(const struct dt_death *death, bool linked)
{
    return weigh(death, linked) != NO_FAILURE;
}

int dt_cause_find(const struct dt_death *deaths, size_t n, bool peers_wait)
{
    enum weight best_weight = NO_FAILURE;
    int best = -1;

    for (size_t i = 0; i < n; i++) {
        enum weight w = weigh(&deaths[i], peers_wait);

        if (w == NO_FAILURE || w < best_weight)
            continue;
        if (w > best_weight || is_before(&deaths[i], &deaths[best])) {
            best = (int)i;
            best_weight = w;
        }
    }
    return best;
}
