#include "runtime/comm/adasum_reduce.h"

#include <stdlib.h>

#include "runtime/base/blocks.h"
#include "runtime/coll/adasum.h"
#include "runtime/comm/algorithm.h"
#include "runtime/comm/alltoall.h"
#include "runtime/kernels/dtype.h"

enum { WEIGHED_FEW = 8 * 1024 }; /* bytes of all vectors; up to here each rank weighs all of them */

/* What a rank works on: a chunk of every vector, or all vectors. */
struct adasum_work {
    bool all;
    size_t *counts; /* of each rank's chunk or vector */
    uint8_t *vectors;
    double *weights;
    struct dt_adasum_products *products;
};

static bool adasum_work_make(struct adasum_work *w, const struct dt_comm *c,
                             const struct dt_call *call)
{
    size_t n = (size_t)c->size, size = dt_dtype_size((dt_dtype_t)call->dtype);

    w->all = call->count * size <= WEIGHED_FEW / n;
    w->counts = calloc(n, sizeof *w->counts);
    w->weights = calloc(n, sizeof *w->weights);
    w->products = calloc(n / 2, sizeof *w->products);
    if (!w->counts || !w->weights || !w->products)
        return false;
    for (size_t i = 0; i < n; i++) {
        w->counts[i] = w->all ? call->count : call->count / n + (i < call->count % n);
        w->weights[i] = 1;
    }
    w->vectors = malloc(n * w->counts[c->rank] * size + 1);
    return w->vectors != NULL;
}

static void adasum_work_free(struct adasum_work *w)
{
    free(w->counts);
    free(w->vectors);
    free(w->weights);
    free(w->products);
}

/* All ranks get the same products and so the same weights. The sum has a call number of its own:
 * ranks that still move vectors take it for a later call, not for a mismatch. */
static dt_result_t weigh_vectors(struct dt_comm *c, const struct dt_call *call,
                                 const struct dt_adasum *a, const struct adasum_work *w)
{
    struct dt_call sum = *call;
    dt_result_t r = DT_OK;

    sum.dtype = DT_F64;
    sum.op = DT_SUM;
    for (size_t width = 1; width < a->n && r == DT_OK; width *= 2) {
        sum.count = a->n / 2 / width * (sizeof *w->products / sizeof(double));
        dt_adasum_multiply(a, w->weights, width, w->products);
        if (!w->all) {
            dt_comm_count(c, &sum);
            r = dt_algorithm_all_reduce(c, &sum, NULL, w->products, w->products);
        }
        dt_adasum_weigh(w->products, a->n, width, w->weights);
    }
    return r;
}

/* "in" has reached all ranks before it may be overwritten. */
static dt_result_t combine_vectors(struct dt_comm *c, const struct dt_call *call, const void *in,
                                   void *out, const struct adasum_work *w)
{
    const struct dt_blocks blocks = dt_blocks_of(w->counts);
    const struct dt_blocks mine = dt_blocks_each(w->counts[c->rank]);
    const struct dt_adasum a = { .vectors = w->vectors,
                                 .n = (size_t)c->size,
                                 .count = mine.each,
                                 .dtype = (dt_dtype_t)call->dtype };
    struct dt_call last = *call;
    uint8_t *place =
        (uint8_t *)out + (w->all ? 0 : dt_blocks_bytes(&blocks, (uint32_t)c->rank, a.dtype));
    dt_result_t r = w->all ? dt_algorithm_all_gather(c, call, in, w->vectors, &blocks)
                           : dt_comm_all_to_all_within(c, call, in, &blocks, w->vectors, &mine);

    if (r == DT_OK)
        r = weigh_vectors(c, call, &a, w);
    if (r != DT_OK)
        return r;
    dt_adasum_combine(&a, w->weights, place);
    if (w->all)
        return DT_OK;
    dt_comm_count(c, &last);
    return dt_algorithm_all_gather(c, &last, place, out, &blocks);
}

dt_result_t dt_adasum_reduce(struct dt_comm *c, const struct dt_call *call, const void *in,
                             void *out)
{
    struct adasum_work w = { 0 };
    dt_result_t r = adasum_work_make(&w, c, call) ? combine_vectors(c, call, in, out, &w)
                                                  : dt_comm_no_memory(c);

    adasum_work_free(&w);
    return r;
}
