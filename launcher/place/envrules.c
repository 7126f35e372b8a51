#include "launcher/place/envrules.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"
#include "launcher/place/envlist.h"
#include "launcher/place/frameworks.h"
#include "runtime/wire/env.h"

/* These describe the launching host or login; every host has its own. */
static const char of_host[] =
    "HOME USER LOGNAME SHELL MAIL HOSTNAME HOST SSH_* DISPLAY XAUTHORITY WAYLAND_* XDG_* DBUS_* "
    "TMPDIR TMP TERM_* PWD OLDPWD SHLVL _ BASH_FUNC_* CUDA_VISIBLE_DEVICES "
    "NVIDIA_VISIBLE_DEVICES " DT_ENV_HOSTID " " DT_ENV_AGENT;

/* These belong to another launcher, or to the job that dtrun itself runs in. Those of make(1) name
 * descriptors of its jobserver, whose numbers a rank uses for others. */
static const char of_launchers[] =
    "PMI_* PMIX_* PRTE_* HYDRA_* OMPI_COMM_WORLD_* OMPI_UNIVERSE_SIZE OMPI_MCA_ess* "
    "OMPI_MCA_orte_* OMPI_MCA_initial_wdir OMPI_COMMAND OMPI_ARGV OMPI_NUM_APP_CTX "
    "OMPI_FIRST_RANKS OMPI_APP_CTX_NUM_PROCS OMPI_FILE_LOCATION MV2_COMM_WORLD_* SLURM_STEP* "
    "SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_GTIDS SLURM_TASK_PID SLURM_SRUN_* "
    "SLURM_LAUNCH_NODE_IPADDR SLURM_DISTRIBUTION SLURM_CPU_BIND* SLURM_MEM_BIND* "
    "SLURM_GPUS_ON_NODE SLURM_TOPOLOGY_ADDR* SLURMD_NODENAME TORCHELASTIC_* HOROVOD_RANK "
    "HOROVOD_SIZE HOROVOD_LOCAL_* HOROVOD_CROSS_* HOROVOD_HOSTNAME HOROVOD_GLOO_RENDEZVOUS_* "
    "MAKEFLAGS MFLAGS " DT_ENV_ALONE;

/* The numbers that dtrun tells every rank: those of its place, and others. */
enum { RANK, SIZE, LOCAL_RANK, SHOWN_LOCAL_RANK, LOCAL_SIZE, NODE_RANK, NODES };
enum { RESTARTS = NODES + 1, MAX_RESTARTS, PORT, AGENT_FD, PMI_FD, NUMBERS };

static const char by_place[] =
    "the rank's place: the order of hosts in -H or --hostfile decides it";

/* The variables that dtrun sets for every rank, and how the user can decide their values. */
static const struct {
    const char *decided_by;
    const char *names[4];
} per_rank[] = {
    [RANK] = { by_place, { DT_ENV_RANK, "RANK", "ROLE_RANK", "PMI_RANK" } },
    [SIZE] = { "-np decides it", { DT_ENV_SIZE, "WORLD_SIZE", "ROLE_WORLD_SIZE", "PMI_SIZE" } },
    [LOCAL_RANK] = { by_place, { DT_ENV_LOCAL_RANK, "MPI_LOCALRANKID" } },
    [SHOWN_LOCAL_RANK] = { by_place, { "LOCAL_RANK" } },
    [LOCAL_SIZE] = { "the slots in -H or --hostfile decide it",
                     { DT_ENV_LOCAL_SIZE, "LOCAL_WORLD_SIZE", "MPI_LOCALNRANKS" } },
    [NODE_RANK] = { "the order of hosts in -H or --hostfile decides it",
                    { DT_ENV_NODE_RANK, "NODE_RANK", "GROUP_RANK" } },
    [NODES] = { "-H or --hostfile decides it", { DT_ENV_NODES, "GROUP_WORLD_SIZE" } },
    [RESTARTS] = { "it counts restarts; --max-restarts limits them",
                   { DT_ENV_RESTART_COUNT, "TORCHELASTIC_RESTART_COUNT" } },
    [MAX_RESTARTS] = { "--max-restarts decides it", { "TORCHELASTIC_MAX_RESTARTS" } },
    [PORT] = { "a free port of the first host is taken", { "MASTER_PORT" } },
    [AGENT_FD] = { "it is the rank's connection to its agent", { DT_ENV_AGENT_FD } },
    [PMI_FD] = { "it is the rank's connection for MPI", { "PMI_FD" } },
    { "every job gets its own", { DT_ENV_JOB_ID, "TORCHELASTIC_RUN_ID" } },
    { "it grows with every restart", { DT_ENV_GENERATION } },
    { "--checkpoint-dir decides it", { DT_ENV_CHECKPOINT_DIR } },
    { "--output-dir decides it", { DT_ENV_OUTPUT_DIR } },
    { "--fresh decides it", { DT_ENV_FRESH } },
    { "--resume decides it", { DT_ENV_RESUME } },
    { "--iface, or addr= of the first host in a hostfile, decides it", { "MASTER_ADDR" } },
};

