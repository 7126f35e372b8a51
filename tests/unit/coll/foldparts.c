/* Reduce and reduce-scatter between hosts: each rank gets the bytes of an all-reduce, in any order
 * of ranks and for any amount of data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/api/context.h"
#include "runtime/kernels/dtype.h"
#include "tests/unit/checks.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/reference.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/testjob.h"

/* The communicator, and this rank's place in it. */
static dt_comm_t *comm;
static int me, size;

/* The thresholds choose leaders or the ring for an all-reduce. */
enum how { LANES, RING, HOWS };

static int tune(enum how how)
{
    struct dt_comm *c;

    NEED(dt_context_enter("test", comm, &c) == DT_OK);
    c->tuning.net_leader = how == RING ? SIZE_MAX : 0;
    c->tuning.net_direct = c->tuning.net_exchange = how == RING ? 0 : 1 << 20;
    dt_context_leave(c);
    return 0;
}

struct buffers {
    uint8_t *in, *all, *out; /* of the whole, at an odd address, each with canaries around it */
    size_t count, bytes;     /* of the whole */
    dt_dtype_t dtype;
    dt_op_t op;
};

static uint8_t *room(size_t bytes)
{
    uint8_t *p = malloc(bytes + 2 * REFERENCE_CANARY);

    memset(p, 0xa5, bytes + 2 * REFERENCE_CANARY);
    return p + REFERENCE_CANARY;
}

static bool is_whole(const uint8_t *p, size_t bytes)
{
    return reference_canaries(p - REFERENCE_CANARY) && reference_canaries(p + bytes);
}

static void release(uint8_t *p)
{
    free(p - REFERENCE_CANARY);
}

/* Reduces to every rank, out of place and in place. */
static int reduces(const struct buffers *b)
{
    for (int root = 0; root < size; root += 1 + 2 * SANITIZED) {
        bool is_root = me == root;

        memset(b->out, 0, b->bytes);
        NEED(dt_reduce(comm, b->in, is_root ? b->out : NULL, b->count, b->dtype, b->op, root) ==
             DT_OK);
        NEED(!is_root || memcmp(b->out, b->all, b->bytes) == 0);
        memcpy(b->out, b->in, b->bytes);
        NEED(dt_reduce(comm, is_root ? DT_IN_PLACE : b->in, b->out, b->count, b->dtype, b->op,
                       root) == DT_OK);
        NEED(memcmp(b->out, is_root ? b->all : b->in, b->bytes) == 0);
    }
    return 0;
}

/* Scatters to a separate buffer, over this rank's block, and to the beginning. */
static int scatters(const struct buffers *b)
{
    size_t each = b->count / (size_t)size, bytes = b->bytes / (size_t)size;
    size_t mine = bytes * (size_t)me;
    uint8_t *out = room(bytes);

    NEED(dt_reduce_scatter(comm, b->in, out, each, b->dtype, b->op) == DT_OK);
    NEED(memcmp(out, b->all + mine, bytes) == 0 && is_whole(out, bytes));
    release(out);
    memcpy(b->out, b->in, b->bytes);
    NEED(dt_reduce_scatter(comm, b->out, b->out + mine, each, b->dtype, b->op) == DT_OK);
    NEED(memcmp(b->out + mine, b->all + mine, bytes) == 0);
    NEED(memcmp(b->out, b->in, mine) == 0);
    NEED(memcmp(b->out + mine + bytes, b->in + mine + bytes, b->bytes - mine - bytes) == 0);
    memcpy(b->out, b->in, b->bytes);
    NEED(dt_reduce_scatter(comm, DT_IN_PLACE, b->out, each, b->dtype, b->op) == DT_OK);
    NEED(memcmp(b->out, b->all + mine, bytes) == 0);
    return 0;
}

static int try(size_t each, dt_dtype_t dtype, dt_op_t op)
{
    struct buffers b = { .count = each * (size_t)size, .dtype = dtype, .op = op };
    uint8_t *before;

    b.bytes = b.count * dt_dtype_size(dtype);
    b.in = room(b.bytes);
    b.all = room(b.bytes);
    b.out = room(b.bytes);
    before = room(b.bytes);
    reference_fill(b.in, me, b.count, dtype, op);
    memcpy(before, b.in, b.bytes);
    NEED(dt_all_reduce(comm, b.in, b.all, b.count, dtype, op) == DT_OK);
    NEED(reduces(&b) == 0 && scatters(&b) == 0);
    NEED(memcmp(b.in, before, b.bytes) == 0);
    NEED(is_whole(b.in, b.bytes) && is_whole(b.out, b.bytes));
    release(b.in);
    release(b.all);
    release(b.out);
    release(before);
    return 0;
}

static void choose(dt_comm_t *chosen)
{
    comm = chosen;
    me = dt_comm_rank(comm);
    size = dt_comm_size(comm);
}

/* Counts of one chunk and of several, the last of which have no block for some leaders and hosts.
 * Each is reduced by an all-reduce, in blocks, to root at once, and in two steps. */
static int all_sizes(int rank, void *arg)
{
    static const size_t counts[] = { 0, 1, 33, 1000, 4097, 9001, 90001 };
    static const struct {
        dt_dtype_t dtype;
        dt_op_t op;
    } kinds[] = { { DT_F32, DT_SUM }, { DT_F16, DT_AVG },  { DT_BF16, DT_SUM },
                  { DT_U8, DT_MAX },  { DT_F64, DT_PROD }, { DT_I64, DT_BXOR } };

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    choose(DT_WORLD);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            enum how how = (enum how)((i + k) % HOWS);

            if (counts[i] > (SANITIZED ? 33 : 5000) && (i + k) % 3)
                continue;
            NEED(tune(how) == 0 && try(counts[i], kinds[k].dtype, kinds[k].op) == 0);
        }
    }
    NEED(tune(LANES) == 0 && try(400007 / (size_t)size, DT_F32, DT_AVG) == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

/* Ranks in another order than in the job, in which hosts follow each other or take turns: all in
 * one communicator, or some in each of two. */
static int other_orders(int rank, void *arg)
{
    static const size_t counts[] = { 1, 33, 4097, 33333 };

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int color = 0; color < 2; color++) {
        for (int order = 0; order < 2; order++) {
            dt_comm_t *some;

            NEED(dt_comm_split(DT_WORLD, color && rank % 3 == 1, order ? -rank : rank * 5 % 7,
                               &some) == DT_OK);
            choose(some);
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
                for (enum how how = LANES; how < HOWS; how++)
                    NEED(tune(how) == 0 && try(counts[i], how % 2 ? DT_F32 : DT_F16, DT_SUM) == 0);
            }
            NEED(dt_comm_free(some) == DT_OK);
        }
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void every_block_has_the_bytes_of_all_reduce(void **state)
{
    static const char *const placements[] = { "1 1 1", "2 2", "3 1 2", "1 7", "@102102", "9 1" };

    (void)state;
    reference_inputs(false);
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++)
        testjob_must_pass(placements[i], all_sizes, NULL);
}

static void ranks_may_be_in_any_order(void **state)
{
    static const char *const placements[] = { "1 1 1", "2 2", "3 1 2", "1 7", "@102102" };

    (void)state;
    reference_inputs(false);
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++)
        testjob_must_pass(placements[i], other_orders, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKS("1, 2, 7, 10, 18, 19", every_block_has_the_bytes_of_all_reduce),
        cmocka_unit_test(ranks_may_be_in_any_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
