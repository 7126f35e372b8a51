#include "cmd/perf/compare.h"

#include <stdio.h>

#include "cmd/perf/choice.h"
#include "runtime/dtrun_tune.h"

enum {
    ROUNDS = 5, /* in which the variants take turns */
    LINES = 2048,
};

static const double round_us = 10000; /* approximate time for one variant at one size */

static dt_result_t make_comms(const struct dt_perf_comparison *x, dt_comm_t **comms)
{
    dt_result_t r = DT_OK;
    char lines[LINES];

    for (size_t i = 0; i < x->n; i++)
        comms[i] = DT_COMM_NULL;
    for (size_t i = 0; i < x->n && r == DT_OK; i++) {
        snprintf(lines, sizeof lines, "%s%s", x->before, x->lines[i]);
        r = dt_comm_dup(x->like, &comms[i]);
        if (r == DT_OK)
            r = dt_comm_tune(comms[i], lines);
    }
    return r;
}

static dt_result_t free_comms(dt_comm_t **comms, size_t n, dt_result_t r)
{
    for (size_t i = 0; i < n; i++) {
        if (comms[i] != DT_COMM_NULL && r == DT_OK)
            r = dt_comm_free(comms[i]);
    }
    return r;
}

static dt_result_t time_calls(const struct dt_perf_comparison *x, dt_comm_t *comm, size_t bytes,
                              double *us)
{
    const struct dt_perf_op *op = dt_perf_op_find(x->collective);
    const struct dt_perf_case c = { .comm = comm, .dtype = DT_F32, .op = DT_SUM };
    size_t count = (x->block ? x->block(x->launch, bytes) : bytes) / sizeof(float);
    double once = 1;
    dt_result_t r = dt_perf_time_us(op, &c, x->buffers, count, 1, &once); /* not measured */
    int times = x->calls;

    if (r == DT_OK && !times) {
        r = dt_perf_time_us(op, &c, x->buffers, count, 2, &once);
        times = once * 2 > round_us ? 2 : (int)(round_us / (once > 1 ? once : 1));
    }
    if (r == DT_OK)
        r = dt_perf_time_us(op, &c, x->buffers, count, times, us);
    return r;
}

/* Creates new communicators for each round, because a communicator keeps what it has learned about
 * its memory. */
static dt_result_t take_round(const struct dt_perf_comparison *x, size_t round,
                              double us[DT_PERF_VARIANTS][DT_PERF_SIZES][ROUNDS])
{
    dt_comm_t *comms[DT_PERF_VARIANTS];
    dt_result_t r = make_comms(x, comms);
    size_t size = 0;

    for (size_t bytes = x->from; bytes <= x->to; bytes *= 2, size++) {
        for (size_t k = 0; k < x->n && r == DT_OK; k++) {
            size_t i = (k + round) % x->n;

            r = time_calls(x, comms[i], bytes, &us[i][size][round]);
        }
    }
    return free_comms(comms, x->n, r);
}

dt_result_t dt_perf_compare(struct dt_perf_comparison *x)
{
    double us[DT_PERF_VARIANTS][DT_PERF_SIZES][ROUNDS] = { 0 };
    dt_result_t r = DT_OK;

    for (size_t round = 0; round < ROUNDS && r == DT_OK; round++)
        r = take_round(x, round, us);
    for (size_t size = 0; size < DT_PERF_SIZES && x->from << size <= x->to && r == DT_OK; size++) {
        for (size_t i = 1; i < x->n; i++)
            x->us[i][size] = dt_perf_ratio(us[i][size], us[0][size], ROUNDS);
        x->us[0][size] = dt_perf_undisturbed(us[0][size], ROUNDS);
        for (size_t i = 1; i < x->n; i++)
            x->us[i][size] *= x->us[0][size];
    }
    return r;
}