enum { NAMES = sizeof per_rank->names / sizeof *per_rank->names };

static bool is_name(const char *s, size_t n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

    if (n == 0 || !strchr(letters, s[0]))
        return false;
    for (size_t i = 1; i < n; i++)
        if (!strchr(letters, s[i]) && !(s[i] >= '0' && s[i] <= '9'))
            return false;
    return true;
}

/* Whether one of the patterns, which blanks separate, matches. One that ends in a star matches
 * every name with that beginning. */
static bool matches(const char *patterns, const char *name, size_t n)
{
    for (size_t m; *patterns; patterns += m + (patterns[m] == ' ')) {
        bool star;

        m = strcspn(patterns, " ");
        star = m && patterns[m - 1] == '*';
        if ((star ? n >= m - 1 : n == m) && memcmp(patterns, name, m - star) == 0)
            return true;
    }
    return false;
}

/* Returns how the user decides the value of a variable that dtrun sets for every rank, or NULL for
 * any other variable. */
static const char *decided_by(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof per_rank / sizeof *per_rank; i++)
        for (size_t k = 0; k < NAMES && per_rank[i].names[k]; k++)
            if (matches(per_rank[i].names[k], name, n))
                return per_rank[i].decided_by;
    return NULL;
}

int dt_env_check_rule(const char *rule, struct dt_error *err)
{
    const char *option = rule[0] == 'u' ? "--unset" : "-x";
    const char *name = rule + 2, *why;
    size_t n = strcspn(name, "=");

    if (rule[0] == 'x' && !name[n] && n && name[n - 1] == '*')
        return n == 1 || is_name(name, n - 1)
                   ? 0
                   : dt_error_usage(err, "-x %s: a star can stand only at the end of a name", name);
    if (!is_name(name, n) || (rule[0] == 'u' && name[n]))
        return dt_error_usage(err, "%s %.*s: this cannot be the name of a variable", option, (int)n,
                              name);
    why = decided_by(name, n);
    if (why)
        return dt_error_usage(err, "%s %.*s: dtrun sets it for every rank; %s", option, (int)n,
                              name, why);
    return 0;
}

/* Passes on every variable that pattern matches, except those that dtrun sets for every rank. */
static void pass_matching(struct dt_strs *env, struct dt_strs *unset, char *const *from,
                          const char *pattern)
{
    for (; *from; from++) {
        size_t n = strcspn(*from, "=");

        if (!matches(pattern, *from, n) || !is_name(*from, n) || decided_by(*from, n))
            continue;
        dt_envlist_drop(unset, *from, n);
        dt_envlist_put(env, *from);
    }
}

