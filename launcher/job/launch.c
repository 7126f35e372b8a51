/* Starting a generation: from usable hosts to running ranks that know each other. */
#include <stdlib.h>
#include <string.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/job/engine.h"
#include "launcher/job/state/exitpolicy.h"
#include "launcher/place/frameworks.h"
#include "launcher/place/mpimap.h"
#include "launcher/place/tfcluster.h"
#include "launcher/session/start.h"
#include "launcher/watch/words.h"

static size_t count_unusable(const struct dt_job *j)
{
    size_t n = 0;

    for (size_t i = 0; i < j->core.plan.nnodes; i++)
        n += j->core.links.v[j->core.plan.nodes[i].host]->phase != DT_HOST_IDLE;
    return n;
}

static bool is_named_twice(const struct dt_job *j)
{
    size_t one, other;
    bool found = dt_core_find_duplicate_hosts(&j->core, &one, &other);

    if (found)
        dt_say("%s and %s are one machine: name it once, with all its slots; nothing was started",
               dt_core_host_name(&j->core, one), dt_core_host_name(&j->core, other));
    return found;
}

void dt_job_launch(struct dt_job *j)
{
    size_t unusable = count_unusable(j);

    if (unusable == 0 && !is_named_twice(j) && dt_network_list_addresses(&j->network)) {
        dt_core_event(&j->core, DT_EV_USABLE);
        return;
    }
    if (unusable > 0 && j->core.plan.nnodes > 1)
        dt_say("%zu of %zu hosts cannot be used; nothing was started", unusable,
               j->core.plan.nnodes);
    dt_core_end(&j->core, DT_EV_UNUSABLE, DT_EXIT_LAUNCH, dt_xstrdup("hosts cannot be used"));
}

static char *tf_cluster(const struct dt_job *j)
{
    const char **addrs = dt_xcalloc(j->core.ranks.np, sizeof *addrs);
    uint16_t *ports = dt_xcalloc(j->core.ranks.np, sizeof *ports);
    char *text;

    for (uint32_t r = 0; r < j->core.ranks.np; r++) {
        const struct dt_plan_node *node = dt_plan_node_of(&j->core.plan, (int)r);

        addrs[r] = dt_network_address(&j->network, (uint32_t)node->node_rank);
        ports[r] = (uint16_t)(j->core.links.v[node->host]->free_port + DT_PORT_TENSORFLOW +
                              dt_plan_local_rank(node, (int)r));
    }
    text = dt_tfcluster(addrs, ports, j->core.ranks.np);
    free(addrs);
    free(ports);
    return text;
}

/* For Horovod; the caller frees v. */
static struct dt_u32s local_sizes(const struct dt_job *j)
{
    struct dt_u32s sizes = { 0 };

    if (!j->rendezvous_port)
        return sizes;
    sizes.v = dt_xcalloc(j->core.plan.nnodes, sizeof *sizes.v);
    for (; sizes.n < j->core.plan.nnodes; sizes.n++)
        sizes.v[sizes.n] = j->core.plan.nodes[sizes.n].ranks.n;
    return sizes;
}

/* What is there before the first start would be gone on from unasked: this machine need not see it.
 */
static uint8_t checkpoint_need(const struct dt_job *j)
{
    const struct dt_job_config *c = j->core.config;

    if (c->resume && !j->recovery.restart.saved)
        return DT_CHECKPOINT_READABLE;
    return !c->resume && !c->fresh && j->recovery.restart.restarts == 0 ? DT_CHECKPOINT_UNUSED
                                                                        : DT_CHECKPOINT_USABLE;
}

