/* The kernels of examples/charlm.cu in C. A test preloads them into charlm for the stand-in of the
 * driver. Each checks that its threads touch only one allocation. */
#include <stdio.h>
#include <stdlib.h>

#include "examples/charlm_kernels.h"
#include "tests/standin/standin.h"

/* Where the host can touch n elements at *pointer. */
#define VIEW(pointer, n) view((void *)&(pointer), (n) * sizeof *(pointer))

static void view(void *pointer, uint64_t bytes)
{
    void **at = pointer, *there = standin_view((CUdeviceptr)(uintptr_t)*at, bytes);

    if (*at && bytes && !there) {
        fprintf(stderr, "stand-in: a kernel of charlm touches memory that is not the device's\n");
        abort();
    }
    *at = there;
}

static void view_embed(struct charlm_embed *k, uint64_t n)
{
    uint64_t rows = n / EMBED / k->context;

    VIEW(k->out, n);
    VIEW(k->vectors, (uint64_t)BYTES * EMBED);
    VIEW(k->text, 1);
    VIEW(k->next, rows);
}

static void view_matmul(struct charlm_matmul *k, uint64_t n)
{
    uint64_t m = n / k->n;

    VIEW(k->c, n);
    VIEW(k->a, (m - 1) * k->a_row + (k->depth - 1) * k->a_col + 1);
    VIEW(k->b, (k->depth - 1) * k->b_row + (k->n - 1) * k->b_col + 1);
    if (k->bias)
        VIEW(k->bias, k->n);
    if (k->mask)
        VIEW(k->mask, n);
}

static void view_softmax(struct charlm_softmax *k, uint64_t n)
{
    VIEW(k->rows, n * BYTES);
}

static void view_slope(struct charlm_slope *k, uint64_t n)
{
    VIEW(k->out, n);
    VIEW(k->p, n);
    VIEW(k->text, 1);
    VIEW(k->next, n / BYTES);
}

static void view_loss(struct charlm_loss *k, uint64_t n)
{
    VIEW(k->out, n);
    VIEW(k->p, k->rows * BYTES);
    VIEW(k->text, 1);
    VIEW(k->next, k->rows);
}

static void view_bias(struct charlm_bias *k, uint64_t n)
{
    VIEW(k->out, n);
    VIEW(k->slope, k->rows * n);
}

static void view_vectors(struct charlm_vectors *k, uint64_t n)
{
    VIEW(k->out, n);
    VIEW(k->slope, k->rows * k->context * EMBED);
    VIEW(k->text, 1);
    VIEW(k->next, k->rows);
}

static void view_adam(struct charlm_adam *k, uint64_t n)
{
    VIEW(k->w, n);
    VIEW(k->m, n);
    VIEW(k->v, n);
    VIEW(k->gradient, n);
}

#define TWIN(name)                                                                                 \
    static void run_##name(void *const *parameters, size_t threads)                                \
    {                                                                                              \
        struct charlm_##name k = *(const struct charlm_##name *)parameters[0];                     \
        uint64_t n = *(const uint64_t *)parameters[1];                                             \
                                                                                                   \
        (void)threads;                                                                             \
        view_##name(&k, n);                                                                        \
        for (uint64_t i = 0; i < n; i++)                                                           \
            charlm_##name##_at(&k, i);                                                             \
    }                                                                                              \
    static const size_t sizes_##name[] = { sizeof(struct charlm_##name), sizeof(uint64_t) };       \
    STANDIN_API extern const struct standin_kernel standin_kernel_charlm_##name;                   \
    const struct standin_kernel standin_kernel_charlm_##name = { 2, sizes_##name, run_##name };

CHARLM_KERNELS(TWIN)