static const char *lookup(char *const *from, const char *name)
{
    size_t n = strlen(name);

    for (; *from; from++)
        if (strncmp(*from, name, n) == 0 && (*from)[n] == '=')
            return *from;
    return NULL;
}

static void put_named(struct dt_strs *env, struct dt_strs *unset, struct dt_strs *absent,
                      char *const *from, const char *name)
{
    size_t n = strcspn(name, "=");
    const char *entry = name[n] ? name : lookup(from, name);

    if (!entry) {
        dt_xstrs_add(absent, name);
        return;
    }
    dt_envlist_drop(unset, name, n);
    dt_envlist_put(env, entry);
}

static void apply_rule(struct dt_strs *env, struct dt_strs *unset, struct dt_strs *absent,
                       char *const *from, const char *rule)
{
    const char *name = rule + 2;
    size_t n = strlen(name);

    if (rule[0] == 'u') {
        dt_envlist_drop(env, name, n);
        dt_envlist_drop(unset, name, n);
        dt_xstrs_add(unset, name);
    } else if (!strchr(name, '=') && name[n - 1] == '*') {
        pass_matching(env, unset, from, name);
    } else {
        put_named(env, unset, absent, from, name);
    }
}

static bool goes_along(const char *entry)
{
    size_t n = strcspn(entry, "=");

    return entry[n] && is_name(entry, n) && !matches(of_host, entry, n) &&
           !matches(of_launchers, entry, n) && !decided_by(entry, n);
}

void dt_env_base(struct dt_strs *env, struct dt_strs *unset, struct dt_strs *absent,
                 char *const *environ_, const struct dt_strs *rules)
{
    for (char *const *e = environ_; *e; e++)
        if (goes_along(*e))
            dt_xstrs_add(env, *e);
    for (uint32_t i = 0; i < rules->n; i++)
        apply_rule(env, unset, absent, environ_, rules->v[i]);
}

static const char *text_of(const struct dt_strs *env, const char *name)
{
    const char *entry = dt_envlist_find(env, name, strlen(name));

    return entry ? entry + strlen(name) + 1 : NULL;
}

const char *const dt_env_nccl_defaults[] = { "NCCL_SOCKET_IFNAME", "NCCL_RAS_ADDR",
                                             "NCCL_DEBUG_FILE", NULL };

void dt_env_nccl_files(struct dt_strs *files, const struct dt_strs *env)
{
    const char *named = text_of(env, "NCCL_CONF_FILE"), *home = text_of(env, "HOME");
    char path[PATH_MAX];

    if (named && *named)
        snprintf(path, sizeof path, "%s", named);
    else
        snprintf(path, sizeof path, "%s/.nccl.conf", home ? home : "");
    dt_xstrs_add(files, path);
    dt_xstrs_add(files, "/etc/nccl.conf");
}

bool dt_env_is_decided(const struct dt_msg_start *start, char *const *agent_environ,
                       const char *name)
{
    size_t n = strlen(name);

    return dt_envlist_find(&start->env, name, n) || dt_strs_has(&start->unset, name, n) ||
           lookup(agent_environ, name);
}

const char *dt_env_given(const struct dt_msg_start *start, char *const *agent_environ,
                         const char *name)
{
    size_t n = strlen(name);
    const char *entry = dt_envlist_find(&start->env, name, n);

    if (!entry && !dt_strs_has(&start->unset, name, n))
        entry = lookup(agent_environ, name);
    return entry ? entry + n + 1 : NULL;
}

/* Takes the variables that dtrun sent, then adds the host's variables that have other names. */
static void lay_over(struct dt_strs *env, char *const *agent_environ,
                     const struct dt_msg_start *start)
{
    for (uint32_t i = 0; i < start->env.n; i++)
        dt_xstrs_add(env, start->env.v[i]);
    for (char *const *e = agent_environ; *e; e++) {
        size_t n = strcspn(*e, "=");

        if ((*e)[n] && !dt_envlist_find(env, *e, n) && !dt_strs_has(&start->unset, *e, n) &&
            !decided_by(*e, n) && !matches(of_launchers, *e, n) && !matches(DT_ENV_AGENT, *e, n))
            dt_xstrs_add(env, *e);
    }
}