static void send_start(struct dt_job *j, const struct dt_plan_node *node, struct dt_u32s map)
{
    const struct dt_job_config *c = j->core.config;
    const struct dt_plan_node *first = &j->core.plan.nodes[0];
    struct dt_msg_start m = dt_start_of(c, node->host, j->core.links.v[node->host]->dir);

    m.generation = j->core.generation;
    m.job_id = j->id;
    m.np = j->core.ranks.np;
    m.nodes = (uint32_t)j->core.plan.nnodes;
    m.node_rank = (uint32_t)node->node_rank;
    m.restart_count = j->recovery.restart.restarts;
    m.ranks = node->ranks;
    m.auxiliaries = node->auxiliaries;
    m.servers = (uint32_t)dt_plan_servers(&j->core.plan);
    m.master_port = (uint16_t)(j->core.links.v[first->host]->free_port + DT_PORT_MASTER);
    m.scheduler_port = (uint16_t)(j->core.links.v[first->host]->free_port + DT_PORT_SCHEDULER);
    m.checkpoint_dir = j->checkpoint_dir;
    if (c->checkpoint_dir && node->ranks.v[0] == 0)
        m.check_checkpoint_dir = checkpoint_need(j);
    m.fresh = c->fresh && !j->recovery.restart.saved;
    m.resume = c->resume && !j->recovery.restart.saved;
    m.mpi_map = map;
    m.universe = j->core.ranks.np > (uint32_t)j->core.plan.slots ? j->core.ranks.np
                                                                 : (uint32_t)j->core.plan.slots;
    memcpy(m.secret, j->secret, sizeof m.secret);
    dt_injections_select(&j->injections, node, &m.inject);
    dt_hostlink_send(j->core.links.v[node->host], DT_MSG_START, &m);
    dt_strs_free(&m.inject);
}

static void reset_ranks(struct dt_job *j)
{
    dt_ranks_reset(&j->core.ranks);
    dt_failure_forget(&j->failure);
    dt_hangs_forget(&j->hangs);
    dt_fence_begin(&j->fence_of_mpi, (uint32_t)j->core.plan.nnodes);
    dt_timers_stop(&j->core.timers, DT_TIMER_STRAGGLERS);
    dt_timers_stop(&j->core.timers, DT_TIMER_AUXILIARIES);
    j->core.all_started = j->table_sent = false;
    j->rendezvous_port = 0;
}

void dt_job_start_generation(struct dt_job *j)
{
    struct dt_u32s map;

    dt_mpimap_make(&map, j->core.plan.node_of, j->core.ranks.np);
    j->core.generation++;
    dt_injections_begin(&j->injections, j->recovery.restart.restarts);
    reset_ranks(j);
    dt_refusal_forget(&j->refusal); /* what came while ranks were ended anyway is no news */
    dt_network_probe(&j->network);
    for (size_t i = 0; i < j->core.plan.nnodes; i++) {
        struct dt_hostlink *h = j->core.links.v[j->core.plan.nodes[i].host];

        send_start(j, &j->core.plan.nodes[i], map);
        h->phase = DT_HOST_STARTING;
        h->ready = h->went = h->started = false;
    }
    free(map.v);
    dt_rank_io_begin(&j->io);
    dt_verbose("generation %u: starting %u ranks as job %s", j->core.generation, j->core.ranks.np,
               j->id);
}

static bool all_ready(const struct dt_job *j)
{
    for (size_t i = 0; i < j->core.plan.nnodes; i++) {
        if (!j->core.links.v[j->core.plan.nodes[i].host]->ready)
            return false;
    }
    return true;
}

/* Horovod looks for its rendezvous by IPv4 only: its ranks would try in vain for a while, and
 * abort.
 */
static bool can_meet(struct dt_job *j)
{
    const char *addr = dt_network_address(&j->network, 0);
    char *text;

    if (!j->rendezvous_port || !strchr(addr, ':'))
        return true;
    text =
        dt_xasprintf("Horovod needs IPv4, and the other hosts reach %s at %s; --iface, or addr= in "
                     "a hostfile, chooses an address%s",
                     dt_core_host_name(&j->core, j->core.plan.nodes[0].host), addr,
                     j->core.generation == 1 ? "; nothing was started" : "");
    dt_refusal_add(&j->refusal, text, NULL, DT_EXIT_LAUNCH);
    dt_core_event(&j->core, DT_EV_SPAWN_FAILED);
    return false;
}

void dt_job_refuse_network(struct dt_job *j)
{
    char *text = dt_xasprintf("the hosts cannot reach each other%s; --iface chooses between their "
                              "networks",
                              j->core.generation == 1 ? ", nothing was started" : "");

    dt_refusal_add(&j->refusal, text, NULL, DT_EXIT_LAUNCH);
    dt_core_event(&j->core, DT_EV_SPAWN_FAILED);
}

