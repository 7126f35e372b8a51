#include "tests/unit/faults/everycall.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "cmd/perf/ops.h"

enum {
    FEW = 5,
    MANY = 96 * 1024,  /* pipelined within a host, several frames between hosts */
    BLOCK = 12 * 1024, /* the same for each rank's block */
    RANKS = 4,         /* at most */
    PERIOD = 97,       /* data repeat after this many elements */
};

static int32_t in[MANY];
static union {
    int32_t ints[MANY];
    float floats[MANY];
} memory;
static int32_t *const out = memory.ints;
static int me, size; /* set by give(); every element is compared with what they imply */

/* Element i of the rank's data. */
static int32_t given(int rank, size_t i)
{
    return (int32_t)(1000 * rank + (int)(i % PERIOD));
}

/* Whether v, of elements of four bytes, repeats. */
static bool repeats(const void *v, size_t n)
{
    return n <= PERIOD ||
           memcmp(v, (const int32_t *)v + PERIOD, (n - PERIOD) * sizeof(int32_t)) == 0;
}

/* Calls give and take no more than n elements. */
static void give(size_t n)
{
    me = dt_rank();
    size = dt_size();
    for (size_t i = 0; i < n && i < PERIOD; i++)
        in[i] = given(me, i);
    for (size_t i = PERIOD; i < n; i += PERIOD)
        memcpy(in + i, in, (n - i < PERIOD ? n - i : PERIOD) * sizeof *in);
    memset(out, 0xff, n * sizeof *out);
}

static int32_t sum_to(int end, size_t i)
{
    int32_t sum = 0;

    for (int rank = 0; rank <= end; rank++)
        sum += given(rank, i);
    return sum;
}

static int32_t sum_at(size_t i)
{
    return sum_to(size - 1, i);
}

static dt_result_t check(dt_result_t r, const int32_t *got, size_t n, int32_t (*expected)(size_t i))
{
    bool right = repeats(got, n);

    for (size_t i = 0; i < n && i < PERIOD; i++)
        right = right && got[i] == expected(i);
    return r == DT_OK && !right ? (dt_result_t)EVERYCALL_WRONG : r;
}

static int last(void)
{
    return size - 1;
}

/* ---- the collectives that dtrun-perf measures ---- */

static bool is_block_of(const struct dt_perf_op *op, struct dt_perf_source source, size_t count,
                        const int32_t *got)
{
    size_t before = (size_t)source.block * count;

    for (size_t i = 0; i < count && i < PERIOD; i++) {
        if (got[i] != (op->reduces ? sum_to : given)(source.rank, before + i))
            return false;
    }
    return repeats(got, count);
}

static dt_result_t make_collective(const struct dt_perf_op *op)
{
    static const size_t alike[RANKS] = { [0 ... RANKS - 1] = BLOCK };
    bool blocks = op->many_in || op->many_out;
    size_t count = blocks ? BLOCK : MANY;
    struct dt_perf_case c = {
        .dtype = DT_I32, .root = dt_size() - 1, .gives = alike, .takes = alike
    };
    dt_result_t r;

    give(blocks ? count * (size_t)dt_size() : count);
    r = op->run(&c, in, out, count);
    if (r != DT_OK || op->empty || (op->root_alone && me != c.root))
        return r;
    for (int block = 0; block < (op->many_out ? size : 1); block++) {
        struct dt_perf_source source = op->source(me, size, c.root, block);

        if (!is_block_of(op, source, count, out + (size_t)block * count))
            r = (dt_result_t)EVERYCALL_WRONG;
    }
    return r;
}

/* ---- with little data, in the background, on other communicators ---- */

static dt_result_t all_reduce_few(void)
{
    give(FEW);
    return check(dt_all_reduce(DT_WORLD, in, out, FEW, DT_I32, DT_SUM), out, FEW, sum_at);
}

