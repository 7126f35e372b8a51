#include "cmd/request.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/foreign.h"
#include "cmd/pernode.h"
#include "cmd/stepgpus.h"
#include "launcher/base/inject.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/base/program/program.h"
#include "launcher/base/slurp.h"
#include "launcher/hosts/hostarg.h"
#include "launcher/hosts/hostfile.h"
#include "launcher/hosts/localhost.h"
#include "launcher/hosts/scheduler.h"
#include "launcher/place/frameworks.h"

enum { HOSTFILE_BYTES_MAX = 16 * 1024 * 1024 };

static int read_hostfile(struct dt_hostlist *hosts, const char *path, struct dt_error *err)
{
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    struct dt_strbuf text = { 0 };
    int rc = dt_slurp(&text, path, HOSTFILE_BYTES_MAX, err);

    if (rc < 0) {
        err->exit_code = DT_EXIT_USAGE;
        dt_error_prefix(err, "hostfile %s: ", name);
    } else {
        rc = dt_hostfile_parse(hosts, name, dt_strbuf_text(&text), text.len, err);
    }
    dt_strbuf_free(&text);
    return rc;
}

static const char *scheduler_variable(const char *name, void *arg)
{
    (void)arg;
    return getenv(name);
}

static int scheduler_file(struct dt_strbuf *text, const char *path, void *arg, struct dt_error *err)
{
    (void)arg;
    return dt_slurp(text, strcmp(path, "-") == 0 ? "./-" : path, HOSTFILE_BYTES_MAX, err);
}

static const struct dt_scheduler_view dti_view = { scheduler_variable, scheduler_file, NULL };

/* Returns the nodes of the Slurm allocation that srun reaches; empty outside of one. */
static const struct dt_hostlist *srun_nodes(void)
{
    static struct dt_hostlist nodes;
    static bool known;
    char path[PATH_MAX];

    if (!known && dt_scheduler_is_slurm(&dti_view) &&
        dt_program_find(path, sizeof path, "srun", getenv("PATH")) == 0)
        dt_scheduler_hosts(&nodes, &dti_view, NULL);
    known = true;
    return &nodes;
}

/* Only SSH can use another user or a port. */
bool dt_request_reached_by_srun(const struct dt_host *host)
{
    return !host->user && !host->port && dt_hostlist_find(srun_nodes(), host->name);
}

/* Reads the hosts from which -H chooses: the hostfile's, else the allocation's. Returns their
 * source, or NULL if there is none. *rc is -1 on failure. */
static const char *read_given(const struct dt_options *o, struct dt_hostlist *hosts, int *rc,
                              struct dt_error *err)
{
    if (o->hostfile) {
        *rc = read_hostfile(hosts, o->hostfile, err);
        return "the hostfile";
    }
    *rc = dt_scheduler_hosts(hosts, &dti_view, err);
    return dt_scheduler_name(&dti_view);
}

static int read_hosts(const struct dt_options *o, struct dt_hostlist *hosts,
                      struct dt_localhost *here, struct dt_error *err)
{
    struct dt_hostlist named = { 0 };
    const char *source = NULL;
    int rc = 0;

    for (uint32_t i = 0; i < o->hosts.n && rc == 0; i++)
        rc = dt_hostarg_parse(&named, o->hosts.v[i], err);
    if (rc == 0)
        source = read_given(o, hosts, &rc, err);
    if (rc == 0 && source && named.n)
        rc = dt_hostlist_filter(hosts, source, &named, dt_localhost_is, here, err);
    if (!source) {
        *hosts = named;
        named = (struct dt_hostlist){ 0 };
    }
    if (rc == 0 && !hosts->n)
        dt_hostlist_add(hosts, "localhost")->slots = o->np ? o->np : 1;
    if (rc == 0)
        rc = dt_hostlist_merge_local(hosts, dt_localhost_is, here, err);
    if (rc == 0)
        rc = dt_hostlist_drop_empty(hosts, err);
    dt_hostlist_free(&named);
    return rc;
}

