#include "launcher/place/frameworks_go.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/place/frameworks.h"

uint32_t dt_frameworks_go_ports(const struct dt_frameworks_node *node)
{
    uint32_t first = node->free_port + (uint32_t)DT_PORT_TENSORFLOW;

    return first > UINT16_MAX ? 0 : UINT16_MAX - first + 1;
}

static bool is_ipv6(const char *addr)
{
    return strchr(addr, ':') != NULL;
}

static char *address_of(const struct dt_frameworks_node *node, uint32_t local_rank)
{
    bool v6 = is_ipv6(node->addr);

    return dt_xasprintf("%s%s%s:%u", v6 ? "[" : "", node->addr, v6 ? "]" : "",
                        node->free_port + DT_PORT_TENSORFLOW + local_rank);
}

/* The "cluster" of TF_CONFIG, which lists the workers by rank. */
static char *tf_cluster(const struct dt_plan *plan, const struct dt_frameworks_node *nodes)
{
    cJSON *cluster = cJSON_CreateObject();
    cJSON *workers = cJSON_AddArrayToObject(cluster, "worker");
    char *text;

    for (int r = 0; r < plan->np; r++) {
        const struct dt_plan_node *node = dt_plan_node_of(plan, r);
        char *address = address_of(&nodes[node->node_rank], dt_plan_local_rank(node, r));

        cJSON_AddItemToArray(workers, cJSON_CreateString(address));
        free(address);
    }
    text = cJSON_PrintUnformatted(cluster);
    cJSON_Delete(cluster);
    return text;
}

static struct dt_u32s local_sizes(const struct dt_plan *plan)
{
    struct dt_u32s sizes = { .v = dt_xcalloc(plan->nnodes, sizeof *sizes.v) };

    for (; sizes.n < plan->nnodes; sizes.n++)
        sizes.v[sizes.n] = plan->nodes[sizes.n].ranks.n;
    return sizes;
}

void dt_frameworks_go_fill(struct dt_msg_go *go, unsigned set, const struct dt_plan *plan,
                           const struct dt_frameworks_node *nodes)
{
    go->tf_cluster = set & DT_FRAMEWORK_TENSORFLOW ? tf_cluster(plan, nodes) : dt_xstrdup("");
    go->local_sizes = go->rendezvous_port ? local_sizes(plan) : (struct dt_u32s){ 0 };
}

void dt_frameworks_go_free(struct dt_msg_go *go)
{
    free(go->tf_cluster);
    free(go->local_sizes.v);
}

/* Horovod looks for its rendezvous by IPv4 only. Its ranks would try for a while and abort. */
const char *dt_frameworks_go_lacks(const char *addr)
{
    return is_ipv6(addr) ? "Horovod needs IPv4" : NULL;
}
