/* halo: heats a metal bar at one end. Each rank computes one piece of the bar. Its halo is the
 * nearest cell of each neighbour. While the halos travel, the rank computes the cells that do not
 * depend on its halo. The result has the same bytes for any number of ranks. */
#include <dtrun.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 1000, STEPS = 2000 };

static double cell(const double *t, size_t i)
{
    return t[i] + 0.25 * (t[i - 1] - 2 * t[i] + t[i + 1]);
}

/* Starts to exchange one cell with a neighbour. The ends of the bar have none. */
static dt_result_t exchange(int neighbour, const double *mine, double *theirs, dt_request_t pair[2])
{
    dt_result_t r;

    if (neighbour < 0 || neighbour >= dt_size())
        return DT_OK;
    r = dt_irecv(DT_WORLD, theirs, 1, DT_F64, neighbour, &pair[0]);
    return r == DT_OK ? dt_isend(DT_WORLD, mine, 1, DT_F64, neighbour, &pair[1]) : r;
}

/* The piece is t[1] to t[n], and its halo is t[0] and t[n + 1]. */
static dt_result_t step(double *t, double *next, size_t n)
{
    dt_request_t request[4] = { { 0 } };
    dt_result_t begun = exchange(dt_rank() - 1, &t[1], &t[0], request), waited;

    if (begun == DT_OK)
        begun = exchange(dt_rank() + 1, &t[n], &t[n + 1], request + 2);
    for (size_t i = 2; begun == DT_OK && i < n; i++)
        next[i] = cell(t, i);
    waited = dt_wait_all(request, 4); /* even after a failure, since t is in use until then */
    if (begun != DT_OK || waited != DT_OK)
        return begun != DT_OK ? begun : waited;
    next[1] = cell(t, 1);
    next[n] = cell(t, n);
    return DT_OK;
}

static dt_result_t simulate(double *t, double *next, size_t n)
{
    dt_result_t r = DT_OK;

    if (dt_rank() == 0)
        t[0] = next[0] = 100;
    for (int k = 0; k < STEPS && r == DT_OK; k++) {
        double *newest = next;

        r = step(t, next, n);
        next = t;
        t = newest;
    }
    return r; /* after an even number of steps, the result is in the caller's t */
}

/* Rank 0 prints the temperatures along the bar. */
static dt_result_t show(const double *t, const size_t *counts)
{
    double bar[CELLS];
    dt_result_t r = dt_gatherv(DT_WORLD, t + 1, counts[dt_rank()], bar, counts, DT_F64, 0);

    for (int i = 0; r == DT_OK && dt_rank() == 0 && i < CELLS; i += CELLS / 50)
        printf("%d %.17g\n", i, bar[i]);
    return r;
}

static dt_result_t work(void)
{
    size_t n, ranks = (size_t)dt_size(), *counts = calloc(ranks, sizeof *counts);
    double *t, *next;
    dt_result_t r = DT_ERR_NOMEM;

    for (size_t i = 0; counts && i < ranks; i++)
        counts[i] = CELLS * (i + 1) / ranks - CELLS * i / ranks;
    n = counts ? counts[dt_rank()] : 0;
    t = calloc(n + 2, sizeof *t);
    next = calloc(n + 2, sizeof *next);
    if (counts && t && next)
        r = simulate(t, next, n);
    if (r == DT_OK)
        r = show(t, counts);
    free(counts);
    free(t);
    free(next);
    return r;
}

int main(void)
{
    int ok = dt_init() == DT_OK;

    if (ok && dt_size() > CELLS / 2) {
        fprintf(stderr, "halo: %d ranks are too many for %d cells\n", dt_size(), CELLS);
        return 2;
    }
    ok = ok && work() == DT_OK && dt_finalize() == DT_OK;
    if (!ok)
        fprintf(stderr, "halo: %s\n", *dt_last_error() ? dt_last_error() : "out of memory");
    return ok ? 0 : 1;
}
