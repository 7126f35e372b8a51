#include "tests/sim/world.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"

enum { LONGEST_S = 7200 }; /* longer than any scenario's job takes */

void sim_trace(struct sim_world *w, const char *fmt, ...)
{
    va_list ap;

    if (!w->trace)
        return;
    printf("%12.6f  ", (double)(w->now_ns - w->began_ns) / 1e9);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

void sim_broken(struct sim_world *w, const char *fmt, ...)
{
    va_list ap;

    if (w->broken[0])
        return;
    va_start(ap, fmt);
    vsnprintf(w->broken, sizeof w->broken, fmt, ap);
    va_end(ap);
    sim_trace(w, "BROKEN: %s", w->broken);
}

void sim_later(struct sim_world *w, uint64_t ns, struct sim_event e)
{
    e.at_ns = w->now_ns + ns;
    sim_queue_put(&w->queue, e);
}

/* Runs the next event, unless it comes after until_ns. Returns whether there was one. */
static bool step(struct sim_world *w, uint64_t until_ns)
{
    struct sim_event e;

    if (w->queue.n == 0 || w->queue.heap[0].at_ns > until_ns || !sim_queue_take(&w->queue, &e))
        return false;
    w->now_ns = e.at_ns;
    if (e.for_engine && w->now_ns < w->standing_until) {
        sim_queue_put_off(&w->queue, &e, w->standing_until);
        return true;
    }
    w->events++;
    if (!e.for_engine || !w->ended)
        e.act(w, &e);
    sim_event_free(&e);
    return true;
}

void sim_stand_still(struct sim_world *w, uint64_t ns)
{
    uint64_t until_ns = w->now_ns + ns;

    if (w->standing_until < until_ns)
        w->standing_until = until_ns;
    while (step(w, until_ns - 1))
        ;
    w->now_ns = until_ns;
}

static void on_line(void *arg, const char *line, size_t n, bool foreign)
{
    struct sim_world *w = arg;

    (void)foreign;
    sim_trace(w, "%.*s", (int)n - 1, line);
    sim_check_said(w, line);
}

static void make_hosts(struct sim_world *w)
{
    const struct sim_scenario *s = w->s;

    w->hosts = dt_xcalloc(s->hosts, sizeof *w->hosts);
    w->list.v = dt_xcalloc(s->hosts, sizeof *w->list.v);
    w->list.n = s->hosts;
    for (uint32_t i = 0; i < s->hosts; i++) {
        struct sim_host *h = &w->hosts[i];

        h->index = i;
        snprintf(h->name, sizeof h->name, "h%u", i);
        for (uint32_t k = 0; k < SIM_NETWORKS; k++)
            snprintf(h->addrs[k], sizeof h->addrs[k], "10.%u.%u.%u", k * 16 + (i >> 16),
                     i >> 8 & 255, i & 255);
        snprintf(h->identity, sizeof h->identity, "machine %u",
                 s->twin && i == s->twin ? i - 1 : i);
        h->clock_ns = sim_below(&w->network, 1000000 * SIM_S);
        h->drift_ppm = (int64_t)sim_below(&w->network, 161) - 80;
        w->list.v[i] = (struct dt_host){ .name = h->name, .slots = s->slots[i % SIM_HOSTS_MAX] };
    }
}

static void make_config(struct sim_world *w)
{
    const struct dt_placement how = { .servers = w->s->servers };
    const struct sim_scenario *s = w->s;
    struct dt_error err = { 0 };

    if (dt_plan_make(&w->plan, &w->list, (int)s->np, &how, &err) < 0)
        sim_broken(w, "no plan: %s", err.text);
    w->config = (struct dt_job_config){
        .hosts = &w->list,
        .plan = &w->plan,
        .fanout = s->fanout,
        .start_timeout_s = s->start_timeout_s,
        .wdir = "/tmp",
        .checkpoint_dir = s->checkpoint_dir ? "/checkpoints" : NULL,
        .max_restarts = s->max_restarts,
        .on_host_loss = s->stop_on_loss ? DT_HOST_LOSS_STOP : DT_HOST_LOSS_MOVE,
        .rejoin_s = (int)s->rejoin_s,
        .heartbeat_s = s->heartbeat_s,
        .kill_grace_s = s->kill_grace_s,
        .timeout_s = s->timeout_s,
        .exit_grace_s = s->exit_grace_s,
        .collective_timeout_s = s->collective_timeout_s,
        .stdin_rank = s->stdin_rank,
        .no_oversubscribe = s->no_oversubscribe,
        .resume = s->resume,
        .fresh = s->fresh,
    };
    dt_xstrs_add(&w->config.argv, "./train");
    for (uint32_t i = 0; i < s->ninject; i++)
        dt_xstrs_add(&w->config.inject, s->inject[i]);
}

static void begin(struct sim_world *w, const struct sim_scenario *s, bool trace)
{
    const struct dt_job_origin origin = { .tag = 0xabcd,
                                          .terminal = s->terminal,
                                          .batch = s->batch };

    *w = (struct sim_world){ .s = s,
                             .trace = trace,
                             .network = sim_chance_of(s->seed, 2),
                             .program = sim_chance_of(s->seed, 3),
                             .now_ns = 1000 * SIM_S,
                             .began_ns = 1000 * SIM_S,
                             .durable = -1,
                             .ops = sim_ops };
    w->witness.restarts.newest = w->witness.restarts.newest_before = -1;
    w->ops.arg = w;
    make_hosts(w);
    make_config(w);
    w->shown = dt_xcalloc((size_t)w->plan.nprocs, sizeof *w->shown);
    w->known = dt_xcalloc((size_t)w->plan.nprocs, sizeof *w->known);
    dt_log_set_sink(on_line, w);
    w->job = dt_job_new(&w->config, &origin, &w->ops);
    sim_faults_plan(w);
    dt_job_begin(w->job);
}

/* After dtrun has ended, agents that are cut off live until their leases end. */
static void run_down(struct sim_world *w)
{
    uint64_t until_ns = w->now_ns + (uint64_t)(4 * w->s->heartbeat_s + 300) * SIM_S;

    for (uint32_t i = 0; i < w->s->hosts; i++) {
        if (w->hosts[i].frozen_until > w->now_ns && w->hosts[i].frozen_until != UINT64_MAX)
            until_ns += w->hosts[i].frozen_until - w->now_ns;
    }
    while (!w->broken[0] && step(w, until_ns))
        ;
}

bool sim_world_run(struct sim_world *w, const struct sim_scenario *s, bool trace)
{
    begin(w, s, trace);
    while (!w->ended && !w->broken[0] && step(w, w->began_ns + LONGEST_S * SIM_S))
        ;
    if (!w->ended)
        sim_broken(w, "the job does not end");
    run_down(w);
    if (!w->broken[0])
        sim_check_end(w);
    return !w->broken[0];
}

void sim_world_free(struct sim_world *w)
{
    dt_job_free(w->job);
    dt_log_set_sink(NULL, NULL);
    sim_queue_free(&w->queue);
    for (struct sim_agent *a = w->agents, *next; a; a = next) {
        next = a->next;
        free(a->ranks);
        free(a);
    }
    for (struct sim_conn *c = w->conns, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(w->shown);
    free(w->known);
    dt_plan_free(&w->plan);
    dt_strs_free(&w->config.argv);
    dt_strs_free(&w->config.inject);
    free(w->list.v);
    free(w->hosts);
}
