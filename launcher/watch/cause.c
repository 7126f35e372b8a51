#include "launcher/watch/cause.h"

#include <string.h>

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
    if (d->flags & DT_EXITED_PEER_LOST || d->says_peer_lost)
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

bool dt_cause_line_says_timed_out(const char *line)
{
    return (strstr(line, "gloo/transport/") && strstr(line, "Timed out waiting")) ||
           strstr(line, "Watchdog caught collective operation timeout"); /* PyTorch's, of NCCL */
}

bool dt_cause_line_says_peer_lost(const char *line)
{
    static const char *const texts[] = {
        /* NCCL */
        "remote process exited or there was a network error",
        "ncclRemoteError",
        /* PyTorch's TCPStore, from 2.0 on */
        "Connection was likely closed. Did the remote server shutdown or crash?",
    };
    static const char *const gloo[] = { "closed by peer", "reset by peer", "Broken pipe" };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strstr(line, texts[i]))
            return true;
    }
    /* "[.../gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.7]:4123" */
    for (size_t i = 0; strstr(line, "gloo/transport/") && i < sizeof gloo / sizeof *gloo; i++) {
        if (strstr(line, gloo[i]))
            return true;
    }
    return false;
}
