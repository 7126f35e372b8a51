#include "cmd/perf/ops.h"

#include <ctype.h>
#include <string.h>

#include "cmd/perf/between.h"
#include "cmd/perf/memory.h"
#include "runtime/kernels/dtype.h"

/* ---- counting ---- */

static double both_ways(int n)
{
    return 2.0 * (n - 1) / n;
}

static double all_but_own(int n)
{
    return 1.0 * (n - 1) / n;
}

static double one_way(int n)
{
    (void)n;
    return 1;
}

static double none(int n)
{
    (void)n;
    return 0;
}

static double every_buffer_whole(int n)
{
    return 2.0 * n;
}

static double one_whole_and_all(int n)
{
    return n + 1.0;
}

static double once_through(int n)
{
    (void)n;
    return 2;
}

/* ---- sizes of the blocks of v forms ---- */

/* Returns the sum of the blocks before this one. Block i of n has 2 * i / (n - 1) times the count,
 * so that the average is the count. */
static size_t sum_before(int block, int n, size_t count)
{
    size_t others = (size_t)n - 1, pairs = (size_t)block * (size_t)(block - 1);

    return count / others * pairs + count % others * pairs / others;
}

static size_t uneven_count(int block, int n, size_t count)
{
    if (n == 1)
        return count;
    return sum_before(block + 1, n, count) - sum_before(block, n, count);
}

static size_t by_sender(int from, int to, int n, size_t count)
{
    (void)to;
    return uneven_count(from, n, count);
}

static size_t by_receiver(int from, int to, int n, size_t count)
{
    (void)from;
    return uneven_count(to, n, count);
}

/* Every rank sends as much as it receives in all, but two ranks do not send each other the same
 * amount. */
static size_t by_distance(int from, int to, int n, size_t count)
{
    return uneven_count((to - from + n) % n, n, count);
}

/* ---- sources of results ---- */

static struct dt_perf_source from_all(int me, int n, int root, int block)
{
    (void)me;
    (void)root;
    return (struct dt_perf_source){ n - 1, block };
}

static struct dt_perf_source from_all_for_me(int me, int n, int root, int block)
{
    (void)root;
    (void)block;
    return (struct dt_perf_source){ n - 1, me };
}

static struct dt_perf_source from_root(int me, int n, int root, int block)
{
    (void)me;
    (void)n;
    return (struct dt_perf_source){ root, block };
}

static struct dt_perf_source from_root_for_me(int me, int n, int root, int block)
{
    (void)n;
    (void)block;
    return (struct dt_perf_source){ root, me };
}

static struct dt_perf_source from_each(int me, int n, int root, int block)
{
    (void)me;
    (void)n;
    (void)root;
    return (struct dt_perf_source){ block, 0 };
}

static struct dt_perf_source from_each_for_me(int me, int n, int root, int block)
{
    (void)n;
    (void)root;
    return (struct dt_perf_source){ block, me };
}

static struct dt_perf_source from_previous_rank(int me, int n, int root, int block)
{
    (void)root;
    return (struct dt_perf_source){ (me + n - 1) % n, block };
}

/* ---- calls ---- */

static dt_result_t all_reduce(const struct dt_perf_case *c, const void *in, void *out, size_t count)
{
    return dt_all_reduce(c->comm, in, out, count, c->dtype, c->op);
}

static dt_result_t reduce(const struct dt_perf_case *c, const void *in, void *out, size_t count)
{
    return dt_reduce(c->comm, in, out, count, c->dtype, c->op, c->root);
}

static dt_result_t reduce_scatter(const struct dt_perf_case *c, const void *in, void *out,
                                  size_t count)
{
    return dt_reduce_scatter(c->comm, in, out, count, c->dtype, c->op);
}

static dt_result_t reduce_scatterv(const struct dt_perf_case *c, const void *in, void *out,
                                   size_t count)
{
    (void)count;
    return dt_reduce_scatterv(c->comm, in, out, c->gives, c->dtype, c->op);
}

/* Out of place, the root first copies its input to where all others have their output. */
static dt_result_t broadcast(const struct dt_perf_case *c, const void *in, void *out, size_t count)
{
    if (in != out && dt_comm_rank(c->comm) == c->root)
        dt_perf_memory_copy(out, in, count * dt_dtype_size(c->dtype));
    return dt_broadcast(c->comm, out, count, c->dtype, c->root);
}

