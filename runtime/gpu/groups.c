#include "runtime/gpu/groups.h"

#include <stdlib.h>

static int leader_of(const struct dt_gpu_offer *offers, int rank)
{
    int leader = 0;

    while (!dt_gpu_is_same(&offers[leader], &offers[rank]))
        leader++;
    return leader;
}

static void fill_numbers(struct dt_gpu_groups *g, const struct dt_gpu_offer *offers, int size)
{
    g->n = 0;
    for (int rank = 0; rank < size; rank++) {
        int leader = leader_of(offers, rank);

        g->of[rank] = leader == rank ? g->n++ : g->of[leader];
    }
}

static int count_members(const struct dt_gpu_groups *g, int size, int group)
{
    int members = 0;

    for (int rank = 0; rank < size; rank++)
        members += g->of[rank] == group;
    return members;
}

static void fill_mine(struct dt_gpu_groups *g, int size, int rank)
{
    for (int other = 0; other < size; other++) {
        if (g->of[other] != g->of[rank])
            continue;
        if (other == rank)
            g->me = g->members;
        g->mine[g->members++] = other;
    }
}

bool dt_gpu_groups_fill(struct dt_gpu_groups *g, const struct dt_gpu_offer *offers, int size,
                        int rank)
{
    *g = (struct dt_gpu_groups){ 0 };
    g->of = calloc((size_t)size, sizeof *g->of);
    g->mine = calloc((size_t)size, sizeof *g->mine);
    if (!g->of || !g->mine) {
        dt_gpu_groups_free(g);
        return false;
    }
    fill_numbers(g, offers, size);
    fill_mine(g, size, rank);
    for (int group = 0; group < g->n; group++) {
        int members = count_members(g, size, group);

        if (members > g->most)
            g->most = members;
    }
    return true;
}

void dt_gpu_groups_free(struct dt_gpu_groups *g)
{
    free(g->of);
    free(g->mine);
    *g = (struct dt_gpu_groups){ 0 };
}