static void put_default(struct dt_strs *env, const struct dt_env_rank *rank, const char *name,
                        const char *value)
{
    size_t n = strlen(name);

    if (!dt_envlist_find(env, name, n) && !dt_strs_has(&rank->start->unset, name, n) &&
        !(rank->in_nccl_conf && dt_strs_has(rank->in_nccl_conf, name, n)))
        dt_envlist_put_text(env, name, value);
}

static bool is_auxiliary(const struct dt_env_rank *rank)
{
    return rank->number >= rank->start->np;
}

/* NCCL's log goes beside the rank's output. NCCL itself replaces %h and %p in the name. */
static void put_nccl_log(struct dt_strs *env, const struct dt_env_rank *rank)
{
    const char *dir = text_of(env, DT_ENV_OUTPUT_DIR);
    struct dt_strbuf name = { 0 };

    if (!dir || !text_of(env, "NCCL_DEBUG"))
        return;
    for (; *dir; dir++)
        dt_strbuf_add(&name, *dir == '%' ? "%%" : dir, *dir == '%' ? 2 : 1);
    dt_strbuf_printf(&name, "/rank.%05u.%u.nccl", rank->number, rank->start->generation);
    put_default(env, rank, "NCCL_DEBUG_FILE", dt_strbuf_text(&name));
    dt_strbuf_free(&name);
}

/* NCCL answers ncclras at a fixed port by default, so a second job on the host could not be
 * queried. */
static void put_nccl(struct dt_strs *env, const struct dt_env_rank *rank)
{
    char address[32];

    snprintf(address, sizeof address, "localhost:%u", rank->ras_port);
    if (rank->ras_port)
        put_default(env, rank, "NCCL_RAS_ADDR", address);
    put_nccl_log(env, rank);
}