static void send_go(struct dt_job *j)
{
    struct dt_u32s sizes = local_sizes(j);
    char *cluster =
        j->core.config->frameworks & DT_FRAMEWORK_TENSORFLOW ? tf_cluster(j) : dt_xstrdup("");

    for (uint32_t i = 0; i < j->core.plan.nnodes; i++) {
        const struct dt_msg_go go = { .generation = j->core.generation,
                                      .master_addr = (char *)dt_network_address(&j->network, 0),
                                      .addr = (char *)dt_network_address(&j->network, i),
                                      .iface = (char *)dt_network_interface(&j->network, i),
                                      .tf_cluster = cluster,
                                      .rendezvous_port = j->rendezvous_port,
                                      .local_sizes = sizes };

        dt_hostlink_send(j->core.links.v[j->core.plan.nodes[i].host], DT_MSG_GO, &go);
    }
    free(cluster);
    free(sizes.v);
}

/* No rank runs anywhere before every host can run its own and hosts can reach each other. */
void dt_job_maybe_go(struct dt_job *j)
{
    if (!j->network.is_known || !all_ready(j))
        return;
    dt_timers_stop(&j->core.timers, DT_TIMER_START);
    if (can_meet(j))
        send_go(j);
}

void dt_job_on_host_ready(struct dt_job *j, struct dt_hostlink *h, const struct dt_msg_ready *m)
{
    if (m->generation != j->core.generation || h->phase != DT_HOST_STARTING ||
        j->core.state != DT_JOB_STARTING)
        return;
    h->ready = true;
    h->orphans_ns = 0; /* the agent has swept its host */
    if (h->host == j->core.plan.nodes[0].host)
        j->rendezvous_port = m->rendezvous_port;
    dt_job_maybe_go(j);
}

static const char *awaited(const struct dt_job *j, size_t node)
{
    const struct dt_hostlink *h = j->core.links.v[j->core.plan.nodes[node].host];

    return h ? dt_hostlink_awaits(h) : NULL;
}

/* Names all hosts that wait for the same as node does, unless one before it has named them. */
static void say_awaited(const struct dt_job *j, size_t node)
{
    const char *what = awaited(j, node);
    struct dt_strbuf names = { 0 };

    for (size_t i = 0; i < j->core.plan.nnodes; i++) {
        const char *same = awaited(j, i);

        if (!same || strcmp(same, what) != 0)
            continue;
        if (i < node)
            return;
        dt_strbuf_printf(&names, "%s%s", i > node ? ", " : "",
                         dt_core_host_name(&j->core, j->core.plan.nodes[i].host));
    }
    dt_say("%s: %s: not done within the %d s of --start-timeout", dt_strbuf_text(&names), what,
           j->core.config->start_timeout_s);
    dt_strbuf_free(&names);
}

void dt_job_on_start_timeout(struct dt_job *j)
{
    size_t late = 0;

    if (j->core.state == DT_JOB_STOPPING || j->core.state == DT_JOB_ENDING)
        return;
    for (size_t i = 0; i < j->core.plan.nnodes; i++) {
        if (!awaited(j, i))
            continue;
        late++;
        say_awaited(j, i);
    }
    dt_say("%zu of %zu hosts are not ready after %d s (--start-timeout); nothing was started", late,
           j->core.plan.nnodes, j->core.config->start_timeout_s);
    dt_core_end(&j->core, DT_EV_STOP, DT_EXIT_LAUNCH,
                dt_xasprintf("%zu of %zu hosts were not ready within %d s", late,
                             j->core.plan.nnodes, j->core.config->start_timeout_s));
}

static bool all_started(const struct dt_job *j)
{
    for (size_t i = 0; i < j->core.plan.nnodes; i++) {
        if (!j->core.links.v[j->core.plan.nodes[i].host]->started)
            return false;
    }
    return true;
}

