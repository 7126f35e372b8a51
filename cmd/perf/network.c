#include "cmd/perf/network.h"

#include <stdlib.h>

#include "cmd/perf/measure.h"

enum {
    CHUNK = 1 << 20, /* bytes */
    AHEAD = 16,      /* chunks whose sends are under way at once */
    TRIALS = 3,
};

static const double long_enough_us = 1e5;

struct ring {
    dt_comm_t *comm; /* the ranks with this local rank; DT_COMM_NULL: some host has none */
    char *memory;    /* the data to send, then the data received */
    int streams;     /* number of ranks that every host has */
};

/* ---- the rings ---- */

static dt_result_t open_ring(struct ring *g)
{
    int32_t streams = dt_local_size();
    dt_result_t r;

    *g = (struct ring){ .comm = DT_COMM_NULL };
    r = dt_all_reduce(DT_WORLD, DT_IN_PLACE, &streams, 1, DT_I32, DT_MIN);
    g->streams = streams;
    if (r == DT_OK)
        r = dt_comm_split(DT_WORLD, dt_local_rank() < streams ? dt_local_rank() : DT_UNDEFINED, 0,
                          &g->comm);
    if (r != DT_OK || g->comm == DT_COMM_NULL)
        return r;
    g->memory = calloc(2, CHUNK);
    return g->memory ? DT_OK : DT_ERR_NOMEM;
}

static dt_result_t close_ring(struct ring *g, dt_result_t result)
{
    dt_result_t r = result == DT_OK && g->comm != DT_COMM_NULL ? dt_comm_free(g->comm) : DT_OK;

    free(g->memory);
    return result == DT_OK ? r : result;
}

/* ---- streaming ---- */

/* Sends and receives at once, without a pause between the chunks. */
static dt_result_t stream(const struct ring *g, int chunks)
{
    int me = dt_comm_rank(g->comm), n = dt_comm_size(g->comm), next = (me + 1) % n;
    dt_request_t sends[AHEAD] = { { 0 } };
    dt_result_t r = DT_OK;

    for (int i = 0; i < chunks + AHEAD && r == DT_OK; i++) {
        dt_request_t *request = &sends[i % AHEAD];

        if (i >= AHEAD)
            r = dt_recv(g->comm, g->memory + CHUNK, CHUNK, DT_U8, (me + n - 1) % n);
        if (r == DT_OK)
            r = dt_wait(request);
        if (r == DT_OK && i < chunks)
            r = dt_isend(g->comm, g->memory, CHUNK, DT_U8, next, request);
    }
    return r;
}

/* Measures the time until the last rank is done, if "streams" ranks of each host stream. */
static dt_result_t trial(const struct ring *g, int streams, int chunks, double *us)
{
    dt_result_t r = dt_barrier(DT_WORLD);
    double start = dt_perf_now_us();

    if (r == DT_OK && dt_local_rank() < streams)
        r = stream(g, chunks);
    *us = dt_perf_now_us() - start;
    return r == DT_OK ? dt_all_reduce(DT_WORLD, DT_IN_PLACE, us, 1, DT_F64, DT_MAX) : r;
}

/* Finds how many chunks take long enough. The first trial only creates the connections. */
static dt_result_t choose_chunks(const struct ring *g, int *chunks)
{
    double us = 0;
    dt_result_t r = trial(g, 1, 1, &us);

    for (*chunks = 1; r == DT_OK; *chunks *= 2) {
        r = trial(g, 1, *chunks, &us);
        if (us >= long_enough_us)
            break;
    }
    return r;
}

static dt_result_t find_best(const struct ring *g, int streams, int chunks, double *gbits)
{
    double us;
    dt_result_t r = DT_OK;

    for (int i = 0; i < TRIALS && r == DT_OK; i++) {
        double found;

        r = trial(g, streams, chunks, &us);
        found = 8e-3 * CHUNK * chunks * streams / us;
        *gbits = found > *gbits ? found : *gbits;
    }
    return r;
}

dt_result_t dt_perf_network_gbits(double *gbits)
{
    struct ring g;
    int chunks = 0;
    dt_result_t r = open_ring(&g);

    *gbits = 0;
    if (r == DT_OK)
        r = choose_chunks(&g, &chunks);
    if (r == DT_OK)
        r = find_best(&g, 1, chunks, gbits);
    if (r == DT_OK && g.streams > 1)
        r = find_best(&g, g.streams, (chunks + g.streams - 1) / g.streams, gbits);
    return close_ring(&g, r);
}
