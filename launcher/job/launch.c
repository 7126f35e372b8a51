#include "launcher/job/launch.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/error.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/job/start.h"
#include "launcher/job/state/exitpolicy.h"
#include "launcher/place/frameworks.h"
#include "launcher/place/frameworks_go.h"
#include "launcher/place/mpimap.h"
#include "launcher/watch/words.h"

enum { SLOW_MS = 30 * 1000 }; /* without --start-timeout: when dtrun says what it waits for */

static struct dt_hostlink *link_of(const struct dt_launch *l, size_t node)
{
    return l->core->links.v[l->core->plan.nodes[node].host];
}

static size_t count_unusable(const struct dt_launch *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->core->plan.nnodes; i++)
        n += link_of(l, i)->phase != DT_HOST_IDLE;
    return n;
}

static bool is_named_twice(const struct dt_launch *l)
{
    size_t one, other;
    bool found = dt_core_find_duplicate_hosts(l->core, &one, &other);

    if (found)
        dt_say("%s and %s are one machine: name it once, with all its slots; nothing was started",
               dt_core_host_name(l->core, one), dt_core_host_name(l->core, other));
    return found;
}

void dt_launch_check_hosts(struct dt_launch *l)
{
    size_t unusable = count_unusable(l);

    if (unusable == 0 && !is_named_twice(l) && dt_network_list_addresses(l->network)) {
        dt_core_event(l->core, DT_EV_USABLE);
        return;
    }
    if (unusable > 0 && l->core->plan.nnodes > 1)
        dt_say("%zu of %zu hosts cannot be used; nothing was started", unusable,
               l->core->plan.nnodes);
    dt_core_end(l->core, DT_EV_UNUSABLE, DT_EXIT_LAUNCH, dt_xstrdup("hosts cannot be used"));
}

/* Without --resume or --fresh, a job that finds checkpoints at its first start is refused: its
 * ranks would continue from them although nobody asked for that. This machine may not see the
 * directory, so the agent checks it. */
static uint8_t need_of_first_host(const struct dt_launch *l)
{
    const struct dt_job_config *c = l->core->config;

    if (c->resume && !l->restart->saved)
        return DT_CHECKPOINT_READABLE;
    return !c->resume && !c->fresh && l->restart->restarts == 0 ? DT_CHECKPOINT_UNUSED
                                                                : DT_CHECKPOINT_USABLE;
}

/* If a host that was lost comes back without the file system of the checkpoints, the ranks would
 * start from the beginning. */
static uint8_t checkpoint_need(const struct dt_launch *l, const struct dt_plan_node *node)
{
    if (l->core->links.v[node->host]->aside && l->restart->newest >= 0)
        return DT_CHECKPOINT_THERE;
    return l->core->config->checkpoint_dir && node->ranks.v[0] == 0 ? need_of_first_host(l) : 0;
}

/* Connections to the port of the previous generation may linger for a minute (TIME_WAIT), in which
 * rank 0 can listen there only if it sets SO_REUSEADDR. Another program may have taken the port. */
static uint16_t master_port(const struct dt_launch *l)
{
    uint32_t again = l->core->generation - 1;
    uint32_t port = link_of(l, 0)->free_port + (uint32_t)DT_PORT_MASTER;

    if (again > 0 && port + DT_FREE_PORTS <= UINT16_MAX)
        port += DT_PORT_MASTERS + (again - 1) % (DT_FREE_PORTS - DT_PORT_MASTERS);
    return (uint16_t)port;
}

static void list_hosts(const struct dt_launch *l, struct dt_strs *hosts)
{
    const struct dt_plan *plan = &l->core->plan;

    for (size_t i = 0; i < plan->nnodes; i++)
        dt_xstrs_add(hosts, dt_core_host_name(l->core, plan->nodes[i].host));
}

/* Each host gets the names of all, so with more hosts than this they would slow every start. */
enum { NAMED_HOSTS_MAX = 1024 };

/* What START says for MPI, to all hosts alike. */
struct for_mpi {
    struct dt_u32s map;
    struct dt_strs hosts; /* empty if there is only one, or more than NAMED_HOSTS_MAX */
};

