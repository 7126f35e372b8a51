#include "tests/unit/faults/everycall.h"

#include <stdint.h>
#include <string.h>

enum {
    FEW = 5,
    MANY = 96 * 1024,  /* pipelined within a host, several frames between hosts */
    BLOCK = 12 * 1024, /* the same for each rank's block */
    RANKS = 4,         /* at most */
};

static int32_t in[MANY], out[MANY];
static size_t counts[RANKS];
static int me, size; /* set by give(); every element is compared with what they imply */

/* Element i of the rank's data. */
static int32_t given(int rank, size_t i)
{
    return (int32_t)(1000 * rank + (int)(i % 97));
}

static void give(size_t n)
{
    me = dt_rank();
    size = dt_size();
    for (size_t i = 0; i < n; i++)
        in[i] = given(me, i);
    memset(out, 0xff, sizeof out);
}

static int32_t sum_at(size_t i)
{
    int32_t sum = 0;

    for (int rank = 0; rank < size; rank++)
        sum += given(rank, i);
    return sum;
}

static dt_result_t check(dt_result_t r, const int32_t *got, size_t n, int32_t (*expected)(size_t i))
{
    for (size_t i = 0; r == DT_OK && i < n; i++) {
        if (got[i] != expected(i))
            r = (dt_result_t)EVERYCALL_WRONG;
    }
    return r;
}

static int last(void)
{
    return size - 1;
}

/* ---- reductions ---- */

static dt_result_t reduce_all(size_t n)
{
    give(n);
    return check(dt_all_reduce(DT_WORLD, in, out, n, DT_I32, DT_SUM), out, n, sum_at);
}

static dt_result_t all_reduce_few(void)
{
    return reduce_all(FEW);
}

static dt_result_t all_reduce_many(void)
{
    return reduce_all(MANY);
}

static dt_result_t reduce(void)
{
    give(MANY);
    return check(dt_reduce(DT_WORLD, in, out, MANY, DT_I32, DT_SUM, last()), out,
                 dt_rank() == last() ? MANY : 0, sum_at);
}

static int32_t my_sum_at(size_t i)
{
    return sum_at(i + (size_t)me * BLOCK);
}

static dt_result_t reduce_scatter(void)
{
    give((size_t)dt_size() * BLOCK);
    return check(dt_reduce_scatter(DT_WORLD, in, out, BLOCK, DT_I32, DT_SUM), out, BLOCK,
                 my_sum_at);
}

static const size_t *count_alike(void)
{
    for (int rank = 0; rank < dt_size(); rank++)
        counts[rank] = BLOCK;
    return counts;
}

static dt_result_t reduce_scatterv(void)
{
    give((size_t)dt_size() * BLOCK);
    return check(dt_reduce_scatterv(DT_WORLD, in, out, count_alike(), DT_I32, DT_SUM), out, BLOCK,
                 my_sum_at);
}

/* ---- calls that move data ---- */

static int32_t last_at(size_t i)
{
    return given(last(), i);
}

static dt_result_t broadcast(void)
{
    give(MANY);
    return check(dt_broadcast(DT_WORLD, in, MANY, DT_I32, last()), in, MANY, last_at);
}

static int32_t gathered_at(size_t i)
{
    return given((int)(i / BLOCK), i % BLOCK);
}

static dt_result_t all_gather(void)
{
    give(BLOCK);
    return check(dt_all_gather(DT_WORLD, in, out, BLOCK, DT_I32), out, BLOCK * (size_t)dt_size(),
                 gathered_at);
}

static dt_result_t all_gatherv(void)
{
    give(BLOCK);
    return check(dt_all_gatherv(DT_WORLD, in, out, count_alike(), DT_I32), out,
                 BLOCK * (size_t)dt_size(), gathered_at);
}

static dt_result_t gather(void)
{
    give(BLOCK);
    return check(dt_gather(DT_WORLD, in, out, BLOCK, DT_I32, last()), out,
                 dt_rank() == last() ? BLOCK * (size_t)dt_size() : 0, gathered_at);
}

