#include "cmd/dryrun.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/base/printed.h"
#include "launcher/io/json.h"
#include "launcher/place/envrules.h"
#include "launcher/place/gpu.h"
#include "launcher/place/role.h"

/* What is known about a node before its host is asked. */
struct known {
    const struct dt_host *host;
    struct dt_strs devices;
    bool devices_known;
    const char *interface; /* NULL: unknown */
};

/* start holds what -x and --unset say, which counts with --gpu-bind none. */
static const char *mask_of(const struct dt_host *host, const struct dt_msg_start *start,
                           enum dt_gpu_bind bind)
{
    static const char name[] = "CUDA_VISIBLE_DEVICES";
    char *const nothing = NULL;

    if (bind == DT_GPU_BIND_NONE)
        return dt_env_given(start, host->local ? environ : &nothing, name);
    return host->local ? getenv(name) : NULL;
}

static struct known know(const struct dt_hostlist *hosts, const struct dt_plan *plan,
                         const struct dt_plan_node *node, const struct dt_msg_start *start,
                         enum dt_gpu_bind bind)
{
    struct known k = { .host = &hosts->v[node->host] };
    struct dt_gpu_source source = { .bind = bind, .slots = (uint32_t)k.host->slots };

    if (k.host->gpus_given && bind != DT_GPU_BIND_NONE)
        source.given = &k.host->gpus;
    else
        source.mask = mask_of(k.host, start, bind);
    k.devices_known = source.given || source.mask;
    if (k.devices_known)
        dt_gpu_list(&k.devices, &source);
    if (plan->nnodes == 1)
        k.interface = "-"; /* the ranks of a single host share memory */
    else
        k.interface = k.host->addr;
    return k;
}

static const char *device(const struct known *k, uint32_t local_rank)
{
    const char *device;

    if (!k->devices_known)
        return "?";
    device = dt_gpu_of(&k->devices, local_rank);
    return *device ? device : "none";
}

static const char *const bind_names[] = {
    [DT_BIND_NONE] = "none", [DT_BIND_CORE] = "core", [DT_BIND_SOCKET] = "socket",
    [DT_BIND_NUMA] = "numa", [DT_BIND_L3] = "l3",     [DT_BIND_HWTHREAD] = "hwthread",
};

struct widths {
    int host;
    int device;
};

static void widen(int *width, const char *text)
{
    if ((int)strlen(text) > *width)
        *width = (int)strlen(text);
}

static struct widths measure(const struct known *nodes, const struct dt_plan *plan)
{
    struct widths w = { (int)strlen("host"), (int)strlen("device") };

    for (size_t i = 0; i < plan->nnodes; i++) {
        widen(&w.host, nodes[i].host->name);
        for (uint32_t k = 0; k < nodes[i].devices.n; k++)
            widen(&w.device, nodes[i].devices.v[k]);
    }
    return w;
}

static void print_table(FILE *to, const struct known *nodes, const struct dt_plan *plan)
{
    struct widths w = measure(nodes, plan);

    fprintf(to, "rank  %-*s  local  %*s  interface\n", w.host, "host", w.device, "device");
    for (int rank = 0; rank < plan->np; rank++) {
        const struct dt_plan_node *node = dt_plan_node_of(plan, rank);
        const struct known *k = &nodes[node->node_rank];
        uint32_t local_rank = dt_plan_local_rank(node, rank);

        fprintf(to, "%4d  %-*s  %5u  %*s  %s\n", rank, w.host, k->host->name, local_rank, w.device,
                device(k, local_rank), k->interface ? k->interface : "?");
    }
}

/* Prints "beside the ranks: scheduler on host1, server 0 on host1, server 1 on host2". */
static void print_auxiliaries(FILE *to, const struct known *nodes, const struct dt_plan *plan)
{
    char name[DT_ROLE_NAME_MAX];

    for (int number = plan->np; number < plan->nprocs; number++)
        fprintf(to, "%s%s on %s", number == plan->np ? "beside the ranks: " : ", ",
                dt_role_name(name, (uint32_t)number, (uint32_t)plan->np),
                nodes[dt_plan_node_of(plan, number)->node_rank].host->name);
    if (plan->nprocs > plan->np)
        fprintf(to, "\n");
}