static void describe_for_mpi(struct for_mpi *f, const struct dt_launch *l)
{
    const struct dt_plan *plan = &l->core->plan;

    *f = (struct for_mpi){ 0 };
    dt_mpimap_make(&f->map, plan->node_of, l->core->ranks.np);
    if (plan->nnodes > 1 && plan->nnodes <= NAMED_HOSTS_MAX)
        list_hosts(l, &f->hosts);
}

static void send_start(struct dt_launch *l, const struct dt_plan_node *node,
                       const struct for_mpi *for_mpi)
{
    const struct dt_job_config *c = l->core->config;
    struct dt_msg_start m = dt_start_of(c, node->host, l->core->links.v[node->host]->dir);

    m.generation = l->core->generation;
    m.job_id = (char *)(uintptr_t)l->job_id;
    m.np = l->core->ranks.np;
    m.nodes = (uint32_t)l->core->plan.nnodes;
    m.node_rank = (uint32_t)node->node_rank;
    m.restart_count = l->restart->restarts;
    m.ranks = node->ranks;
    m.auxiliaries = node->auxiliaries;
    m.servers = (uint32_t)dt_plan_servers(&l->core->plan);
    m.master_port = master_port(l);
    m.scheduler_port = (uint16_t)(link_of(l, 0)->free_port + DT_PORT_SCHEDULER);
    m.checkpoint_dir = (char *)(uintptr_t)l->checkpoint_dir;
    m.check_checkpoint_dir = checkpoint_need(l, node);
    m.fresh = c->fresh && !l->restart->saved;
    m.resume = c->resume && !l->restart->saved;
    m.mpi_map = for_mpi->map;
    m.hosts = for_mpi->hosts;
    m.universe = l->core->ranks.np > (uint32_t)l->core->plan.slots ? l->core->ranks.np
                                                                   : (uint32_t)l->core->plan.slots;
    memcpy(m.secret, l->secret, sizeof m.secret);
    dt_injections_select(l->injections, node, &m.inject);
    dt_hostlink_send(l->core->links.v[node->host], DT_MSG_START, &m);
    dt_strs_free(&m.inject);
}

static void reset(struct dt_launch *l)
{
    /* refusals that came while the ranks were being ended anyway do not count */
    dt_refusal_forget(&l->refusal);
    dt_fence_begin(&l->fence_of_mpi, (uint32_t)l->core->plan.nnodes);
    l->rendezvous_port = 0;
}

/* The first time, --start-timeout runs already, because it also limits connecting. */
static void limit_start(const struct dt_launch *l)
{
    int limit_s = l->core->config->start_timeout_s;

    if (!limit_s || !dt_timers_is_running(&l->core->timers, DT_TIMER_START))
        dt_timers_set(&l->core->timers, DT_TIMER_START,
                      limit_s ? (uint64_t)limit_s * 1000 : SLOW_MS);
}

void dt_launch_start(struct dt_launch *l)
{
    struct for_mpi for_mpi;

    reset(l);
    describe_for_mpi(&for_mpi, l);
    for (size_t i = 0; i < l->core->plan.nnodes; i++) {
        struct dt_hostlink *h = link_of(l, i);

        send_start(l, &l->core->plan.nodes[i], &for_mpi);
        h->phase = DT_HOST_STARTING;
        h->ready = h->went = h->started = false;
    }
    free(for_mpi.map.v);
    dt_strs_free(&for_mpi.hosts);
    limit_start(l);
    dt_verbose("generation %u: starting %u ranks as job %s", l->core->generation, l->core->ranks.np,
               l->job_id);
}

static bool all_ready(const struct dt_launch *l)
{
    for (size_t i = 0; i < l->core->plan.nnodes; i++) {
        if (!link_of(l, i)->ready)
            return false;
    }
    return true;
}

