/* The public collectives that give ranks parts of their own. */
#include "runtime/checks.h"
#include "runtime/collective.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/dtype.h"

/* in and out: where there is anything to look at; else NULL. */
static dt_result_t check_memory(const char *name, const void *in, const void *out)
{
    if ((in && dt_device_memory(in, in) == DT_MEMORY_DEVICE) ||
        (out && dt_device_memory(out, out) == DT_MEMORY_DEVICE))
        return dt_fail(DT_ERR_UNSUPPORTED,
                       "%s: device memory is for dt_all_reduce and dt_broadcast", name);
    return DT_OK;
}

/* "in" is a block of out, this rank's, or lies apart from all of out. */
static dt_result_t check_apart(const char *name, const void *in, size_t in_bytes, const void *out,
                               size_t out_bytes, const void *place)
{
    if (in == place || !dt_buffers_overlap(in, in_bytes, out, out_bytes))
        return DT_OK;
    return dt_fail(DT_ERR_ARG, "%s: in and out overlap in part", name);
}

static const void *block_of(const struct dt_comm *c, const void *buf,
                            const struct dt_blocks *blocks, dt_dtype_t dtype)
{
    return buf ? (const uint8_t *)buf + dt_blocks_at(blocks, c->rank, dtype) : NULL;
}

static size_t own_count(const struct dt_comm *c, const struct dt_blocks *blocks)
{
    return blocks->counts ? blocks->counts[c->rank] : blocks->each;
}

static size_t bytes_of(const struct dt_comm *c, const struct dt_blocks *blocks, dt_dtype_t dtype)
{
    return dt_blocks_total(blocks, c->size) * dt_dtype_size(dtype);
}

static dt_result_t no_counts(const char *name, const char *what)
{
    return dt_fail(DT_ERR_ARG, "%s: no %s were given", name, what);
}

/* ---- folding ---- */

static dt_result_t check_reduce(const struct dt_comm *c, const void *in, const void *out,
                                size_t count, dt_dtype_t dtype, dt_op_t op, int root)
{
    static const char name[] = "dt_reduce";
    size_t bytes = count * dt_dtype_size(dtype);
    dt_result_t r = dt_check_root(name, root, c->size);

    if (r == DT_OK)
        r = dt_check_buffer(name, in, count, dtype);
    if (r == DT_OK)
        r = dt_check_op(name, dtype, op);
    if (r == DT_OK && c->rank == root)
        r = dt_check_buffer(name, out, count, dtype);
    if (r == DT_OK && c->rank == root)
        r = check_apart(name, in, bytes, out, bytes, out);
    return r == DT_OK ? check_memory(name, count ? in : NULL, count ? out : NULL) : r;
}

dt_result_t dt_reduce(dt_comm_t *comm, const void *in, void *out, size_t count, dt_dtype_t dtype,
                      dt_op_t op, int root)
{
    struct dt_comm *c;
    dt_result_t r = dt_context_enter("dt_reduce", comm, &c);

    if (r != DT_OK)
        return r;
    if (in == DT_IN_PLACE && c->rank == root)
        in = out;
    r = check_reduce(c, in, out, count, dtype, op, root);
    if (r == DT_OK)
        r = dt_comm_reduce(c, in, out, count, dtype, op, root);
    dt_context_leave(c);
    return r;
}

static dt_result_t check_reduce_scatter(const struct dt_comm *c, const void *in, const void *out,
                                        size_t count, dt_dtype_t dtype, dt_op_t op)
{
    static const char name[] = "dt_reduce_scatter";
    const struct dt_blocks blocks = { .each = count };
    dt_result_t r = dt_check_blocks(name, "count", in, &blocks, c->size, dtype);

    if (r == DT_OK)
        r = dt_check_buffer(name, out, count, dtype);
    if (r == DT_OK)
        r = dt_check_op(name, dtype, op);
    if (r == DT_OK && out != block_of(c, in, &blocks, dtype))
        r = check_apart(name, in, bytes_of(c, &blocks, dtype), out, count * dt_dtype_size(dtype),
                        out);
    return r == DT_OK ? check_memory(name, count ? in : NULL, count ? out : NULL) : r;
}

