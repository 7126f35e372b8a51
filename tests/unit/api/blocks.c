/* The collectives that give each rank a block of its own, as programs call them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/kernels/dtype.h"
#include "tests/unit/checks.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

enum { MOST = 8, CANARY = 0x5a5a5a5a };
enum { VARIED = 3000, VARIED_ROOM = MOST * (2 * VARIED + 1) * 8 + 2 };

static bool background;
static dt_request_t pending;

static dt_result_t wait_for(dt_result_t started)
{
    return started == DT_OK ? dt_wait(&pending) : started;
}

/* Makes the call, or its form in the background, by turns. */
#define CALL(name, ...)                                                                            \
    (background ? wait_for(dt_i##name(__VA_ARGS__, &pending)) : dt_##name(__VA_ARGS__))

static const size_t sizes[] = { 0, 1, 7, 3000 };

/* Calls that only move data move words, as this many elements each. */
static struct {
    dt_dtype_t dtype;
    size_t each;
} words = { DT_I32, 1 };

static size_t elements(size_t count)
{
    return count * words.each;
}

/* The counts in elements, in a separate array for each use. */
static const size_t *elements_of(const size_t *counts, int n, int use)
{
    static size_t scaled[2][MOST];

    for (int i = 0; counts && i < n; i++)
        scaled[use][i] = elements(counts[i]);
    return counts ? scaled[use] : NULL;
}

/* Element i of what rank "from" sends to rank "to". */
static int32_t value(int from, int to, size_t i)
{
    return from * 1000003 + to * 10007 + (int32_t)i;
}

static int32_t *room(size_t count)
{
    int32_t *p = malloc((count + 1) * sizeof *p);

    for (size_t i = 0; i <= count; i++)
        p[i] = CANARY;
    return p;
}

static int wrong(const int32_t *p, int from, int to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (p[i] != value(from, to, i))
            return 1;
    }
    return 0;
}

static void fill(int32_t *p, int from, int to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        p[i] = value(from, to, i);
}

static int folds(dt_comm_t *comm, size_t count)
{
    int n = dt_comm_size(comm), me = dt_comm_rank(comm), sum = n * (n - 1) / 2;
    int32_t *in = room(count * (size_t)n), *out = room(count * (size_t)n);

    for (int i = 0; i < n; i++)
        fill(in + (size_t)i * count, me, i, count);
    for (int root = 0; root < n; root++) {
        NEED(CALL(reduce, comm, in, me == root ? out : NULL, count, DT_I32, DT_SUM, root) == DT_OK);
        for (size_t i = 0; i < count && me == root; i++)
            NEED(out[i] == sum * 1000003 + n * (int32_t)i);
        NEED(out[count] == CANARY || me != root);
    }
    NEED(CALL(reduce_scatter, comm, in, out, count, DT_I32, DT_SUM) == DT_OK);
    for (size_t i = 0; i < count; i++)
        NEED(out[i] == sum * 1000003 + n * (me * 10007 + (int32_t)i));
    memcpy(out, in, count * (size_t)n * sizeof *in);
    NEED(CALL(reduce_scatter, comm, DT_IN_PLACE, out, count, DT_I32, DT_SUM) == DT_OK);
    for (size_t i = 0; i < count; i++)
        NEED(out[i] == sum * 1000003 + n * (me * 10007 + (int32_t)i));
    memcpy(out, in, count * (size_t)n * sizeof *in); /* where NCCL expects it */
    NEED(CALL(reduce_scatter, comm, out, out + (size_t)me * count, count, DT_I32, DT_SUM) == DT_OK);
    for (size_t i = 0; i < count; i++)
        NEED(out[(size_t)me * count + i] == sum * 1000003 + n * (me * 10007 + (int32_t)i));
    fill(out, me, 0, count);
    NEED(CALL(reduce, comm, me == n - 1 ? DT_IN_PLACE : out, out, count, DT_I32, DT_MAX, n - 1) ==
         DT_OK);
    NEED(me != n - 1 || !wrong(out, n - 1, 0, count));
    NEED(out[count * (size_t)n] == CANARY);
    free(in);
    free(out);
    return 0;
}

static int equal_blocks(dt_comm_t *comm, size_t count)
{
    int n = dt_comm_size(comm), me = dt_comm_rank(comm);
    size_t total = count * (size_t)n;
    int32_t *in = room(total), *out = room(total);

    fill(in, me, 0, count);
    NEED(CALL(all_gather, comm, in, out, elements(count), words.dtype) == DT_OK);
    for (int i = 0; i < n; i++)
        NEED(!wrong(out + (size_t)i * count, i, 0, count));
    memset(out, 0, total * sizeof *out);
    fill(out + (size_t)me * count, me, 0, count);
    NEED(CALL(all_gather, comm, DT_IN_PLACE, out, elements(count), words.dtype) == DT_OK);
    for (int i = 0; i < n; i++)
        NEED(!wrong(out + (size_t)i * count, i, 0, count));
    for (int i = 0; i < n; i++)
        fill(in + (size_t)i * count, me, i, count);
    NEED(CALL(all_to_all, comm, in, out, elements(count), words.dtype) == DT_OK);
    for (int i = 0; i < n; i++)
        NEED(!wrong(out + (size_t)i * count, i, me, count));
    memcpy(out, in, total * sizeof *out);
    NEED(CALL(all_to_all, comm, me % 2 ? DT_IN_PLACE : out, out, elements(count), words.dtype) ==
         DT_OK);
    for (int i = 0; i < n; i++)
        NEED(!wrong(out + (size_t)i * count, i, me, count));
    for (int root = 0; root < n; root++) {
        NEED(CALL(scatter, comm, me == root ? in : NULL, out, elements(count), words.dtype, root) ==
             DT_OK);
        NEED(!wrong(out, root, me, count));
        fill(out, me, 3, count);
        if (me == root)
            fill(in + (size_t)me * count, me, 3, count);
        NEED(CALL(gather, comm, me == root ? DT_IN_PLACE : out, me == root ? in : NULL, count,
                  DT_I32, root) == DT_OK);
        for (int i = 0; i < n && me == root; i++)
            NEED(!wrong(in + (size_t)i * count, i, 3, count));
        for (int i = 0; i < n; i++)
            fill(in + (size_t)i * count, me, i, count);
    }
    NEED(in[total] == CANARY && out[total] == CANARY);
    free(in);
    free(out);
    return 0;
}

/* Rank a sends (a + 2 * b) % 5 * count elements to rank b; often none. */
static size_t share(int a, int b, size_t count)
{
    return (size_t)((a + 2 * b) % 5) * count;
}

static size_t place(const size_t *counts, int rank)
{
    size_t at = 0;

    for (int i = 0; i < rank; i++)
        at += counts[i];
    return at;
}

/* all: what each rank sends to rank 0. */
static int holds_shares(const int32_t *all, const size_t *counts, int n)
{
    for (int i = 0; i < n; i++)
        NEED(!wrong(all + place(counts, i), i, 0, counts[i]));
    return 0;
}

static int all_gatherv_in_place(dt_comm_t *comm, int32_t *all, const size_t *counts)
{
    int n = dt_comm_size(comm), me = dt_comm_rank(comm);

    memset(all, 0, place(counts, n) * sizeof *all);
    fill(all + place(counts, me), me, 0, counts[me]);
    NEED(CALL(all_gatherv, comm, DT_IN_PLACE, all, elements_of(counts, n, 0), words.dtype) ==
         DT_OK);
    return holds_shares(all, counts, n);
}

/* From their place at root back to the same place. The others have a place of their own. */
static int rooted_in_place(dt_comm_t *comm, int32_t *all, const size_t *counts, int root)
{
    int n = dt_comm_size(comm), me = dt_comm_rank(comm);
    bool is_root = me == root;
    int32_t *mine = is_root ? all + place(counts, me) : room(counts[me]);
    const size_t *blocks = elements_of(is_root ? counts : NULL, n, 0);

    for (int i = 0; i < n && is_root; i++)
        fill(all + place(counts, i), i, 0, counts[i]);
    NEED(CALL(scatterv, comm, is_root ? all : NULL, blocks, mine, elements(counts[me]), words.dtype,
              root) == DT_OK);
    NEED(!wrong(mine, me, 0, counts[me]));
    if (is_root)
        memset(all, 0, place(counts, n) * sizeof *all);
    fill(mine, me, 0, counts[me]);
    NEED(CALL(gatherv, comm, is_root ? DT_IN_PLACE : mine, elements(counts[me]),
              is_root ? all : NULL, blocks, words.dtype, root) == DT_OK);
    NEED(!is_root || holds_shares(all, counts, n) == 0);
    if (!is_root)
        free(mine);
    return 0;
}

/* Two ranks send each other equally much. */
static int all_to_allv_in_place(dt_comm_t *comm, size_t count)
{
    int n = dt_comm_size(comm), me = dt_comm_rank(comm);
    size_t counts[MOST] = { 0 }, total = 0, at = 0;
    int32_t *all;

    for (int i = 0; i < n; i++)
        total += counts[i] = share(me, i, count) + share(i, me, count);
    all = room(total);
    for (int i = 0; i < n; at += counts[i++])
        fill(all + at, me, i, counts[i]);
    NEED(CALL(all_to_allv, comm, DT_IN_PLACE, NULL, all, elements_of(counts, n, 0), words.dtype) ==
         DT_OK);
    at = 0;
    for (int i = 0; i < n; at += counts[i++])
        NEED(!wrong(all + at, i, me, counts[i]));
    NEED(all[total] == CANARY);
    free(all);
    return 0;
}

static int unequal_blocks(dt_comm_t *comm, size_t count)
{
    int n = dt_comm_size(comm), me = dt_comm_rank(comm);
    size_t gives[MOST] = { 0 }, takes[MOST] = { 0 }, given = 0, taken = 0, at = 0;

    for (int i = 0; i < n; i++) {
        given += gives[i] = share(me, i, count);
        taken += takes[i] = share(i, me, count);
    }
    int32_t *in = room(given), *out = room(taken);
    for (int i = 0; i < n; at += gives[i++])
        fill(in + at, me, i, gives[i]);
    NEED(CALL(all_to_allv, comm, in, elements_of(gives, n, 0), out, elements_of(takes, n, 1),
              words.dtype) == DT_OK);
    at = 0;
    for (int i = 0; i < n; at += takes[i++])
        NEED(!wrong(out + at, i, me, takes[i]));
    NEED(out[taken] == CANARY);
    free(out);
    NEED(all_to_allv_in_place(comm, count) == 0);
    /* Each rank's block for rank 0, and back. */
    taken = 0;
    for (int i = 0; i < n; i++)
        taken += takes[i] = share(i, 0, count);
    out = room(taken);
    NEED(CALL(all_gatherv, comm, in, out, elements_of(takes, n, 0), words.dtype) == DT_OK);
    at = 0;
    for (int i = 0; i < n; at += takes[i++])
        NEED(!wrong(out + at, i, 0, takes[i]));
    NEED(all_gatherv_in_place(comm, out, takes) == 0);
    for (int root = 0; root < n; root++) {
        const size_t *counts = elements_of(me == root ? takes : NULL, n, 0);

        memset(out, 0, taken * sizeof *out);
        NEED(CALL(gatherv, comm, in, elements(takes[me]), out, counts, words.dtype, root) == DT_OK);
        at = 0;
        for (int i = 0; i < n && me == root; at += takes[i++])
            NEED(!wrong(out + at, i, 0, takes[i]));
        memset(in, 0, given * sizeof *in);
        NEED(CALL(scatterv, comm, out, counts, in, elements(takes[me]), words.dtype, root) ==
             DT_OK);
        NEED(!wrong(in, me, 0, takes[me]));
        NEED(rooted_in_place(comm, out, takes, root) == 0);
    }
    NEED(in[given] == CANARY && out[taken] == CANARY);
    free(in);
    free(out);
    return 0;
}

static int all_calls(int rank, void *arg)
{
    dt_comm_t *back;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_split(DT_WORLD, 0, -rank, &back) == DT_OK);
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        background = i % 2;
        words.dtype = i % 3 == 0 ? DT_I32 : i % 3 == 1 ? DT_U8 : DT_F16;
        words.each = sizeof(int32_t) / (i % 3 == 0 ? 4 : i % 3 == 1 ? 1 : 2);
        NEED(folds(DT_WORLD, sizes[i / 2]) == 0 && folds(back, sizes[i / 2]) == 0);
        NEED(equal_blocks(DT_WORLD, sizes[i / 2]) == 0 && equal_blocks(back, sizes[i / 2]) == 0);
        NEED(unequal_blocks(DT_WORLD, sizes[i / 2]) == 0 &&
             unequal_blocks(back, sizes[i / 2]) == 0);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static struct testjob_result result;

static void every_rank_gets_its_block(void **state)
{
    (void)state;
    testjob_must_pass("1", all_calls, NULL);
    testjob_must_pass("2", all_calls, NULL);
    testjob_must_pass("6", all_calls, NULL);
    testjob_must_pass("1 1", all_calls, NULL);
    testjob_must_pass("@0110", all_calls, NULL);
    testjob_must_pass("2 1 1", all_calls, NULL);
    testjob_must_pass("3 1 2", all_calls, NULL);
    testjob_must_pass("1 7", all_calls, NULL);
}

/* Bytes of any kind at an odd address, among them NaNs and subnormal numbers. */
static void any_bytes(uint8_t *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(rand_r(&seed) >> 7);
}

/* What one rank gets of a reduction, or each rank for its block, is what all get of an
 * all-reduce. */
static int same_folds(dt_dtype_t dtype, dt_op_t op)
{
    enum { EACH = 65 };
    static uint8_t in[MOST * EACH * 8 + 2], all[sizeof in], out[sizeof in], before[sizeof in];
    size_t block = EACH * dt_dtype_size(dtype), count = EACH * (size_t)dt_size();
    size_t bytes = block * (size_t)dt_size();

    any_bytes(in, sizeof in, (unsigned)(dt_rank() * 1000 + (int)dtype * 10 + (int)op));
    memcpy(before, in, sizeof in);
    NEED(CALL(all_reduce, DT_WORLD, in + 1, all + 1, count, dtype, op) == DT_OK);
    for (int root = 0; root < dt_size(); root++) {
        memset(out, 0x5a, sizeof out);
        NEED(CALL(reduce, DT_WORLD, in + 1, out + 1, count, dtype, op, root) == DT_OK);
        NEED(dt_rank() != root || memcmp(out + 1, all + 1, bytes) == 0);
        NEED(out[0] == 0x5a && out[bytes + 1] == 0x5a);
    }
    memset(out, 0x5a, sizeof out);
    NEED(CALL(reduce_scatter, DT_WORLD, in + 1, out + 1, EACH, dtype, op) == DT_OK);
    NEED(memcmp(out + 1, all + 1 + (size_t)dt_rank() * block, block) == 0);
    NEED(out[0] == 0x5a && out[block + 1] == 0x5a);
    NEED(memcmp(in, before, sizeof in) == 0);
    return 0;
}

/* Blocks with no, some and most elements, into a separate buffer and in place in both ways. */
static int same_varied_folds(size_t each, dt_dtype_t dtype, dt_op_t op)
{
    static uint8_t in[VARIED_ROOM], all[VARIED_ROOM], out[VARIED_ROOM];
    size_t counts[MOST] = { 0 }, size = dt_dtype_size(dtype), total = 0, at = 0, own;

    for (int r = 0; r < dt_size(); r++) {
        counts[r] = (size_t)((r + 1) % 3) * each + (size_t)r % 2;
        at = r < dt_rank() ? at + counts[r] * size : at;
        total += counts[r];
    }
    own = counts[dt_rank()] * size;
    any_bytes(in, total * size + 1, (unsigned)(dt_rank() * 1000 + (int)dtype * 10 + (int)op));
    NEED(CALL(all_reduce, DT_WORLD, in + 1, all + 1, total, dtype, op) == DT_OK);
    memset(out, 0x5a, sizeof out);
    NEED(CALL(reduce_scatterv, DT_WORLD, in + 1, out + 1, counts, dtype, op) == DT_OK);
    NEED(memcmp(out + 1, all + 1 + at, own) == 0 && out[0] == 0x5a && out[own + 1] == 0x5a);
    memcpy(out, in, total * size + 1);
    NEED(CALL(reduce_scatterv, DT_WORLD, DT_IN_PLACE, out + 1, counts, dtype, op) == DT_OK);
    NEED(memcmp(out + 1, all + 1 + at, own) == 0);
    memcpy(out, in, total * size + 1);
    NEED(CALL(reduce_scatterv, DT_WORLD, out + 1, out + 1 + at, counts, dtype, op) == DT_OK);
    NEED(memcmp(out + 1 + at, all + 1 + at, own) == 0);
    return 0;
}

static int varied_folds(int rank, void *arg)
{
    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (dt_dtype_t t = DT_I8; t <= DT_F64; t++) {
        for (dt_op_t op = DT_SUM; op <= DT_AVG; op++)
            NEED(same_varied_folds(7, t, op) == 0);
        NEED(same_varied_folds(0, t, DT_SUM) == 0);
        NEED(same_varied_folds(VARIED, t, DT_SUM) == 0);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static int folds_of_every_type(int rank, void *arg)
{
    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (dt_dtype_t t = DT_I8; t <= DT_F64; t++) {
        for (dt_op_t op = DT_SUM; op <= DT_BXOR; op++)
            NEED(!dt_op_applies(op, t) || same_folds(t, op) == 0);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void every_reduction_has_the_bytes_of_all_reduce(void **state)
{
    (void)state;
    testjob_must_pass("1", folds_of_every_type, NULL);
    testjob_must_pass("5", folds_of_every_type, NULL);
    testjob_must_pass("3 1 2", folds_of_every_type, NULL);
}

static void blocks_of_any_size_have_the_bytes_of_the_whole(void **state)
{
    (void)state;
    testjob_must_pass("1", varied_folds, NULL);
    testjob_must_pass("5", varied_folds, NULL);
    testjob_must_pass("3 1 2", varied_folds, NULL);
    testjob_must_pass("1 1", varied_folds, NULL);
}

/* ---- misuse ---- */

/* Every call with a root, with one that does not exist. */
static int rootless(int root)
{
    const size_t two[] = { 1, 1 };
    int32_t a[8] = { 0 }, b[8] = { 0 };

    NEED(CALL(broadcast, DT_WORLD, a, 1, DT_I32, root) == DT_ERR_ARG);
    NEED(CALL(reduce, DT_WORLD, a, b, 1, DT_I32, DT_SUM, root) == DT_ERR_ARG);
    NEED(CALL(gather, DT_WORLD, a, b, 1, DT_I32, root) == DT_ERR_ARG);
    NEED(CALL(gatherv, DT_WORLD, a, 1, b, two, DT_I32, root) == DT_ERR_ARG);
    NEED(CALL(scatter, DT_WORLD, a, b, 1, DT_I32, root) == DT_ERR_ARG);
    NEED(CALL(scatterv, DT_WORLD, a, two, b, 1, DT_I32, root) == DT_ERR_ARG);
    return 0;
}

static int misuser(int rank, void *arg)
{
    const size_t two[] = { 1, 1 }, huge[] = { SIZE_MAX / 2, SIZE_MAX / 2 + 9 };
    int32_t a[8] = { 0 }, b[8] = { 0 };

    (void)arg;
    NEED(CALL(gather, DT_WORLD, a, b, 1, DT_I32, 0) == DT_ERR_STATE);
    NEED(dt_init() == DT_OK);
    NEED(rootless(-1) == 0 && rootless(2) == 0 && rootless(INT_MAX) == 0);
    NEED(CALL(reduce, DT_WORLD, a, b, 1, DT_F32, DT_BAND, 0) == DT_ERR_ARG);
    NEED(CALL(reduce, DT_WORLD, NULL, b, 1, DT_I32, DT_SUM, 0) == DT_ERR_ARG);
    NEED(CALL(reduce, DT_WORLD, DT_IN_PLACE, b, 1, DT_I32, DT_SUM, !rank) == DT_ERR_ARG);
    NEED(CALL(reduce, DT_WORLD, a, a + 1, 2, DT_I32, DT_SUM, rank) == DT_ERR_ARG);
    NEED(CALL(reduce_scatter, DT_WORLD, a, a + 1, 2, DT_I32, DT_SUM) == DT_ERR_ARG);
    NEED(CALL(reduce_scatter, DT_WORLD, a, b, SIZE_MAX / 2, DT_I32, DT_SUM) == DT_ERR_ARG);
    NEED(CALL(reduce_scatterv, DT_WORLD, a, b, NULL, DT_I32, DT_SUM) == DT_ERR_ARG);
    NEED(CALL(reduce_scatterv, DT_WORLD, a, b, huge, DT_I8, DT_SUM) == DT_ERR_ARG);
    NEED(CALL(all_gather, DT_WORLD, a, b, 1, (dt_dtype_t)77) == DT_ERR_ARG);
    NEED(CALL(all_gather, DT_WORLD, a, NULL, 1, DT_I32) == DT_ERR_ARG);
    NEED(CALL(all_gather, DT_WORLD, b + 1 - rank, b, 1, DT_I32) == DT_ERR_ARG);
    NEED(CALL(all_gatherv, DT_WORLD, a, b, NULL, DT_I32) == DT_ERR_ARG);
    NEED(CALL(all_gatherv, DT_WORLD, a, b, huge, DT_I8) == DT_ERR_ARG);
    NEED(CALL(all_to_all, DT_WORLD, DT_IN_PLACE, NULL, 1, DT_I32) == DT_ERR_ARG);
    NEED(CALL(all_to_all, DT_WORLD, b + 1, b, 1, DT_I32) == DT_ERR_ARG);
    NEED(CALL(all_to_allv, DT_WORLD, DT_IN_PLACE, two, b, NULL, DT_I32) == DT_ERR_ARG);
    NEED(strstr(dt_last_error(), "recv_counts"));
    NEED(CALL(all_to_allv, DT_WORLD, a, two, b, NULL, DT_I32) == DT_ERR_ARG);
    NEED(strstr(dt_last_error(), "recv_counts"));
    NEED(CALL(gatherv, DT_WORLD, a, 1, b, NULL, DT_I32, rank) == DT_ERR_ARG);
    NEED(CALL(gatherv, DT_WORLD, a, 2, b, two, DT_I32, rank) == DT_ERR_ARG);
    NEED(CALL(scatterv, DT_WORLD, a, NULL, b, 1, DT_I32, rank) == DT_ERR_ARG);
    NEED(CALL(scatter, DT_WORLD, a, a + 1 - rank, 1, DT_I32, rank) == DT_ERR_ARG);
    NEED(CALL(all_gather, DT_WORLD, NULL, NULL, 0, DT_I32) == DT_OK);
    NEED(CALL(barrier, DT_WORLD) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void wrong_arguments_leave_the_job_usable(void **state)
{
    (void)state;
    testjob_must_pass("2", misuser, NULL);
    background = true;
    testjob_must_pass("2", misuser, NULL);
    background = false;
}

enum mismatch { COUNT, ROOT, KIND, COUNTS, PAIR, MISMATCHES };

static int mismatching_rank(int rank, void *arg)
{
    const size_t ones[] = { 1, 1, 1 }, odd[] = { 1, 2, 1 };
    int32_t a[8] = { 0 }, b[8] = { 0 };
    enum mismatch about = *(enum mismatch *)arg;
    bool is_odd = rank == 1;
    dt_result_t r;

    NEED(dt_init() == DT_OK);
    if (about == COUNT)
        r = CALL(all_gather, DT_WORLD, a, b, is_odd ? 2 : 1, DT_I32);
    else if (about == ROOT)
        r = CALL(reduce, DT_WORLD, a, b, 1, DT_I32, DT_SUM, is_odd);
    else if (about == KIND)
        r = is_odd ? CALL(gather, DT_WORLD, a, b, 1, DT_I32, 0)
                   : CALL(scatter, DT_WORLD, a, b, 1, DT_I32, 0);
    else if (about == COUNTS)
        r = CALL(all_gatherv, DT_WORLD, a, b, is_odd ? odd : ones, DT_I32);
    else
        r = CALL(all_to_allv, DT_WORLD, a, is_odd ? odd : ones, b, ones, DT_I32);
    NEED(r == DT_ERR_MISMATCH);
    NEED(strstr(dt_last_error(), "called"));
    NEED(about != PAIR || strstr(dt_last_error(), "rank 1 gives 2 elements to rank 1"));
    NEED(dt_finalize() == DT_ERR_MISMATCH);
    return 0;
}

static void try_mismatches(const char *hosts)
{
    for (int about = 0; about < MISMATCHES; about++) {
        enum mismatch q = (enum mismatch)about;
        struct testjob_plan plan = { .hosts = hosts, .body = mismatching_rank, .arg = &q };

        assert_int_equal(testjob_run(&plan, &result), 0);
        for (int i = 0; i < 3; i++) {
            if (result.ranks[i].status != 0)
                fail_msg("hosts %s, mismatch %d: rank %d failed", hosts, about, i);
        }
    }
}

static void calls_that_do_not_match_are_named(void **state)
{
    (void)state;
    try_mismatches("3");
    try_mismatches("1 1 1");
    try_mismatches("2 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKS("2, 7, 10, 18", every_rank_gets_its_block),
        CHECKS("1, 6, 7, 10, 11, 18", every_reduction_has_the_bytes_of_all_reduce),
        CHECKS("1, 6, 7, 10, 18", blocks_of_any_size_have_the_bytes_of_the_whole),
        CHECKS("8, 9, 18", wrong_arguments_leave_the_job_usable),
        CHECKS("27, 30, 31", calls_that_do_not_match_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