void dt_job_on_started(struct dt_job *j, struct dt_hostlink *h, const struct dt_msg_started *m)
{
    const struct dt_msg_started_rank *ranks = m->ranks.v;

    if (m->generation != j->core.generation || h->phase != DT_HOST_STARTING)
        return;
    h->phase = DT_HOST_RUNNING;
    h->started = true;
    for (uint32_t i = 0; i < m->ranks.n; i++) {
        struct dt_rank *r =
            ranks[i].rank < j->core.ranks.nprocs ? &j->core.ranks.v[ranks[i].rank] : NULL;

        if (!r)
            continue;
        r->pid = ranks[i].pid;
        free(r->device);
        r->device = dt_xstrdup(ranks[i].device);
    }
    j->core.all_started = all_started(j);
    if (j->core.all_started)
        dt_core_event(&j->core, DT_EV_STARTED);
}

void dt_job_on_spawn_failed(struct dt_job *j, struct dt_hostlink *h,
                            const struct dt_msg_spawn_failed *m)
{
    struct dt_strbuf text = { 0 };

    if (m->generation != j->core.generation || h->phase != DT_HOST_STARTING)
        return;
    h->phase = DT_HOST_IDLE;
    dt_signals_check_steps(&j->signals);
    dt_words_spawn(&text, m);
    dt_refusal_add(&j->refusal, text.data, dt_core_host_name(&j->core, h->host),
                   dt_exit_of_spawn(m->step, m->error));
    dt_core_event(&j->core, DT_EV_SPAWN_FAILED);
}

static void send_table(struct dt_job *j)
{
    struct dt_msg_addr *addrs = dt_xcalloc(j->core.ranks.np, sizeof *addrs);
    struct dt_msg_table m = { j->core.generation, { addrs, j->core.ranks.np }, { 0 } };

    for (uint32_t r = 0; r < j->core.ranks.np; r++) {
        const struct dt_plan_node *node = dt_plan_node_of(&j->core.plan, (int)r);

        addrs[r].port = j->core.ranks.v[r].port;
        addrs[r].host =
            (char *)(addrs[r].port ? dt_network_address(&j->network, (uint32_t)node->node_rank)
                                   : "");
        addrs[r].node = (uint32_t)node->node_rank;
    }
    for (size_t i = 0; i < j->core.plan.nnodes; i++)
        dt_xstrs_add(&m.hosts, dt_core_host_name(&j->core, j->core.plan.nodes[i].host));
    dt_hostlinks_send_all(&j->core.links, DT_MSG_TABLE, &m);
    dt_strs_free(&m.hosts);
    free(addrs);
    j->table_sent = true;
    dt_verbose("generation %u: all ranks have met", j->core.generation);
}

void dt_job_on_fence(struct dt_job *j, const struct dt_hostlink *h, const struct dt_msg_fence *m)
{
    const struct dt_plan_node *node = dt_plan_node_on(&j->core.plan, h->host);
    struct dt_fence *f = &j->fence_of_mpi;
    struct dt_msg_fenced fenced = { .generation = j->core.generation };

    if (m->generation != j->core.generation || !node ||
        !dt_fence_come(f, (uint32_t)node->node_rank, m->data.p, m->data.n))
        return;
    fenced.data = (struct dt_msg_blob){ (const uint8_t *)dt_strbuf_text(&f->data), f->data.len };
    dt_hostlinks_send_all(&j->core.links, DT_MSG_FENCED, &fenced);
    dt_fence_next(f);
}

void dt_job_on_rank_hello(struct dt_job *j, const struct dt_msg_rank_hello *m)
{
    struct dt_rank *r = m->rank < j->core.ranks.np ? &j->core.ranks.v[m->rank] : NULL;

    if (m->generation != j->core.generation || !r || r->hello)
        return;
    if (j->core.state == DT_JOB_RECOVERING) /* it is being killed, and a lost host has no address */
        return;
    dt_ranks_hello(&j->core.ranks, m->rank, m->port);
    j->recovery.restart.linked = true;
    if (j->core.ranks.hellos == j->core.ranks.np && !j->table_sent)
        send_table(j);
    else if (dt_failure_cause(&j->failure)) /* one that has ended left without dt_init */
        dt_core_event(&j->core, DT_EV_RANK_FAILED);
}
