/* Hosts that shut down, or on which killed processes do not end. If the job may be restarted
 * elsewhere, its ranks have time to save, and then leave the host. Otherwise the signal ends the
 * job, as if dtrun had received it. */
#include <stdio.h>
#include <string.h>

#include "tests/sim/world.h"

/* Ranks have been started, and nothing ends the job. */
static bool is_alive(const struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;

    return x->generation > 0 && !x->norders && !x->finished && !sim_has_refusal(x) &&
           (!x->decided || x->restarting || x->cut_off);
}

/* No process of the last generation has failed. */
static bool is_undisturbed(const struct sim_world *w)
{
    return is_alive(w) && !w->witness.decided && !w->witness.ncauses && !w->witness.cut_off;
}

/* The slots of other hosts. sure: only of those that dtrun certainly counts on. */
static uint32_t slots_elsewhere(const struct sim_world *w, const struct sim_host *h, bool sure)
{
    uint32_t slots = 0;

    for (uint32_t i = 0; i < w->s->hosts; i++) {
        const struct sim_host *other = &w->hosts[i];
        bool usable =
            !other->left && (!sure || (!other->lost && sim_is_connected(other) && !w->s->twin));

        if (other != h && usable)
            slots += (uint32_t)w->s->slots[i % SIM_HOSTS_MAX];
    }
    return slots;
}

static bool is_room_elsewhere(const struct sim_world *w, const struct sim_host *h, bool sure)
{
    return sim_suffice(w->s, slots_elsewhere(w, h, sure));
}

bool sim_is_room_elsewhere(const struct sim_world *w, const struct sim_host *h)
{
    return is_room_elsewhere(w, h, true);
}

/* Whether ranks are known to run there. */
static bool has_ranks(const struct sim_world *w, const struct sim_host *h)
{
    for (uint32_t i = 0; i < w->s->np; i++) {
        if (w->known[i].host == h->index && !w->known[i].ended)
            return h->generation == w->witness.generation;
    }
    return false;
}

/* Whether its loss would be a failure. Any host may run a scheduler or server, which the ranks need
 * until all have ended. */
static bool may_be_needed(const struct sim_world *w, const struct sim_host *h)
{
    return has_ranks(w, h) || (w->s->servers && w->witness.ended_well < w->s->np);
}

static bool may_leave(const struct sim_world *w, const struct sim_host *h, bool sure)
{
    return is_alive(w) && !w->s->batch && !w->s->stop_on_loss && is_room_elsewhere(w, h, sure);
}

static bool must_leave(const struct sim_world *w, const struct sim_host *h)
{
    return is_undisturbed(w) && may_leave(w, h, true) && !sim_is_about_to_end(w) &&
           (sim_is_restart_allowed(w) || !may_be_needed(w, h));
}

void sim_check_signalled(struct sim_world *w, struct sim_conn *c)
{
    w->witness.signalled = !w->s->batch && sim_ends_jobs(sim_signal_reported(w, c)) ? c : NULL;
    w->witness.repeated = c->host->left || c->host->second || !sim_is_connected(c->host);
}

/* "dtrun: h0 and h1 are one machine", and the job goes on without h1 */
void sim_check_one_machine_said(struct sim_world *w, const char *line)
{
    unsigned one, other;
    int n = 0;

    if (sscanf(line, "dtrun: h%u and h%u are one machine%n", &one, &other, &n) == 2 &&
        other < w->s->hosts && line[n] == '\n')
        w->hosts[other].second = true;
}

/* "h2: dtrun-agent was sent SIGTERM; leaving this host" */
void sim_check_departure_said(struct sim_world *w, const char *line)
{
    const struct sim_witness *x = &w->witness;
    struct sim_host *h = x->stuck ? x->stuck : x->signalled ? x->signalled->host : NULL;

    if (!strstr(line, "; leaving this host") || x->late)
        return;
    if (!h || !strstr(line, h->name) || h->left || (!x->stuck && !may_leave(w, h, false)))
        sim_broken(w, "dtrun leaves a host, and must not: %s", line);
    else
        h->left = true;
}

static bool is_usable(const struct sim_host *h)
{
    return !h->lost && !h->left && !h->second;
}

bool sim_must_leave_stuck(struct sim_world *w, const struct sim_conn *c)
{
    struct sim_witness *x = &w->witness;
    uint32_t slots = 0;

    for (uint32_t i = 0; i < w->s->hosts; i++) {
        if (&w->hosts[i] != c->host && is_usable(&w->hosts[i]))
            slots += (uint32_t)w->s->slots[i % SIM_HOSTS_MAX];
    }
    if (!is_alive(w) || w->s->stop_on_loss || !sim_suffice(w->s, slots))
        return false;
    x->stuck = c->host;
    if (!x->ncauses && !x->decided && !x->cut_off)
        sim_recovery_put_off(w);
    x->cut_off |= !x->ncauses && !x->decided;
    return true;
}

void sim_check_stuck_handled(struct sim_world *w)
{
    const struct sim_host *h = w->witness.stuck;

    if (h && !h->left)
        sim_broken(w, "processes are stuck on %s, and dtrun does not leave it", h->name);
    w->witness.stuck = NULL;
}

/* dtrun says that it restarts the ranks. */
void sim_check_departure(struct sim_world *w)
{
    struct sim_witness *x = &w->witness;

    if (!x->signalled)
        return;
    if (!x->signalled->host->left || !is_undisturbed(w) || !may_be_needed(w, x->signalled->host))
        sim_broken(w, "%s shuts down, and dtrun restarts ranks without need",
                   x->signalled->host->name);
    x->graceful = true;
    sim_oracle_departure(w, x->signalled->host);
}

void sim_check_signalled_handled(struct sim_world *w, struct sim_conn *c)
{
    struct sim_witness *x = &w->witness;
    bool left = x->signalled && (c->host->left || x->repeated);

    if (x->signalled && !left && must_leave(w, c->host))
        sim_broken(w, "%s shuts down, and dtrun does not leave it", c->host->name);
    sim_reported(w, c, left);
    x->signalled = NULL;
}