static dt_result_t gatherv(void)
{
    give(BLOCK);
    return check(dt_gatherv(DT_WORLD, in, BLOCK, out, count_alike(), DT_I32, last()), out,
                 dt_rank() == last() ? BLOCK * (size_t)dt_size() : 0, gathered_at);
}

static int32_t scattered_at(size_t i)
{
    return given(last(), i + (size_t)me * BLOCK);
}

static dt_result_t scatter(void)
{
    give((size_t)dt_size() * BLOCK);
    return check(dt_scatter(DT_WORLD, in, out, BLOCK, DT_I32, last()), out, BLOCK, scattered_at);
}

static dt_result_t scatterv(void)
{
    give((size_t)dt_size() * BLOCK);
    return check(dt_scatterv(DT_WORLD, in, count_alike(), out, BLOCK, DT_I32, last()), out, BLOCK,
                 scattered_at);
}

static int32_t exchanged_at(size_t i)
{
    return given((int)(i / BLOCK), i % BLOCK + (size_t)me * BLOCK);
}

static dt_result_t all_to_all(void)
{
    give((size_t)dt_size() * BLOCK);
    return check(dt_all_to_all(DT_WORLD, in, out, BLOCK, DT_I32), out, (size_t)dt_size() * BLOCK,
                 exchanged_at);
}

static dt_result_t all_to_allv(void)
{
    const size_t *alike = count_alike();

    give((size_t)dt_size() * BLOCK);
    return check(dt_all_to_allv(DT_WORLD, in, alike, out, alike, DT_I32), out,
                 (size_t)dt_size() * BLOCK, exchanged_at);
}

static int32_t before_me_at(size_t i)
{
    return given((me + size - 1) % size, i);
}

/* Passes data round a ring, in which rank 0 receives first. */
static dt_result_t send_recv(void)
{
    int next = (dt_rank() + 1) % dt_size(), before = (dt_rank() + dt_size() - 1) % dt_size();
    dt_result_t r = DT_OK;

    give(MANY);
    if (dt_size() == 1)
        return DT_OK;
    if (dt_rank() != 0)
        r = dt_send(DT_WORLD, in, MANY, DT_I32, next);
    if (r == DT_OK)
        r = dt_recv(DT_WORLD, out, MANY, DT_I32, before);
    if (r == DT_OK && dt_rank() == 0)
        r = dt_send(DT_WORLD, in, MANY, DT_I32, next);
    return check(r, out, MANY, before_me_at);
}

/* ---- without data, in the background, on other communicators ---- */

static dt_result_t barrier(void)
{
    return dt_barrier(DT_WORLD);
}

static dt_result_t requests(void)
{
    dt_request_t request[2] = { { 0 }, { 0 } };
    dt_result_t r, waited;

    give(MANY);
    r = dt_iall_reduce(DT_WORLD, in, out, MANY, DT_I32, DT_SUM, &request[0]);
    if (r == DT_OK)
        r = dt_ibroadcast(DT_WORLD, in, FEW, DT_I32, last(), &request[1]);
    waited = dt_wait_all(request, 2);
    r = check(r == DT_OK ? waited : r, out, MANY, sum_at);
    return check(r, in, FEW, last_at);
}

static dt_result_t bucket(void)
{
    dt_bucket_t *b;
    dt_result_t r = dt_bucket_create(DT_WORLD, MANY, DT_I32, DT_SUM, &b), freed;

    if (r != DT_OK)
        return r;
    give(MANY);
    r = dt_bucket_push(b, in, MANY);
    if (r == DT_OK)
        r = dt_bucket_wait(b);
    freed = dt_bucket_free(b);
    return check(r == DT_OK ? freed : r, in, MANY, sum_at);
}

/* All ranks except 0 are in one communicator. */
static dt_result_t split(void)
{
    dt_comm_t *comm;
    dt_result_t r = dt_comm_split(DT_WORLD, dt_rank() > 0, -dt_rank(), &comm), freed;

    if (r != DT_OK)
        return r;
    give(FEW);
    r = dt_broadcast(comm, in, FEW, DT_I32, 0);
    if (r == DT_OK && dt_rank() > 0)
        r = check(r, in, FEW, last_at);
    freed = dt_comm_free(comm);
    return r == DT_OK ? freed : r;
}

