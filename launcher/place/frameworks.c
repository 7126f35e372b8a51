#include "launcher/place/frameworks.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/place/envlist.h"
#include "launcher/place/role.h"

enum { NAMES_MAX = 12 };

static const struct {
    const char *name;
    unsigned bit;
    const char *variables[NAMES_MAX + 1];
    const char *iface; /* the variable that may name the interface, or NULL */
    bool has_auxiliaries;
} frameworks[] = {
    { .name = "horovod",
      .bit = DT_FRAMEWORK_HOROVOD,
      .variables = { "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE",
                     "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE", "HOROVOD_HOSTNAME",
                     "HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT",
                     "HOROVOD_GLOO_IFACE", "HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS" } },
    { .name = "tensorflow", .bit = DT_FRAMEWORK_TENSORFLOW, .variables = { "TF_CONFIG" } },
    { .name = "mpi",
      .bit = DT_FRAMEWORK_MPI,
      .variables = { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                     "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_NODE_RANK",
                     "OMPI_UNIVERSE_SIZE" } },
    { .name = "mxnet",
      .bit = DT_FRAMEWORK_MXNET,
      .variables = { "DMLC_ROLE", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_NUM_WORKER",
                     "DMLC_NUM_SERVER", "DMLC_NODE_HOST", "DMLC_TASK_ID", "DMLC_WORKER_ID" },
      .iface = "DMLC_INTERFACE",
      .has_auxiliaries = true },
};

static const size_t nframeworks = sizeof frameworks / sizeof *frameworks;

static unsigned find_bit(const char *name, size_t n)
{
    for (size_t i = 0; i < nframeworks; i++)
        if (strlen(frameworks[i].name) == n && memcmp(frameworks[i].name, name, n) == 0)
            return frameworks[i].bit;
    return 0;
}

int dt_frameworks_parse(unsigned *set, const char *list, struct dt_error *err)
{
    for (;; list++) {
        size_t n = strcspn(list, ",");
        unsigned bit = find_bit(list, n);

        if (!bit)
            return dt_error_usage(
                err, "horovod, tensorflow, mpi or mxnet was expected; -x NAME=VALUE sets a "
                     "variable");
        *set |= bit;
        list += n;
        if (!*list)
            return 0;
    }
}

const char *dt_frameworks_owner(unsigned set, const char *name, size_t n)
{
    for (size_t i = 0; i < nframeworks; i++)
        for (const char *const *v = frameworks[i].variables; *v && (set & frameworks[i].bit); v++)
            if (strlen(*v) == n && memcmp(*v, name, n) == 0)
                return frameworks[i].name;
    return NULL;
}

const char *dt_frameworks_iface(unsigned set)
{
    for (size_t i = 0; i < nframeworks; i++)
        if ((set & frameworks[i].bit) && frameworks[i].iface)
            return frameworks[i].iface;
    return NULL;
}

bool dt_frameworks_have_auxiliaries(unsigned set)
{
    for (size_t i = 0; i < nframeworks; i++)
        if ((set & frameworks[i].bit) && frameworks[i].has_auxiliaries)
            return true;
    return false;
}

/* Horovod's "cross" numbers count only those hosts that have a rank with this local rank. */
static void add_horovod_place(struct dt_strs *values, const struct dt_msg_start *s,
                              uint32_t local_rank, const struct dt_u32s *local_sizes)
{
    uint32_t before = 0, all = 0;

    for (uint32_t node = 0; node < local_sizes->n; node++) {
        bool has = local_sizes->v[node] > local_rank;

        all += has;
        before += has && node < s->node_rank;
    }
    const struct dt_envlist_number numbers[] = {
        { "HOROVOD_RANK", s->ranks.v[local_rank] }, { "HOROVOD_SIZE", s->np },
        { "HOROVOD_LOCAL_RANK", local_rank },       { "HOROVOD_LOCAL_SIZE", s->ranks.n },
        { "HOROVOD_CROSS_RANK", before },           { "HOROVOD_CROSS_SIZE", all },
    };

    dt_envlist_put_numbers(values, numbers, sizeof numbers / sizeof *numbers);
}

/* Without an interface gloo asks the resolver for the host's own address, which other hosts often
 * cannot reach. */