/* Returns "16 ranks on 8 slots: 2 ranks per slot, devices are shared (...)". */
static char *warning_of(const struct dt_plan *plan, const struct dt_hostlist *hosts)
{
    int most = 0;
    bool even = plan->nnodes == hosts->n;

    for (size_t i = 0; i < plan->nnodes; i++) {
        const struct dt_plan_node *node = &plan->nodes[i];
        int slots = hosts->v[node->host].slots;
        int ranks = (int)node->ranks.n;
        int per_slot = (ranks + slots - 1) / slots;

        even = even && ranks % slots == 0 && (i == 0 || per_slot == most);
        most = per_slot > most ? per_slot : most;
    }
    return dt_xasprintf("%d ranks on %d slot%s: %s%d ranks per slot, devices are shared "
                        "(--no-oversubscribe refuses this)",
                        plan->np, plan->slots, plan->slots == 1 ? "" : "s", even ? "" : "up to ",
                        most);
}

/* One rank on each host may be meant: a launcher then starts the processes of its host. */
static void warn_of_launcher(const struct dt_options *o, const struct dt_plan *plan)
{
    const char *instead, *launcher = dt_foreign_launcher(&o->job.argv, &instead);

    if (launcher && (size_t)plan->np > plan->nnodes)
        dt_say("%s is a launcher, and each of the %d ranks starts a job of its own with it; dtrun "
               "takes its place: write %s instead, see dtrun-migrate(7)",
               launcher, plan->np, instead);
}

/* A fault that is never triggered would make a test of recovery pass for no reason. */
static int check_faults(const struct dt_options *o, const struct dt_plan *plan,
                        struct dt_error *err)
{
    for (uint32_t i = 0; i < o->job.inject.n; i++) {
        const char *text = o->job.inject.v[i];
        struct dt_inject fault;

        if (dt_inject_parse(&fault, text, err) < 0)
            return -1;
        if (fault.rank >= plan->np)
            return dt_error_usage(err, "--inject %s: the job has no rank %lld, only %d rank%s",
                                  text, (long long)fault.rank, plan->np, plan->np == 1 ? "" : "s");
        if (fault.node >= (int64_t)plan->nnodes)
            return dt_error_usage(err, "--inject %s: the job has no node %lld (its nodes: %zu)",
                                  text, (long long)fault.node, plan->nnodes);
    }
    return 0;
}

/* A host for which the user gave neither slots nor GPUs gets one slot for each rank that it is to
 * run, so that each rank has its own device. */
static void give_slots(struct dt_hostlist *hosts, int slots)
{
    for (size_t i = 0; i < hosts->n; i++)
        if (!hosts->v[i].slots_given && !hosts->v[i].gpus_given)
            hosts->v[i].slots = slots;
}

/* A batch job that was made for torchrun has one task on each host, and thus one slot. If the user
 * says how many ranks a host runs, each of them has a slot, and so a device of its own. */
static void raise_granted_slots(struct dt_hostlist *hosts, int slots)
{
    for (size_t i = 0; i < hosts->n; i++)
        if (hosts->v[i].slots_granted && hosts->v[i].slots < slots)
            hosts->v[i].slots = slots;
}

static int give_all_slots(const struct dt_options *o, struct dt_hostlist *hosts,
                          struct dt_error *err)
{
    if (o->slots_per_host)
        give_slots(hosts, o->slots_per_host);
    if (o->per_node < 0)
        return dt_pernode_slots(hosts, o->per_node, "", err);
    if (o->per_node)
        give_slots(hosts, o->per_node);
    if (!o->job.no_oversubscribe)
        raise_granted_slots(hosts, o->per_node);
    return 0;
}

static int take_first_hosts(struct dt_hostlist *hosts, int n, struct dt_error *err)
{
    if (n == 0)
        return 0;
    if ((size_t)n > hosts->n)
        return dt_error_usage(err, "--nnodes %d: only %zu host%s given, see -H and --hostfile", n,
                              hosts->n, hosts->n == 1 ? " is" : "s are");
    for (size_t i = (size_t)n; i < hosts->n; i++)
        hosts->v[i].removed = true;
    dt_hostlist_drop_removed(hosts);
    return 0;
}