static void add_auxiliaries(const struct known *nodes, const struct dt_plan *plan, cJSON *to)
{
    cJSON *list = plan->nprocs > plan->np ? cJSON_AddArrayToObject(to, "auxiliaries") : NULL;
    char name[DT_ROLE_NAME_MAX];

    for (int number = plan->np; number < plan->nprocs; number++) {
        cJSON *item = cJSON_CreateObject();

        dt_json_add_text(item, "role", dt_role_name(name, (uint32_t)number, (uint32_t)plan->np));
        dt_json_add_text(item, "host", nodes[dt_plan_node_of(plan, number)->node_rank].host->name);
        cJSON_AddItemToArray(list, item);
    }
}

static cJSON *rank_json(const struct known *k, const struct dt_plan_node *node, int rank)
{
    uint32_t local_rank = dt_plan_local_rank(node, rank);
    cJSON *o = cJSON_CreateObject();

    cJSON_AddNumberToObject(o, "rank", rank);
    dt_json_add_text(o, "host", k->host->name);
    cJSON_AddNumberToObject(o, "local_rank", local_rank);
    cJSON_AddNumberToObject(o, "local_size", node->ranks.n);
    cJSON_AddNumberToObject(o, "node_rank", node->node_rank);
    dt_json_add_text(o, "device", k->devices_known ? dt_gpu_of(&k->devices, local_rank) : NULL);
    dt_json_add_text(o, "interface", k->host->addr);
    return o;
}

static cJSON *plan_json(const struct known *nodes, const struct dt_plan *plan,
                        const struct dt_options *options)
{
    cJSON *o = cJSON_CreateObject(), *ranks;

    dt_json_add_text(o, "version", PACKAGE_VERSION);
    dt_json_add_texts(o, "command", &options->job.argv);
    cJSON_AddNumberToObject(o, "np", plan->np);
    cJSON_AddNumberToObject(o, "slots", plan->slots);
    cJSON_AddNumberToObject(o, "nodes", (double)plan->nnodes);
    cJSON_AddBoolToObject(o, "oversubscribed", plan->oversubscribed);
    cJSON_AddStringToObject(o, "bind_to", bind_names[options->job.bind_to]);
    ranks = cJSON_AddArrayToObject(o, "ranks");
    for (int rank = 0; rank < plan->np; rank++) {
        const struct dt_plan_node *node = dt_plan_node_of(plan, rank);

        cJSON_AddItemToArray(ranks, rank_json(&nodes[node->node_rank], node, rank));
    }
    add_auxiliaries(nodes, plan, o);
    return o;
}

static struct known *know_all(const struct dt_hostlist *hosts, const struct dt_plan *plan,
                              const struct dt_options *options)
{
    struct known *nodes = dt_xcalloc(plan->nnodes, sizeof *nodes);
    struct dt_msg_start start = { 0 };
    struct dt_strs absent = { 0 };

    dt_env_base(&start.env, &start.unset, &absent, environ, &options->env);
    for (size_t i = 0; i < plan->nnodes; i++)
        nodes[i] = know(hosts, plan, &plan->nodes[i], &start, options->job.gpu_bind);
    dt_strs_free(&start.env);
    dt_strs_free(&start.unset);
    dt_strs_free(&absent);
    return nodes;
}

static void forget_all(struct known *nodes, const struct dt_plan *plan)
{
    for (size_t i = 0; i < plan->nnodes; i++)
        dt_strs_free(&nodes[i].devices);
    free(nodes);
}

static void print_map(FILE *to, const struct known *nodes, const struct dt_plan *plan,
                      const struct dt_options *options)
{
    print_table(to, nodes, plan);
    print_auxiliaries(to, nodes, plan);
    if (options->job.bind_to != DT_BIND_NONE)
        fprintf(to, "each rank is bound to CPUs of its host: --bind-to %s\n",
                bind_names[options->job.bind_to]);
}

void dt_dryrun_print_map(const struct dt_hostlist *hosts, const struct dt_plan *plan,
                         const struct dt_options *options)
{
    struct known *nodes = know_all(hosts, plan, options);

    print_map(stderr, nodes, plan, options);
    forget_all(nodes, plan);
}

int dt_dryrun_print(const struct dt_hostlist *hosts, const struct dt_plan *plan,
                    const struct dt_options *options, struct dt_error *err)
{
    struct known *nodes = know_all(hosts, plan, options);

    char *text = options->json ? dt_json_text(plan_json(nodes, plan, options)) : NULL;

    if (text)
        puts(text);
    else
        print_map(stdout, nodes, plan, options);
    free(text);
    forget_all(nodes, plan);
    return dt_printed(err);
}
