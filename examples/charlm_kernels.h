/* What charlm computes on a GPU: the parameters of each kernel, and what one thread does for
 * element i of the result. nvcc compiles this to kernels (charlm.cu). A C compiler compiles it to
 * functions that a test compares with charlm's own, on machines without a GPU.
 *
 * One thread computes each element, and each sum has a fixed order. So a run that resumes from a
 * checkpoint ends with the same bytes as an undisturbed one. */
#ifndef CHARLM_KERNELS_H
#define CHARLM_KERNELS_H

#include <math.h>

#include "charlm.h"

#ifdef __CUDACC__
#define ELEMENT static __device__ __forceinline__
#else
#define ELEMENT static inline
#endif

#define CHARLM_KERNELS(X)                                                                          \
    X(embed)                                                                                       \
    X(matmul)                                                                                      \
    X(softmax)                                                                                     \
    X(slope)                                                                                       \
    X(loss)                                                                                        \
    X(bias)                                                                                        \
    X(vectors)                                                                                     \
    X(adam)

/* For each row, the vectors of the bytes before text[next[row]]: context * EMBED elements. */
struct charlm_embed {
    float *out;
    const float *vectors;
    const uint8_t *text;
    const int64_t *next;
    uint64_t context;
};

ELEMENT void charlm_embed_at(const struct charlm_embed *k, uint64_t i)
{
    uint64_t e = i % EMBED, c = i / EMBED % k->context, row = i / EMBED / k->context;

    k->out[i] = k->vectors[k->text[k->next[row] - 1 - (int64_t)c] * EMBED + e];
}

/* c[m][n] = a[m][depth] b[depth][n], where element (i, p) of a is at a[i * a_row + p * a_col], and
 * likewise for b, so transposing costs nothing. If bias is not NULL, bias[n] is added. If mask is
 * not NULL, elements are 0 unless mask[m][n] is above 0. With rectify, negative elements become 0.
 */
struct charlm_matmul {
    float *c;
    const float *a, *b, *bias, *mask;
    uint64_t a_row, a_col, b_row, b_col, depth, n;
    uint64_t rectify;
};

ELEMENT void charlm_matmul_at(const struct charlm_matmul *k, uint64_t i)
{
    const float *a = k->a + i / k->n * k->a_row, *b = k->b + i % k->n * k->b_col;
    float sum = 0;

    for (uint64_t p = 0; p < k->depth; p++)
        sum += a[p * k->a_col] * b[p * k->b_row];
    if (k->bias)
        sum += k->bias[i % k->n];
    if ((k->rectify && sum < 0) || (k->mask && !(k->mask[i] > 0)))
        sum = 0;
    k->c[i] = sum;
}

/* Turns each row of BYTES elements into probabilities. */
struct charlm_softmax {
    float *rows;
};

ELEMENT void charlm_softmax_at(const struct charlm_softmax *k, uint64_t i)
{
    float *p = k->rows + i * BYTES, max = p[0], sum = 0;

    for (int j = 1; j < BYTES; j++)
        max = p[j] > max ? p[j] : max;
    for (int j = 0; j < BYTES; j++)
        sum += p[j] = expf(p[j] - max);
    for (int j = 0; j < BYTES; j++)
        p[j] /= sum;
}

/* The derivatives of weight * loss with respect to the softmax's input. */
struct charlm_slope {
    float *out;
    const float *p;
    const uint8_t *text;
    const int64_t *next;
    float weight;
};

ELEMENT void charlm_slope_at(const struct charlm_slope *k, uint64_t i)
{
    int is_next = k->text[k->next[i / BYTES]] == i % BYTES;

    k->out[i] = (k->p[i] - (float)is_next) * k->weight;
}

/* weight * loss in bits, summed over all rows: one element. */
struct charlm_loss {
    float *out;
    const float *p;
    const uint8_t *text;
    const int64_t *next;
    uint64_t rows;
    float weight;
};

ELEMENT void charlm_loss_at(const struct charlm_loss *k, uint64_t i)
{
    float sum = 0;

    for (uint64_t row = 0; row < k->rows; row++)
        sum -= k->weight * log2f(k->p[row * BYTES + k->text[k->next[row]]] + 1e-30f);
    k->out[i] = sum;
}

/* The sums of the columns of slope[rows][n], which are the gradient of a layer's b. */
struct charlm_bias {
    float *out;
    const float *slope;
    uint64_t rows, n;
};

ELEMENT void charlm_bias_at(const struct charlm_bias *k, uint64_t i)
{
    float sum = 0;

    for (uint64_t row = 0; row < k->rows; row++)
        sum += k->slope[row * k->n + i];
    k->out[i] = sum;
}

/* The gradient of the bytes' vectors: sums the slopes from every place where the byte occurs. */
struct charlm_vectors {
    float *out;
    const float *slope;
    const uint8_t *text;
    const int64_t *next;
    uint64_t rows, context;
};

ELEMENT void charlm_vectors_at(const struct charlm_vectors *k, uint64_t i)
{
    float sum = 0;

    for (uint64_t row = 0; row < k->rows; row++)
        for (uint64_t c = 0; c < k->context; c++)
            if (k->text[k->next[row] - 1 - (int64_t)c] == i / EMBED)
                sum += k->slope[(row * k->context + c) * EMBED + i % EMBED];
    k->out[i] = sum;
}

/* A step of AdamW. scale and keep contain the learning rate. */
struct charlm_adam {
    float *w, *m, *v;
    const float *gradient;
    float scale, keep;
};

ELEMENT void charlm_adam_at(const struct charlm_adam *k, uint64_t i)
{
    float g = k->gradient[i];

    k->m[i] += 0.1f * (g - k->m[i]);
    k->v[i] += 0.01f * (g * g - k->v[i]);
    k->w[i] = k->keep * k->w[i] - k->scale * k->m[i] / (sqrtf(k->v[i]) + 1e-8f);
}

#endif