static dt_result_t add_orthogonal(dt_comm_t *comm)
{
    static float v[MANY];
    size_t n = (size_t)dt_comm_size(comm), own = (size_t)dt_comm_rank(comm);
    dt_result_t r;

    for (size_t i = 0; i < MANY; i++)
        v[i] = i % n == own ? (float)(i % 97) : 0;
    r = dt_all_reduce(comm, DT_IN_PLACE, v, MANY, DT_F32, DT_ADASUM);
    for (size_t i = 0; r == DT_OK && i < MANY; i++) {
        if (v[i] != (float)(i % 97))
            r = (dt_result_t)EVERYCALL_WRONG;
    }
    return r;
}

/* The largest power of two of ranks, and the remaining one if there is one. */
static dt_result_t adasum(void)
{
    int n = 1 << (31 - __builtin_clz((unsigned)dt_size()));
    dt_comm_t *comm;
    dt_result_t r = dt_comm_split(DT_WORLD, dt_rank() < n, 0, &comm), freed;

    if (r != DT_OK)
        return r;
    r = add_orthogonal(comm);
    freed = dt_comm_free(comm);
    return r == DT_OK ? freed : r;
}

static dt_result_t dup(void)
{
    dt_comm_t *comm;
    dt_result_t r = dt_comm_dup(DT_WORLD, &comm), freed;

    if (r != DT_OK)
        return r;
    give(BLOCK);
    r = check(dt_all_reduce(comm, in, out, BLOCK, DT_I32, DT_SUM), out, BLOCK, sum_at);
    freed = dt_comm_free(comm);
    return r == DT_OK ? freed : r;
}

static int32_t last_alone_at(size_t i)
{
    return given(last(), i);
}

/* The last rank has data for one more call. */
static dt_result_t uneven(void)
{
    int came_last = -1;
    dt_result_t r = dt_join_begin(DT_WORLD);

    give(FEW);
    if (r == DT_OK && dt_rank() == last())
        r = check(dt_all_reduce(DT_WORLD, in, out, FEW, DT_I32, DT_SUM), out, FEW, last_alone_at);
    if (r == DT_OK)
        r = dt_join(DT_WORLD, &came_last);
    return r == DT_OK && came_last != last() ? (dt_result_t)EVERYCALL_WRONG : r;
}

static dt_result_t checkpoint(void)
{
    static int32_t kept[FEW];
    int64_t step = -1;
    dt_result_t r = dt_checkpoint_register("kept", kept, sizeof kept);

    kept[0] = dt_rank();
    if (r == DT_OK)
        r = dt_checkpoint_save(7);
    kept[0] = -1;
    if (r == DT_OK)
        r = dt_checkpoint_restore(&step);
    return r == DT_OK && (step != 7 || kept[0] != dt_rank()) ? (dt_result_t)EVERYCALL_WRONG : r;
}

const struct everycall everycalls[] = {
    { "init", dt_init },
    { "barrier", barrier },
    { "all-reduce of few", all_reduce_few },
    { "all-reduce of many", all_reduce_many },
    { "reduce", reduce },
    { "reduce-scatter", reduce_scatter },
    { "reduce-scatterv", reduce_scatterv },
    { "broadcast", broadcast },
    { "all-gather", all_gather },
    { "all-gatherv", all_gatherv },
    { "gather", gather },
    { "gatherv", gatherv },
    { "scatter", scatter },
    { "scatterv", scatterv },
    { "all-to-all", all_to_all },
    { "all-to-allv", all_to_allv },
    { "send and recv", send_recv },
    { "requests", requests },
    { "bucket", bucket },
    { "split", split },
    { "adasum", adasum },
    { "dup", dup },
    { "join", uneven },
    { "checkpoint", checkpoint },
    { "finalize", dt_finalize },
};
const size_t everycalls_n = sizeof everycalls / sizeof *everycalls;
