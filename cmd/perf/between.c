#include "cmd/perf/between.h"

#include <math.h>

double dt_perf_both_ways(const struct dt_perf_op *op, const struct dt_perf_layout *l, int root,
                         size_t count)
{
    (void)op;
    (void)root;
    return 2.0 * (l->hosts - 1) / l->hosts * (double)count;
}

double dt_perf_whole(const struct dt_perf_op *op, const struct dt_perf_layout *l, int root,
                     size_t count)
{
    (void)op;
    (void)l;
    (void)root;
    return (double)count;
}

/* Sums the blocks of the ranks on this host (here), or of the others. The block of a rank is the
 * same for every peer. */
static double sum_blocks(const struct dt_perf_op *op, const struct dt_perf_layout *l, int host,
                         bool here, size_t count)
{
    double elements = 0;

    for (int i = 0; i < l->n; i++) {
        if ((l->host[i] == host) == here)
            elements += (double)dt_perf_block_count(op, i, i, l->n, count);
    }
    return elements;
}

double dt_perf_blocks_of_others(const struct dt_perf_op *op, const struct dt_perf_layout *l,
                                int root, size_t count)
{
    return sum_blocks(op, l, l->host[root], false, count);
}

double dt_perf_blocks_of_either(const struct dt_perf_op *op, const struct dt_perf_layout *l,
                                int root, size_t count)
{
    double most = 0;

    (void)root;
    for (int host = 0; host < l->hosts; host++)
        most = fmax(most, fmax(sum_blocks(op, l, host, true, count),
                               sum_blocks(op, l, host, false, count)));
    return most;
}

double dt_perf_blocks_of_pairs(const struct dt_perf_op *op, const struct dt_perf_layout *l,
                               int root, size_t count)
{
    double leave[l->hosts], enter[l->hosts], most = 0;

    (void)root;
    for (int host = 0; host < l->hosts; host++)
        leave[host] = enter[host] = 0;
    for (int from = 0; from < l->n; from++) {
        for (int to = 0; to < l->n; to++) {
            if (l->host[from] == l->host[to])
                continue;
            leave[l->host[from]] += (double)dt_perf_block_count(op, from, to, l->n, count);
            enter[l->host[to]] += (double)dt_perf_block_count(op, from, to, l->n, count);
        }
    }
    for (int host = 0; host < l->hosts; host++)
        most = fmax(most, fmax(leave[host], enter[host]));
    return most;
}

double dt_perf_to_the_next(const struct dt_perf_op *op, const struct dt_perf_layout *l, int root,
                           size_t count)
{
    double leave[l->hosts], most = 0;

    (void)op;
    (void)root;
    for (int host = 0; host < l->hosts; host++)
        leave[host] = 0;
    for (int i = 0; i < l->n; i++) {
        if (l->host[i] != l->host[(i + 1) % l->n])
            leave[l->host[i]] += (double)count;
        most = fmax(most, leave[l->host[i]]);
    }
    return most;
}