static dt_result_t all_gather(const struct dt_perf_case *c, const void *in, void *out, size_t count)
{
    return dt_all_gather(c->comm, in, out, count, c->dtype);
}

static dt_result_t all_gatherv(const struct dt_perf_case *c, const void *in, void *out,
                               size_t count)
{
    (void)count;
    return dt_all_gatherv(c->comm, in, out, c->takes, c->dtype);
}

static dt_result_t all_to_all(const struct dt_perf_case *c, const void *in, void *out, size_t count)
{
    return dt_all_to_all(c->comm, in, out, count, c->dtype);
}

static dt_result_t all_to_allv(const struct dt_perf_case *c, const void *in, void *out,
                               size_t count)
{
    (void)count;
    return dt_all_to_allv(c->comm, in, c->gives, out, c->takes, c->dtype);
}

static dt_result_t gather(const struct dt_perf_case *c, const void *in, void *out, size_t count)
{
    return dt_gather(c->comm, in, out, count, c->dtype, c->root);
}

static dt_result_t gatherv(const struct dt_perf_case *c, const void *in, void *out, size_t count)
{
    (void)count;
    return dt_gatherv(c->comm, in, c->gives[c->root], out, c->takes, c->dtype, c->root);
}

static dt_result_t scatter(const struct dt_perf_case *c, const void *in, void *out, size_t count)
{
    return dt_scatter(c->comm, in, out, count, c->dtype, c->root);
}

static dt_result_t scatterv(const struct dt_perf_case *c, const void *in, void *out, size_t count)
{
    (void)count;
    return dt_scatterv(c->comm, in, c->gives, out, c->takes[c->root], c->dtype, c->root);
}

/* Sends to the next rank and receives from the previous one. Each call waits for its peer, so if
 * all ranks sent first, they would wait for ever. Every second rank receives first. */
static dt_result_t sendrecv(const struct dt_perf_case *c, const void *in, void *out, size_t count)
{
    int me = dt_comm_rank(c->comm), n = dt_comm_size(c->comm), next = (me + 1) % n,
        last = (me + n - 1) % n;
    dt_result_t r;

    if (n == 1) {
        memmove(out, in, count * dt_dtype_size(c->dtype));
        return DT_OK;
    }
    if (me % 2) {
        r = dt_recv(c->comm, out, count, c->dtype, last);
        return r == DT_OK ? dt_send(c->comm, in, count, c->dtype, next) : r;
    }
    r = dt_send(c->comm, in, count, c->dtype, next);
    return r == DT_OK ? dt_recv(c->comm, out, count, c->dtype, last) : r;
}

static dt_result_t barrier(const struct dt_perf_case *c, const void *in, void *out, size_t count)
{
    (void)in;
    (void)out;
    (void)count;
    return dt_barrier(c->comm);
}

