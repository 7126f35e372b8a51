/* Public calls: gather and scatter. */
#include "runtime/api/checks.h"
#include "runtime/api/operation.h"
#include "runtime/api/view.h"
#include "runtime/comm/alltoall.h"
#include "runtime/kernels/dtype.h"

/* whole is root's buffer, which holds the blocks of all ranks. block is this rank's buffer of
 * o->count elements. Only root passes the counts of the blocks. */
static dt_result_t check_rooted(struct dt_operation *o, const void *whole, struct dt_blocks *blocks,
                                const void *block, int rank, int size)
{
    size_t bytes = o->count * dt_dtype_size(o->dtype);
    const char *name = o->kind->name;
    dt_result_t r = dt_check_buffer(name, block, o->count, o->dtype);

    if (r == DT_OK && rank != o->root) {
        blocks->counts = NULL;
        return dt_check_memory(o, o->count ? block : NULL, NULL);
    }
    if (r == DT_OK)
        r = dt_check_counts(name, o->kind->call, "counts", blocks);
    if (r == DT_OK)
        r = dt_check_blocks(name, "counts", whole, blocks, size, o->dtype);
    if (r == DT_OK)
        r = dt_check_apart(name, block, bytes, whole,
                           dt_blocks_bytes(blocks, (uint32_t)size, o->dtype),
                           dt_block_of(whole, blocks, (uint32_t)rank, o->dtype));
    if (r == DT_OK && dt_blocks_count(blocks, (uint32_t)rank) != o->count)
        r = dt_fail(DT_ERR_ARG, "%s: root's own count is %zu, but counts has %zu for it", name,
                    o->count, dt_blocks_count(blocks, (uint32_t)rank));
    if (r != DT_OK)
        return r;
    return dt_check_memory(o, o->count ? block : NULL,
                           dt_blocks_bytes(blocks, (uint32_t)size, o->dtype) ? whole : NULL);
}

/* ---- gather ---- */

static dt_result_t check_gather(struct dt_operation *o, int rank, int size)
{
    bool lacks_counts = o->kind->call == DT_CALL_GATHERV && !o->taken.counts;
    dt_result_t r = dt_check_root(o->kind->name, o->root, size);

    if (r == DT_OK && o->in == DT_IN_PLACE && rank == o->root && !lacks_counts)
        o->in = dt_block_of(o->out, &o->taken, (uint32_t)rank, o->dtype);
    return r == DT_OK ? check_rooted(o, o->out, &o->taken, o->in, rank, size) : r;
}

static dt_result_t make_gather(struct dt_comm *c, const struct dt_operation *o)
{
    const struct dt_rooted g = { .gathers = true,
                                 .root = (uint32_t)o->root,
                                 .whole = o->out,
                                 .blocks = &o->taken,
                                 .own = (void *)(uintptr_t)o->in,
                                 .count = o->count };

    return dt_comm_rooted(c, o->kind->call, &g, o->dtype);
}

static const struct dt_operation_kind gather_kind = { "dt_gather", DT_CALL_GATHER, check_gather,
                                                      make_gather };
static const struct dt_operation_kind gatherv_kind = { "dt_gatherv", DT_CALL_GATHERV, check_gather,
                                                       make_gather };

static struct dt_operation gather_operation(const struct dt_operation_kind *kind, dt_comm_t *comm,
                                            const void *in, size_t count, void *out,
                                            struct dt_blocks blocks, dt_dtype_t dtype, int root)
{
    return (struct dt_operation){ .kind = kind,
                                  .comm = comm,
                                  .in = in,
                                  .out = out,
                                  .count = count,
                                  .taken = blocks,
                                  .dtype = dtype,
                                  .root = root };
}

dt_result_t dt_gather(dt_comm_t *comm, const void *in, void *out, size_t count, dt_dtype_t dtype,
                      int root)
{
    struct dt_operation o =
        gather_operation(&gather_kind, comm, in, count, out, dt_blocks_each(count), dtype, root);

    return dt_view_make(&o);
}