static void add_horovod(struct dt_strs *values, const struct dt_msg_start *s, uint32_t local_rank,
                        const struct dt_msg_go *go)
{
    const struct dt_envlist_number port = { "HOROVOD_GLOO_RENDEZVOUS_PORT", go->rendezvous_port };
    const struct dt_envlist_text texts[] = {
        { "HOROVOD_HOSTNAME", s->host },
        { "HOROVOD_CONTROLLER", "gloo" },
        { "HOROVOD_CPU_OPERATIONS", "gloo" },
        { "HOROVOD_GLOO_RENDEZVOUS_ADDR", go->master_addr },
        { "HOROVOD_GLOO_IFACE", *go->iface      ? go->iface
                                : s->nodes == 1 ? "lo"
                                                : NULL },
    };

    add_horovod_place(values, s, local_rank, &go->local_sizes);
    dt_envlist_put_numbers(values, &port, 1);
    dt_envlist_put_texts(values, texts, sizeof texts / sizeof *texts);
}

/* Scripts that start a program of Open MPI read these, as in CUDA_VISIBLE_DEVICES=
 * $OMPI_COMM_WORLD_LOCAL_RANK. Open MPI's "node rank" counts the processes of all jobs on a host.
 * Here there is only one job. */
static void add_mpi(struct dt_strs *values, const struct dt_msg_start *s, uint32_t local_rank)
{
    const struct dt_envlist_number numbers[] = {
        { "OMPI_COMM_WORLD_RANK", s->ranks.v[local_rank] },
        { "OMPI_COMM_WORLD_SIZE", s->np },
        { "OMPI_COMM_WORLD_LOCAL_RANK", local_rank },
        { "OMPI_COMM_WORLD_LOCAL_SIZE", s->ranks.n },
        { "OMPI_COMM_WORLD_NODE_RANK", local_rank },
        { "OMPI_UNIVERSE_SIZE", s->universe },
    };

    dt_envlist_put_numbers(values, numbers, sizeof numbers / sizeof *numbers);
}

static void add_tensorflow(struct dt_strs *values, uint32_t rank, const char *cluster)
{
    char *text =
        dt_xasprintf("{\"cluster\":%s,\"task\":{\"type\":\"worker\",\"index\":%u}}", cluster, rank);

    dt_envlist_put_text(values, "TF_CONFIG", text);
    free(text);
}

static const struct {
    const char *name;
    size_t numbers; /* how many of the numbers in add_mxnet it gets */
} dmlc_roles[] = {
    [DT_ROLE_SCHEDULER] = { "scheduler", 3 },
    [DT_ROLE_SERVER] = { "server", 4 },
    [DT_ROLE_RANK] = { "worker", 5 },
};

/* Follows MXNet's launch.py: the workers' task ids begin at 0, and the servers' ids follow. */
static void add_mxnet(struct dt_strs *values, const struct dt_msg_start *s, uint32_t number,
                      const struct dt_msg_go *go)
{
    struct dt_role role = dt_role_of(number, s->np);
    const struct dt_envlist_number numbers[] = {
        { "DMLC_PS_ROOT_PORT", s->scheduler_port },
        { "DMLC_NUM_WORKER", s->np },
        { "DMLC_NUM_SERVER", s->servers },
        { "DMLC_TASK_ID", role.kind == DT_ROLE_SERVER ? s->np + role.index : role.index },
        { "DMLC_WORKER_ID", role.index },
    };

    dt_envlist_put_text(values, "DMLC_ROLE", dmlc_roles[role.kind].name);
    dt_envlist_put_text(values, "DMLC_PS_ROOT_URI", go->master_addr);
    dt_envlist_put_text(values, "DMLC_NODE_HOST", go->addr);
    dt_envlist_put_numbers(values, numbers, dmlc_roles[role.kind].numbers);
}

void dt_frameworks_put(struct dt_strs *values, const struct dt_msg_start *start, uint32_t number,
                       const struct dt_msg_go *go)
{
    unsigned set = start->frameworks;

    if (number < start->np) {
        uint32_t local_rank = (uint32_t)dt_u32s_find(&start->ranks, number);

        if (go->rendezvous_port)
            add_horovod(values, start, local_rank, go);
        if ((set & DT_FRAMEWORK_MPI) || go->mpi_env.n)
            add_mpi(values, start, local_rank);
        if (set & DT_FRAMEWORK_TENSORFLOW)
            add_tensorflow(values, number, go->tf_cluster);
    }
    if (set & DT_FRAMEWORK_MXNET)
        add_mxnet(values, start, number, go);
}