dt_result_t dt_reduce_scatter(dt_comm_t *comm, const void *in, void *out, size_t count,
                              dt_dtype_t dtype, dt_op_t op)
{
    struct dt_comm *c;
    dt_result_t r = dt_context_enter("dt_reduce_scatter", comm, &c);

    if (r != DT_OK)
        return r;
    if (in == DT_IN_PLACE)
        in = out;
    r = check_reduce_scatter(c, in, out, count, dtype, op);
    if (r == DT_OK)
        r = dt_comm_reduce_scatter(c, in, out, count, dtype, op);
    dt_context_leave(c);
    return r;
}

/* ---- everybody to everybody ---- */

static dt_result_t all_gather(const char *name, dt_comm_t *comm, enum dt_call_kind kind,
                              const void *in, void *out, const struct dt_blocks *blocks,
                              dt_dtype_t dtype)
{
    struct dt_comm *c;
    dt_result_t r = dt_context_enter(name, comm, &c);
    const void *place;
    size_t total, mine;

    if (r != DT_OK)
        return r;
    r = dt_check_blocks(name, "counts", out, blocks, c->size, dtype);
    if (r == DT_OK) {
        place = block_of(c, out, blocks, dtype);
        total = bytes_of(c, blocks, dtype);
        mine = own_count(c, blocks);
        in = in == DT_IN_PLACE ? place : in;
        r = dt_check_buffer(name, in, mine, dtype);
        if (r == DT_OK)
            r = check_apart(name, in, mine * dt_dtype_size(dtype), out, total, place);
        if (r == DT_OK)
            r = check_memory(name, mine ? in : NULL, total ? out : NULL);
    }
    if (r == DT_OK)
        r = dt_comm_all_gather(c, kind, in, out, blocks, dtype);
    dt_context_leave(c);
    return r;
}

dt_result_t dt_all_gather(dt_comm_t *comm, const void *in, void *out, size_t count,
                          dt_dtype_t dtype)
{
    const struct dt_blocks blocks = { .each = count };

    return all_gather("dt_all_gather", comm, DT_CALL_ALL_GATHER, in, out, &blocks, dtype);
}

dt_result_t dt_all_gatherv(dt_comm_t *comm, const void *in, void *out, const size_t *counts,
                           dt_dtype_t dtype)
{
    const struct dt_blocks blocks = { .counts = counts };

    if (!counts)
        return no_counts("dt_all_gatherv", "counts");
    return all_gather("dt_all_gatherv", comm, DT_CALL_ALL_GATHERV, in, out, &blocks, dtype);
}

static dt_result_t all_to_all(const char *name, dt_comm_t *comm, enum dt_call_kind kind,
                              const void *in, const struct dt_blocks *given, void *out,
                              const struct dt_blocks *taken, dt_dtype_t dtype)
{
    struct dt_comm *c;
    dt_result_t r = dt_context_enter(name, comm, &c);

    if (r != DT_OK)
        return r;
    r = dt_check_blocks(name, "send counts", in, given, c->size, dtype);
    if (r == DT_OK)
        r = dt_check_blocks(name, "receive counts", out, taken, c->size, dtype);
    if (r == DT_OK) {
        size_t gives = bytes_of(c, given, dtype), takes = bytes_of(c, taken, dtype);

        r = check_apart(name, in, gives, out, takes, NULL);
        if (r == DT_OK)
            r = check_memory(name, gives ? in : NULL, takes ? out : NULL);
    }
    if (r == DT_OK)
        r = dt_comm_all_to_all(c, kind, in, given, out, taken, dtype);
    dt_context_leave(c);
    return r;
}

dt_result_t dt_all_to_all(dt_comm_t *comm, const void *in, void *out, size_t count,
                          dt_dtype_t dtype)
{
    const struct dt_blocks blocks = { .each = count };

    return all_to_all("dt_all_to_all", comm, DT_CALL_ALL_TO_ALL, in, &blocks, out, &blocks, dtype);
}

dt_result_t dt_all_to_allv(dt_comm_t *comm, const void *in, const size_t *send_counts, void *out,
                           const size_t *recv_counts, dt_dtype_t dtype)
{
    const struct dt_blocks given = { .counts = send_counts }, taken = { .counts = recv_counts };

    if (!send_counts || !recv_counts)
        return no_counts("dt_all_to_allv", send_counts ? "recv_counts" : "send_counts");
    return all_to_all("dt_all_to_allv", comm, DT_CALL_ALL_TO_ALLV, in, &given, out, &taken, dtype);
}