static bool has_rendezvous_address(struct dt_launch *l)
{
    const char *addr = dt_network_address(l->network, 0);
    const char *lacks = l->rendezvous_port ? dt_frameworks_go_lacks(addr) : NULL;
    char *text;

    if (!lacks)
        return true;
    text = dt_xasprintf("%s, and the other hosts reach %s at %s; --iface, or addr= in a hostfile, "
                        "chooses an address%s",
                        lacks, dt_core_host_name(l->core, l->core->plan.nodes[0].host), addr,
                        l->core->generation == 1 ? "; nothing was started" : "");
    dt_refusal_add(&l->refusal, text, NULL, DT_EXIT_LAUNCH);
    dt_core_event(l->core, DT_EV_SPAWN_FAILED);
    return false;
}

void dt_launch_refuse_network(struct dt_launch *l)
{
    char *text = dt_xasprintf("the hosts cannot reach each other%s; --iface, or addr= in a "
                              "hostfile, chooses between their networks",
                              l->core->generation == 1 ? ", nothing was started" : "");

    dt_refusal_add(&l->refusal, text, NULL, DT_EXIT_LAUNCH);
    dt_core_event(l->core, DT_EV_SPAWN_FAILED);
}

static struct dt_frameworks_node *list_nodes(const struct dt_launch *l)
{
    struct dt_frameworks_node *nodes = dt_xcalloc(l->core->plan.nnodes, sizeof *nodes);

    for (uint32_t i = 0; i < l->core->plan.nnodes; i++) {
        nodes[i] = (struct dt_frameworks_node){ .addr = dt_network_address(l->network, i),
                                                .free_port = link_of(l, i)->free_port };
    }
    return nodes;
}

/* Returns the node rank of a host whose ranks need more ports than it has, or plan.nnodes. */
static uint32_t find_short_of_ports(const struct dt_launch *l, const struct dt_frameworks_node *v)
{
    uint32_t i = 0;

    while (i < l->core->plan.nnodes &&
           l->core->plan.nodes[i].ranks.n <= dt_frameworks_go_ports(&v[i]))
        i++;
    return i;
}

static void refuse_for_ports(struct dt_launch *l, uint32_t i, const struct dt_frameworks_node *node)
{
    const struct dt_plan_node *of = &l->core->plan.nodes[i];
    char *text = dt_xasprintf(
        "--env tensorflow gives each of the %u ranks of %s a port from %u on, "
        "but 65535 is the last port%s",
        of->ranks.n, dt_core_host_name(l->core, of->host), node->free_port + DT_PORT_TENSORFLOW,
        l->core->generation == 1 ? "; nothing was started" : "");

    dt_refusal_add(&l->refusal, text, NULL, DT_EXIT_LAUNCH);
    dt_core_event(l->core, DT_EV_SPAWN_FAILED);
}

static void send_go(struct dt_launch *l, const struct dt_frameworks_node *nodes)
{
    struct dt_msg_go go = { .generation = l->core->generation,
                            .master_addr = (char *)dt_network_address(l->network, 0),
                            .rendezvous_port = l->rendezvous_port };

    dt_frameworks_go_fill(&go, l->core->config->frameworks, &l->core->plan, nodes);
    for (uint32_t i = 0; i < l->core->plan.nnodes; i++) {
        go.addr = (char *)dt_network_address(l->network, i);
        go.iface = (char *)dt_network_interface(l->network, i);
        dt_hostlink_send(link_of(l, i), DT_MSG_GO, &go);
    }
    dt_frameworks_go_free(&go);
    dt_ranks_go(&l->core->ranks);
}

static void send_go_or_refuse(struct dt_launch *l)
{
    struct dt_frameworks_node *nodes = list_nodes(l);
    bool numbers_ports = l->core->config->frameworks & DT_FRAMEWORK_TENSORFLOW;
    uint32_t i = numbers_ports ? find_short_of_ports(l, nodes) : (uint32_t)l->core->plan.nnodes;

    if (i < l->core->plan.nnodes)
        refuse_for_ports(l, i, &nodes[i]);
    else
        send_go(l, nodes);
    free(nodes);
}

void dt_launch_maybe_go(struct dt_launch *l)
{
    if (!l->network->is_known || !all_ready(l))
        return;
    dt_timers_stop(&l->core->timers, DT_TIMER_START);
    if (has_rendezvous_address(l))
        send_go_or_refuse(l);
}