/* Sets useful values unless the user or the host has set others. */
static void put_defaults(struct dt_strs *env, const struct dt_env_rank *rank)
{
    char number[16];

    snprintf(number, sizeof number, "%u", rank->threads);
    put_default(env, rank, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    put_default(env, rank, "OMP_NUM_THREADS", number);
    put_default(env, rank, "PYTHONUNBUFFERED", "1");
}

static void put_place(struct dt_strs *env, const struct dt_env_rank *rank)
{
    const struct dt_msg_start *s = rank->start;
    const long long unlimited = INT32_MAX;
    const long long values[NUMBERS] = {
        [RANK] = rank->number,
        [SIZE] = s->np,
        [LOCAL_RANK] = rank->local_rank,
        [SHOWN_LOCAL_RANK] = s->virtual_local_rank ? 0 : rank->local_rank,
        [LOCAL_SIZE] = s->ranks.n,
        [NODE_RANK] = s->node_rank,
        [NODES] = s->nodes,
        [RESTARTS] = s->restart_count,
        [MAX_RESTARTS] = s->max_restarts < 0 ? unlimited : s->max_restarts,
        [PORT] = s->master_port,
        [AGENT_FD] = rank->agent_fd,
        [PMI_FD] = rank->pmi_fd,
    };
    const struct dt_envlist_text texts[] = {
        { "TORCHELASTIC_RUN_ID", s->job_id },
        { DT_ENV_CHECKPOINT_DIR, s->checkpoint_dir },
        { DT_ENV_FRESH, s->fresh ? "1" : NULL },
        { DT_ENV_RESUME, s->resume ? "1" : NULL },
    };

    for (size_t i = 0; i < NUMBERS; i++)
        for (size_t k = 0; k < NAMES && per_rank[i].names[k]; k++)
            dt_envlist_put_numbers(
                env, &(struct dt_envlist_number){ per_rank[i].names[k], values[i] }, 1);
    dt_envlist_put_texts(env, texts, sizeof texts / sizeof *texts);
}

/* Sets what is the same for all processes of the job on this host. */
static void put_job(struct dt_strs *env, const struct dt_msg_start *s)
{
    const struct dt_envlist_number numbers[] = {
        { DT_ENV_GENERATION, s->generation },
        { DT_ENV_RESTART_COUNT, s->restart_count },
    };
    const struct dt_envlist_text texts[] = { { DT_ENV_JOB_ID, s->job_id }, { "PWD", s->wdir } };

    dt_envlist_drop(env, "OLDPWD", strlen("OLDPWD"));
    dt_envlist_put_numbers(env, numbers, sizeof numbers / sizeof *numbers);
    dt_envlist_put_texts(env, texts, sizeof texts / sizeof *texts);
}

/* Removes the frameworks' variables that an enclosing job or the host has set, even those that this
 * job does not set. */
static void drop_frameworks(struct dt_strs *env, unsigned set)
{
    for (uint32_t i = 0; i < env->n;) {
        if (dt_frameworks_owner(set, env->v[i], strcspn(env->v[i], "=")))
            dt_envlist_drop_at(env, i);
        else
            i++;
    }
}

static void put_frameworks(struct dt_strs *env, const struct dt_env_rank *rank,
                           const struct dt_msg_go *go)
{
    drop_frameworks(env, rank->start->frameworks |
                             (go->rendezvous_port ? DT_FRAMEWORK_HOROVOD : 0u) |
                             (go->mpi_env.n ? DT_FRAMEWORK_MPI : 0u));
    dt_frameworks_put(env, rank->start, rank->number, go);
}

void dt_env_for_rank(struct dt_strs *env, char *const *agent_environ,
                     const struct dt_env_rank *rank)
{
    lay_over(env, agent_environ, rank->start);
    put_defaults(env, rank);
    put_job(env, rank->start);
    if (!is_auxiliary(rank))
        put_place(env, rank);
    if (rank->device)
        dt_envlist_put_text(env, "CUDA_VISIBLE_DEVICES", rank->device);
}

/* NCCL matches every interface that begins with the name, unless "=" precedes it. */
static void put_interface(struct dt_strs *env, const struct dt_env_rank *rank, const char *iface)
{
    const char *frameworks = dt_frameworks_iface(rank->start->frameworks);
    char exact[64];

    snprintf(exact, sizeof exact, "=%s", iface);
    put_default(env, rank, "GLOO_SOCKET_IFNAME", iface);
    if (frameworks)
        put_default(env, rank, frameworks, iface);
    put_default(env, rank, "NCCL_SOCKET_IFNAME", exact);
}

/* The user may override Open MPI's settings (OMPI_*), but not the address of the PMIx server. */
static void put_mpi(struct dt_strs *env, const struct dt_env_rank *rank, const struct dt_strs *mpi)
{
    const struct dt_envlist_number number = { "PMIX_RANK", rank->number };

    for (uint32_t i = 0; i < mpi->n; i++) {
        size_t n = strcspn(mpi->v[i], "=");

        if (strncmp(mpi->v[i], "OMPI_", strlen("OMPI_")) != 0 ||
            (!dt_envlist_find(env, mpi->v[i], n) &&
             !dt_strs_has(&rank->start->unset, mpi->v[i], n)))
            dt_envlist_put(env, mpi->v[i]);
    }
    if (mpi->n)
        dt_envlist_put_numbers(env, &number, 1);
}

void dt_env_at_go(struct dt_strs *env, const struct dt_env_rank *rank, const struct dt_msg_go *go)
{
    put_frameworks(env, rank, go);
    if (!is_auxiliary(rank)) {
        dt_envlist_put_text(env, "MASTER_ADDR", go->master_addr);
        put_mpi(env, rank, &go->mpi_env);
        put_nccl(env, rank);
    }
    if (*go->iface)
        put_interface(env, rank, go->iface);
}