static const struct dt_perf_op ops[] = {
    { .name = "all_reduce",
      .reduces = true,
      .weighs = true,
      .source = from_all,
      .bus_factor = both_ways,
      .moved = every_buffer_whole,
      .leaves = dt_perf_both_ways,
      .run = all_reduce },
    { .name = "reduce",
      .reduces = true,
      .has_root = true,
      .root_alone = true,
      .source = from_all,
      .bus_factor = one_way,
      .moved = one_whole_and_all,
      .leaves = dt_perf_whole,
      .run = reduce },
    { .name = "broadcast",
      .has_root = true,
      .source = from_root,
      .bus_factor = one_way,
      .moved = one_whole_and_all,
      .leaves = dt_perf_whole,
      .run = broadcast },
    { .name = "all_gather",
      .many_out = true,
      .place = DT_PERF_OWN_IN,
      .source = from_each,
      .bus_factor = all_but_own,
      .moved = one_whole_and_all,
      .leaves = dt_perf_blocks_of_either,
      .run = all_gather },
    { .name = "all_gatherv",
      .many_out = true,
      .place = DT_PERF_OWN_IN,
      .block_count = by_sender,
      .source = from_each,
      .bus_factor = all_but_own,
      .moved = one_whole_and_all,
      .leaves = dt_perf_blocks_of_either,
      .run = all_gatherv },
    { .name = "reduce_scatter",
      .reduces = true,
      .many_in = true,
      .source = from_all_for_me,
      .bus_factor = all_but_own,
      .moved = one_whole_and_all,
      .leaves = dt_perf_blocks_of_either,
      .run = reduce_scatter },
    { .name = "reduce_scatterv",
      .reduces = true,
      .many_in = true,
      .block_count = by_receiver,
      .source = from_all_for_me,
      .bus_factor = all_but_own,
      .moved = one_whole_and_all,
      .leaves = dt_perf_blocks_of_either,
      .run = reduce_scatterv },
    { .name = "all_to_all",
      .many_in = true,
      .many_out = true,
      .source = from_each_for_me,
      .bus_factor = all_but_own,
      .moved = every_buffer_whole,
      .leaves = dt_perf_blocks_of_pairs,
      .run = all_to_all },
    { .name = "all_to_allv",
      .many_in = true,
      .many_out = true,
      .place = DT_PERF_NO_PLACE,
      .block_count = by_distance,
      .source = from_each_for_me,
      .bus_factor = all_but_own,
      .moved = every_buffer_whole,
      .leaves = dt_perf_blocks_of_pairs,
      .run = all_to_allv },
    { .name = "gather",
      .has_root = true,
      .root_alone = true,
      .many_out = true,
      .place = DT_PERF_OWN_IN,
      .source = from_each,
      .bus_factor = all_but_own,
      .moved = once_through,
      .leaves = dt_perf_blocks_of_others,
      .run = gather },
    { .name = "gatherv",
      .has_root = true,
      .root_alone = true,
      .many_out = true,
      .place = DT_PERF_OWN_IN,
      .block_count = by_sender,
      .source = from_each,
      .bus_factor = all_but_own,
      .moved = once_through,
      .leaves = dt_perf_blocks_of_others,
      .run = gatherv },
    { .name = "scatter",
      .has_root = true,
      .many_in = true,
      .place = DT_PERF_OWN_OUT,
      .source = from_root_for_me,
      .bus_factor = all_but_own,
      .moved = once_through,
      .leaves = dt_perf_blocks_of_others,
      .run = scatter },
    { .name = "scatterv",
      .has_root = true,
      .many_in = true,
      .place = DT_PERF_OWN_OUT,
      .block_count = by_receiver,
      .source = from_root_for_me,
      .bus_factor = all_but_own,
      .moved = once_through,
      .leaves = dt_perf_blocks_of_others,
      .run = scatterv },
    { .name = "sendrecv",
      .place = DT_PERF_UNCHECKED,
      .source = from_previous_rank,
      .bus_factor = one_way,
      .moved = every_buffer_whole,
      .leaves = dt_perf_to_the_next,
      .run = sendrecv },
    { .name = "barrier",
      .empty = true,
      .place = DT_PERF_NO_PLACE,
      .source = from_root,
      .bus_factor = none,
      .moved = none,
      .leaves = dt_perf_whole,
      .run = barrier },
};

bool dt_perf_combines(dt_op_t op, dt_dtype_t dtype)
{
    return op == DT_ADASUM ? dt_dtype_is_float(dtype) : dt_op_applies(op, dtype);
}

/* ---- finding ---- */

/* Returns the next significant letter, in lower case; skips "_" and "-". */
static char next(const char **text)
{
    while (**text == '_' || **text == '-')
        ++*text;
    return **text ? (char)tolower((unsigned char)*(*text)++) : '\0';
}

static bool is_called(const char *name, const char *text)
{
    char c;

    while ((c = next(&name)) != '\0') {
        if (c != next(&text))
            return false;
    }
    return *text == '\0' || strcmp(text, "_perf") == 0 || strcmp(text, "-perf") == 0;
}

const struct dt_perf_op *dt_perf_op_at(size_t i)
{
    return i < sizeof ops / sizeof *ops ? &ops[i] : NULL;
}

const struct dt_perf_op *dt_perf_op_find(const char *name)
{
    for (size_t i = 0; dt_perf_op_at(i); i++) {
        if (is_called(ops[i].name, name))
            return &ops[i];
    }
    return NULL;
}