/* ---- root and everybody ---- */

/* whole: root's buffer of blocks; part: this rank's of count elements. */
static dt_result_t check_rooted(const char *name, const struct dt_comm *c, const void *whole,
                                const struct dt_blocks *blocks, const void *part, size_t count,
                                dt_dtype_t dtype, int root)
{
    dt_result_t r = dt_check_buffer(name, part, count, dtype);

    if (r == DT_OK && c->rank == root)
        r = dt_check_blocks(name, "counts", whole, blocks, c->size, dtype);
    if (r == DT_OK && c->rank == root)
        r = check_apart(name, part, count * dt_dtype_size(dtype), whole, bytes_of(c, blocks, dtype),
                        block_of(c, whole, blocks, dtype));
    if (r == DT_OK && c->rank == root && own_count(c, blocks) != count)
        r = dt_fail(DT_ERR_ARG, "%s: root's own count is %zu, and %zu in counts", name, count,
                    own_count(c, blocks));
    return r == DT_OK ? check_memory(name, count ? part : NULL, c->rank == root ? whole : NULL) : r;
}

static dt_result_t gather(const char *name, dt_comm_t *comm, enum dt_call_kind kind, const void *in,
                          size_t count, void *out, const struct dt_blocks *blocks, dt_dtype_t dtype,
                          int root)
{
    struct dt_comm *c;
    dt_result_t r = dt_context_enter(name, comm, &c);

    if (r != DT_OK)
        return r;
    r = dt_check_root(name, root, c->size);
    if (r == DT_OK && c->rank == root && kind == DT_CALL_GATHERV && !blocks->counts)
        r = no_counts(name, "counts");
    if (r == DT_OK && in == DT_IN_PLACE && c->rank == root)
        in = block_of(c, out, blocks, dtype);
    if (r == DT_OK)
        r = check_rooted(name, c, out, blocks, in, count, dtype, root);
    if (r == DT_OK)
        r = dt_comm_gather(c, kind, in, count, out, blocks, dtype, root);
    dt_context_leave(c);
    return r;
}

dt_result_t dt_gather(dt_comm_t *comm, const void *in, void *out, size_t count, dt_dtype_t dtype,
                      int root)
{
    const struct dt_blocks blocks = { .each = count };

    return gather("dt_gather", comm, DT_CALL_GATHER, in, count, out, &blocks, dtype, root);
}

dt_result_t dt_gatherv(dt_comm_t *comm, const void *in, size_t count, void *out,
                       const size_t *counts, dt_dtype_t dtype, int root)
{
    const struct dt_blocks blocks = { .counts = counts };

    return gather("dt_gatherv", comm, DT_CALL_GATHERV, in, count, out, &blocks, dtype, root);
}

static dt_result_t scatter(const char *name, dt_comm_t *comm, enum dt_call_kind kind,
                           const void *in, const struct dt_blocks *blocks, void *out, size_t count,
                           dt_dtype_t dtype, int root)
{
    struct dt_comm *c;
    dt_result_t r = dt_context_enter(name, comm, &c);

    if (r != DT_OK)
        return r;
    r = dt_check_root(name, root, c->size);
    if (r == DT_OK && c->rank == root && kind == DT_CALL_SCATTERV && !blocks->counts)
        r = no_counts(name, "counts");
    if (r == DT_OK)
        r = check_rooted(name, c, in, blocks, out, count, dtype, root);
    if (r == DT_OK)
        r = dt_comm_scatter(c, kind, in, blocks, out, count, dtype, root);
    dt_context_leave(c);
    return r;
}

dt_result_t dt_scatter(dt_comm_t *comm, const void *in, void *out, size_t count, dt_dtype_t dtype,
                       int root)
{
    const struct dt_blocks blocks = { .each = count };

    return scatter("dt_scatter", comm, DT_CALL_SCATTER, in, &blocks, out, count, dtype, root);
}

dt_result_t dt_scatterv(dt_comm_t *comm, const void *in, const size_t *counts, void *out,
                        size_t count, dt_dtype_t dtype, int root)
{
    const struct dt_blocks blocks = { .counts = counts };

    return scatter("dt_scatterv", comm, DT_CALL_SCATTERV, in, &blocks, out, count, dtype, root);
}