void dt_launch_on_ready(struct dt_launch *l, struct dt_hostlink *h, const struct dt_msg_ready *m)
{
    if (m->generation != l->core->generation)
        return;
    h->orphans_ns = 0; /* the agent has swept its host */
    if (h->phase != DT_HOST_STARTING || l->core->state != DT_JOB_STARTING)
        return;
    h->ready = true;
    if (h->host == l->core->plan.nodes[0].host)
        l->rendezvous_port = m->rendezvous_port;
    dt_launch_maybe_go(l);
}

static const char *awaited(const struct dt_launch *l, size_t node)
{
    const struct dt_hostlink *h = link_of(l, node);

    return h ? dt_hostlink_awaits(h) : NULL;
}

/* Names all hosts that wait for the same thing as this one. Does nothing if an earlier host waits
 * for it, because then all were named with that one. */
static void say_awaited(const struct dt_launch *l, size_t node, const char *since)
{
    const char *what = awaited(l, node);
    struct dt_strbuf names = { 0 };

    for (size_t i = 0; i < l->core->plan.nnodes; i++) {
        const char *same = awaited(l, i);

        if (!same || strcmp(same, what) != 0)
            continue;
        if (i < node)
            return;
        dt_strbuf_printf(&names, "%s%s", i > node ? ", " : "",
                         dt_core_host_name(l->core, l->core->plan.nodes[i].host));
    }
    dt_say("%s: %s: not done %s", dt_strbuf_text(&names), what, since);
    dt_strbuf_free(&names);
}

/* Returns how many hosts are not ready, and names them. */
static size_t say_late(const struct dt_launch *l, const char *since)
{
    size_t late = 0;

    for (size_t i = 0; i < l->core->plan.nnodes; i++) {
        if (!awaited(l, i))
            continue;
        late++;
        say_awaited(l, i, since);
    }
    return late;
}

static void warn_of_slow_start(const struct dt_launch *l)
{
    char *since = dt_xasprintf("after %d s; is a file system with the working directory or the "
                               "program stuck there? (--start-timeout SECONDS ends such a job)",
                               SLOW_MS / 1000);

    if (l->core->state == DT_JOB_STARTING)
        say_late(l, since);
    free(since);
}

static void give_up_start(struct dt_launch *l)
{
    char *since =
        dt_xasprintf("within the %d s of --start-timeout", l->core->config->start_timeout_s);
    size_t late = say_late(l, since);

    free(since);
    dt_say("%zu of %zu hosts are not ready after %d s (--start-timeout)%s", late,
           l->core->plan.nnodes, l->core->config->start_timeout_s,
           l->core->generation <= 1 ? "; nothing was started" : "");
    dt_core_end(l->core, DT_EV_STOP, DT_EXIT_LAUNCH,
                dt_xasprintf("%zu of %zu hosts were not ready within %d s", late,
                             l->core->plan.nnodes, l->core->config->start_timeout_s));
}

void dt_launch_on_timeout(struct dt_launch *l)
{
    if (l->core->state == DT_JOB_STOPPING || l->core->state == DT_JOB_ENDING)
        return;
    if (l->core->config->start_timeout_s)
        give_up_start(l);
    else
        warn_of_slow_start(l);
}

static bool all_started(const struct dt_launch *l)
{
    for (size_t i = 0; i < l->core->plan.nnodes; i++) {
        if (!link_of(l, i)->started)
            return false;
    }
    return true;
}

void dt_launch_on_started(struct dt_launch *l, struct dt_hostlink *h,
                          const struct dt_msg_started *m)
{
    const struct dt_msg_started_rank *ranks = m->ranks.v;

    if (m->generation != l->core->generation || h->phase != DT_HOST_STARTING)
        return;
    h->phase = DT_HOST_RUNNING;
    h->started = true;
    h->aside = false;
    for (uint32_t i = 0; i < m->ranks.n; i++) {
        struct dt_rank *r =
            ranks[i].rank < l->core->ranks.nprocs ? &l->core->ranks.v[ranks[i].rank] : NULL;

        if (!r)
            continue;
        r->pid = ranks[i].pid;
        free(r->device);
        r->device = dt_xstrdup(ranks[i].device);
    }
    l->core->all_started = all_started(l);
    if (l->core->all_started)
        dt_core_event(l->core, DT_EV_STARTED);
}