static int servers(const struct dt_options *o)
{
    if (!dt_frameworks_have_auxiliaries(o->job.frameworks))
        return 0;
    return o->num_servers ? o->num_servers : DT_SERVERS_AS_RANKS;
}

static int make_plan(const struct dt_options *o, struct dt_hostlist *hosts, struct dt_plan *plan,
                     struct dt_error *err)
{
    const struct dt_placement how = { .map_by = o->job.map_by,
                                      .per_node = o->per_node > 0 ? o->per_node : 0,
                                      .no_oversubscribe = o->job.no_oversubscribe,
                                      .servers = servers(o) };

    if (take_first_hosts(hosts, o->nnodes, err) < 0 || give_all_slots(o, hosts, err) < 0)
        return -1;
    if (dt_plan_make(plan, hosts, o->np, &how, err) == 0)
        return 0;
    return o->per_node > 0 ? dt_error_prefix(err, "--npernode %d: ", o->per_node) : -1;
}

/* A setting of a single host, in -H or the hostfile, wins. */
static void give_ssh(const struct dt_options *o, struct dt_hostlist *hosts)
{
    for (size_t i = 0; i < hosts->n; i++) {
        struct dt_host *h = &hosts->v[i];

        if (!h->port)
            h->port = o->ssh_port;
        if (!h->user && o->ssh_user)
            h->user = dt_xstrdup(o->ssh_user);
        if (!h->identity && o->ssh_identity)
            h->identity = dt_xstrdup(o->ssh_identity);
    }
}

static bool uses_srun(const struct dt_options *o, const struct dt_hostlist *hosts)
{
    if (o->transport == DT_TRANSPORT_SRUN)
        return true;
    for (size_t i = 0; i < hosts->n; i++) {
        if (!hosts->v[i].local && dt_request_reached_by_srun(&hosts->v[i]))
            return o->transport == DT_TRANSPORT_AUTO && !o->rsh;
    }
    return false;
}

static int check_stdin(const struct dt_options *o, const struct dt_plan *plan, struct dt_error *err)
{
    if (o->job.stdin_rank < plan->np)
        return 0;
    return dt_error_usage(err, "--stdin %d: the job has only %d rank%s, numbered from 0",
                          o->job.stdin_rank, plan->np, plan->np == 1 ? "" : "s");
}

/* Grid Engine's name for this host may be longer than the kernel's, and /etc/hosts may lack it. A
 * job may have no slot left there for a task that leads back to this host. */
static void find_names_of_this_host(struct dt_localhost *here)
{
    const char *name = getenv("HOSTNAME");

    dt_localhost_init(here, "/etc/hosts");
    if (getenv("PE_HOSTFILE") && name && *name)
        dt_xstrs_add(&here->names, name);
}

int dt_request_make(const struct dt_options *options, struct dt_hostlist *hosts,
                    struct dt_plan *plan, struct dt_error *err)
{
    struct dt_localhost here;
    int rc;

    for (uint32_t i = 0; i < options->notes.n; i++)
        dt_say("%s", options->notes.v[i]);
    find_names_of_this_host(&here);
    rc = read_hosts(options, hosts, &here, err);
    dt_localhost_free(&here);
    give_ssh(options, hosts);
    if (rc == 0)
        rc = make_plan(options, hosts, plan, err);
    if (rc == 0)
        rc = check_faults(options, plan, err);
    if (rc == 0)
        rc = check_stdin(options, plan, err);
    if (rc < 0) {
        dt_hostlist_free(hosts);
        dt_plan_free(plan);
        return -1;
    }
    if (!options->dry_run && uses_srun(options, hosts))
        dt_stepgpus_ask(hosts);
    warn_of_launcher(options, plan);
    if (plan->oversubscribed) {
        char *warning = warning_of(plan, hosts);

        dt_say("%s", warning);
        free(warning);
    }
    return 0;
}