dt_result_t dt_igather(dt_comm_t *comm, const void *in, void *out, size_t count, dt_dtype_t dtype,
                       int root, dt_request_t *request)
{
    struct dt_operation o =
        gather_operation(&gather_kind, comm, in, count, out, dt_blocks_each(count), dtype, root);

    return dt_view_start(&o, request);
}

dt_result_t dt_gatherv(dt_comm_t *comm, const void *in, size_t count, void *out,
                       const size_t *counts, dt_dtype_t dtype, int root)
{
    struct dt_operation o =
        gather_operation(&gatherv_kind, comm, in, count, out, dt_blocks_of(counts), dtype, root);

    return dt_view_make(&o);
}

dt_result_t dt_igatherv(dt_comm_t *comm, const void *in, size_t count, void *out,
                        const size_t *counts, dt_dtype_t dtype, int root, dt_request_t *request)
{
    struct dt_operation o =
        gather_operation(&gatherv_kind, comm, in, count, out, dt_blocks_of(counts), dtype, root);

    return dt_view_start(&o, request);
}

/* ---- scatter ---- */

static dt_result_t check_scatter(struct dt_operation *o, int rank, int size)
{
    dt_result_t r = dt_check_root(o->kind->name, o->root, size);

    return r == DT_OK ? check_rooted(o, o->in, &o->given, o->out, rank, size) : r;
}

static dt_result_t make_scatter(struct dt_comm *c, const struct dt_operation *o)
{
    const struct dt_rooted g = { .root = (uint32_t)o->root,
                                 .whole = (void *)(uintptr_t)o->in,
                                 .blocks = &o->given,
                                 .own = o->out,
                                 .count = o->count };

    return dt_comm_rooted(c, o->kind->call, &g, o->dtype);
}

static const struct dt_operation_kind scatter_kind = { "dt_scatter", DT_CALL_SCATTER, check_scatter,
                                                       make_scatter };
static const struct dt_operation_kind scatterv_kind = { "dt_scatterv", DT_CALL_SCATTERV,
                                                        check_scatter, make_scatter };

static struct dt_operation scatter_operation(const struct dt_operation_kind *kind, dt_comm_t *comm,
                                             const void *in, struct dt_blocks blocks, void *out,
                                             size_t count, dt_dtype_t dtype, int root)
{
    return (struct dt_operation){ .kind = kind,
                                  .comm = comm,
                                  .in = in,
                                  .out = out,
                                  .count = count,
                                  .given = blocks,
                                  .dtype = dtype,
                                  .root = root };
}

dt_result_t dt_scatter(dt_comm_t *comm, const void *in, void *out, size_t count, dt_dtype_t dtype,
                       int root)
{
    struct dt_operation o =
        scatter_operation(&scatter_kind, comm, in, dt_blocks_each(count), out, count, dtype, root);

    return dt_view_make(&o);
}

dt_result_t dt_iscatter(dt_comm_t *comm, const void *in, void *out, size_t count, dt_dtype_t dtype,
                        int root, dt_request_t *request)
{
    struct dt_operation o =
        scatter_operation(&scatter_kind, comm, in, dt_blocks_each(count), out, count, dtype, root);

    return dt_view_start(&o, request);
}

dt_result_t dt_scatterv(dt_comm_t *comm, const void *in, const size_t *counts, void *out,
                        size_t count, dt_dtype_t dtype, int root)
{
    struct dt_operation o =
        scatter_operation(&scatterv_kind, comm, in, dt_blocks_of(counts), out, count, dtype, root);

    return dt_view_make(&o);
}

dt_result_t dt_iscatterv(dt_comm_t *comm, const void *in, const size_t *counts, void *out,
                         size_t count, dt_dtype_t dtype, int root, dt_request_t *request)
{
    struct dt_operation o =
        scatter_operation(&scatterv_kind, comm, in, dt_blocks_of(counts), out, count, dtype, root);

    return dt_view_start(&o, request);
}