bool dt_launch_on_spawn_failed(const struct dt_launch *l, struct dt_hostlink *h,
                               const struct dt_msg_spawn_failed *m)
{
    if (m->generation != l->core->generation || h->phase != DT_HOST_STARTING)
        return false;
    h->phase = DT_HOST_IDLE;
    return true;
}

void dt_launch_refuse(struct dt_launch *l, const struct dt_hostlink *h,
                      const struct dt_msg_spawn_failed *why)
{
    struct dt_strbuf text = { 0 };

    dt_words_spawn(&text, why, !l->core->config->hosts->v[h->host].local);
    dt_refusal_add(&l->refusal, text.data, dt_core_host_name(l->core, h->host),
                   dt_exit_of_spawn(why->step, why->error));
}

static void send_table(struct dt_launch *l)
{
    struct dt_msg_addr *addrs = dt_xcalloc(l->core->ranks.np, sizeof *addrs);
    struct dt_msg_table m = { l->core->generation, { addrs, l->core->ranks.np }, { 0 } };

    for (uint32_t r = 0; r < l->core->ranks.np; r++) {
        const struct dt_plan_node *node = dt_plan_node_of(&l->core->plan, (int)r);

        addrs[r].port = l->core->ranks.v[r].port;
        addrs[r].host =
            (char *)(addrs[r].port ? dt_network_address(l->network, (uint32_t)node->node_rank)
                                   : "");
        addrs[r].node = (uint32_t)node->node_rank;
    }
    list_hosts(l, &m.hosts);
    dt_hostlinks_send_all(&l->core->links, DT_MSG_TABLE, &m);
    dt_strs_free(&m.hosts);
    free(addrs);
    dt_verbose("generation %u: all ranks have called dt_init", l->core->generation);
}

void dt_launch_on_fence(struct dt_launch *l, const struct dt_hostlink *h,
                        const struct dt_msg_fence *m)
{
    const struct dt_plan_node *node = dt_plan_node_on(&l->core->plan, h->host);
    struct dt_fence *f = &l->fence_of_mpi;
    struct dt_msg_fenced fenced = { .generation = l->core->generation };

    if (m->generation != l->core->generation || !node ||
        !dt_fence_arrive(f, (uint32_t)node->node_rank, m->data.p, m->data.n))
        return;
    fenced.data = (struct dt_msg_blob){ (const uint8_t *)dt_strbuf_text(&f->data), f->data.len };
    dt_hostlinks_send_all(&l->core->links, DT_MSG_FENCED, &fenced);
    dt_fence_next(f);
}

void dt_launch_on_share(struct dt_launch *l, const struct dt_hostlink *h,
                        const struct dt_msg_share *m)
{
    const struct dt_plan_node *node = dt_plan_node_on(&l->core->plan, h->host);

    if (m->generation == l->core->generation && node && m->node == (uint32_t)node->node_rank)
        dt_hostlinks_send_all(&l->core->links, DT_MSG_SHARE, m);
}

bool dt_launch_on_rank_hello(struct dt_launch *l, const struct dt_msg_rank_hello *m)
{
    struct dt_ranks *ranks = &l->core->ranks;
    struct dt_rank *r = m->rank < ranks->np ? &ranks->v[m->rank] : NULL;

    if (m->generation != l->core->generation || !r || r->hello)
        return false;
    /* this rank is being killed, and a lost host has no address */
    if (l->core->state == DT_JOB_RECOVERING)
        return false;
    dt_ranks_hello(ranks, m->rank, m->port);
    l->restart->linked = true;
    if (ranks->hellos == ranks->np)
        send_table(l);
    return true;
}

void dt_launch_free(struct dt_launch *l)
{
    dt_fence_free(&l->fence_of_mpi);
    dt_refusal_forget(&l->refusal);
}
