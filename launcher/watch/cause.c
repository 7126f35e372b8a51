#include "launcher/watch/cause.h"

#include "runtime/wire/msg.h"

enum weight { NO_FAILURE = 0, CONSEQUENCE, LEFT, EXITED, KILLED };

/* This includes a rank that never called dt_init, because then dt_init does not return on any rank.
 */
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
        return d->missed || (!d->auxiliary && left_early(d) && peers_wait) ? LEFT : NO_FAILURE;
    return d->signo ? KILLED : EXITED;
}

static bool is_before(const struct dt_death *a, const struct dt_death *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->rank < b->rank;
}

int dt_cause_next(const struct dt_death *deaths, int cause, int last, bool peers_wait)
{
    enum weight now = cause < 0 ? NO_FAILURE : weigh(&deaths[cause], peers_wait);
    enum weight new = weigh(&deaths[last], peers_wait);

    if (new == NO_FAILURE || new < now)
        return cause;
    return new > now || is_before(&deaths[last], &deaths[cause]) ? last : cause;
}