static int32_t last_at(size_t i)
{
    return given(last(), i);
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

static int32_t previous_at(size_t i)
{
    return given((me + size - 1) % size, i);
}

static dt_result_t wait_in_every_way(dt_request_t request[2])
{
    size_t index;
    dt_result_t r = dt_wait_any(request, 2, &index);
    int done = 0;

    for (int i = 0; r == DT_OK && !done && i < 3; i++)
        r = dt_test(&request[!index], &done);
    if (r == DT_OK && !done)
        r = dt_wait_for(&request[!index], 0.001, &done);
    return r;
}

/* Round all ranks. After a failure that ends no communicator, the other ranks would wait for this
 * one in their next call. */
static dt_result_t background_sends(size_t n)
{
    dt_request_t request[2] = { { 0 }, { 0 } };
    dt_result_t r, waited;

    give(n);
    r = dt_irecv(DT_WORLD, out, n, DT_I32, (me + size - 1) % size, &request[0]);
    if (r == DT_OK)
        r = dt_isend(DT_WORLD, in, n, DT_I32, (me + 1) % size, &request[1]);
    if (r == DT_OK)
        r = wait_in_every_way(request);
    if (r != DT_OK)
        (void)dt_comm_abort(DT_WORLD);
    waited = dt_wait_all(request, 2);
    return check(r == DT_OK ? waited : r, out, n, previous_at);
}

static dt_result_t few_sends(void)
{
    return background_sends(FEW);
}

static dt_result_t many_sends(void)
{
    return background_sends(MANY);
}

static dt_result_t dump(void)
{
    return dt_recorder_dump("/dev/null");
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
    float *v = memory.floats;
    size_t n = (size_t)dt_comm_size(comm), own = (size_t)dt_comm_rank(comm);
    dt_result_t r;

    memset(v, 0, MANY * sizeof *v);
    for (size_t i = own; i < MANY; i += n)
        v[i] = (float)(i % PERIOD);
    r = dt_all_reduce(comm, DT_IN_PLACE, v, MANY, DT_F32, DT_ADASUM);
    for (size_t i = 0; r == DT_OK && i < PERIOD; i++) {
        if (v[i] != (float)i)
            r = (dt_result_t)EVERYCALL_WRONG;
    }
    return r == DT_OK && !repeats(v, MANY) ? (dt_result_t)EVERYCALL_WRONG : r;
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

/* The last rank has data for one more call. */
static dt_result_t uneven(void)
{
    int came_last = -1;
    dt_result_t r = dt_join_begin(DT_WORLD);

    give(FEW);
    if (r == DT_OK && dt_rank() == last())
        r = check(dt_all_reduce(DT_WORLD, in, out, FEW, DT_I32, DT_SUM), out, FEW, last_at);
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

/* A save in the background, with a call of the program's own beside it. */
static dt_result_t isave(void)
{
    dt_request_t request = { 0 };
    dt_result_t r = dt_checkpoint_isave(8, &request), waited;

    give(FEW);
    if (r == DT_OK)
        r = check(dt_all_reduce(DT_WORLD, in, out, FEW, DT_I32, DT_SUM), out, FEW, sum_at);
    waited = dt_wait(&request);
    return r == DT_OK ? waited : r;
}

/* ---- all of them ---- */

static const struct other {
    const char *name;
    dt_result_t (*make)(void);
} others[] = {
    { "all-reduce of few", all_reduce_few },
    { "requests", requests },
    { "sends of few", few_sends },
    { "sends of many", many_sends },
    { "dump", dump },
    { "bucket", bucket },
    { "split", split },
    { "adasum", adasum },
    { "dup", dup },
    { "join", uneven },
    { "checkpoint", checkpoint },
    { "isave", isave },
    { "finalize", dt_finalize },
};

static size_t collectives(void)
{
    size_t n = 0;

    while (dt_perf_op_at(n))
        n++;
    return n;
}

size_t everycall_n(void)
{
    return 1 + collectives() + sizeof others / sizeof *others;
}

bool everycall_prepare(void)
{
    return true;
}

const char *everycall_name(size_t call)
{
    if (call == 0)
        return "init";
    return call <= collectives() ? dt_perf_op_at(call - 1)->name
                                 : others[call - 1 - collectives()].name;
}

dt_result_t everycall_make(size_t call)
{
    if (call == 0)
        return dt_init();
    return call <= collectives() ? make_collective(dt_perf_op_at(call - 1))
                                 : others[call - 1 - collectives()].make();
}
