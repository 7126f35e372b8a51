#include "tests/rank/gpuplain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PERIOD = 4093 }; /* elements; a prime, so that blocks and chunks begin at different values */

uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

size_t below(uint64_t *dice, size_t n)
{
    *dice = mix(*dice);
    return (size_t)(*dice >> 16) % n;
}

bool once_in(uint64_t *dice, size_t n)
{
    return below(dice, n) == 0;
}

/* ---- elements ---- */

bool dtype_is_float(dt_dtype_t dtype)
{
    return dtype >= DT_F16;
}

static float float_of(uint32_t bits)
{
    float v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

static uint32_t bits_of(float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* Rounds to f16. */
static uint16_t half_of(float v)
{
    uint32_t bits = bits_of(v), rounded = bits + 0xfff + (bits >> 13 & 1);

    if (fabsf(v) < 0x1p-14F)
        return (uint16_t)((v < 0 ? 0x8000 : 0) | (uint16_t)lrintf(fabsf(v) * 0x1p24F));
    return (uint16_t)((bits >> 16 & 0x8000) | (((rounded >> 13) - (112 << 10)) & 0x7fff));
}

static double double_of_half(uint16_t half)
{
    int exponent = half >> 10 & 31, significand = half & 0x3ff;
    double v = exponent ? ldexp(significand | 0x400, exponent - 25) : ldexp(significand, -24);

    return half & 0x8000 ? -v : v;
}

double get_float(const uint8_t *at, size_t i, dt_dtype_t dtype)
{
    uint16_t half;

    if (dtype == DT_F64)
        return ((const double *)(const void *)at)[i];
    if (dtype == DT_F32)
        return (double)((const float *)(const void *)at)[i];
    half = ((const uint16_t *)(const void *)at)[i];
    return dtype == DT_BF16 ? (double)float_of((uint32_t)half << 16) : double_of_half(half);
}

static void put_float(uint8_t *at, size_t i, dt_dtype_t dtype, double v)
{
    uint32_t bits = bits_of((float)v);

    if (dtype == DT_F64)
        ((double *)(void *)at)[i] = v;
    else if (dtype == DT_F32)
        ((float *)(void *)at)[i] = (float)v;
    else
        ((uint16_t *)(void *)at)[i] = dtype == DT_F16
                                          ? half_of((float)v)
                                          : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static int64_t get_whole(const uint8_t *at, size_t i, dt_dtype_t dtype)
{
    size_t size = dt_dtype_size(dtype), unused = 64 - 8 * size;
    bool has_sign = dtype % 2 == 0;
    uint64_t v = 0;

    memcpy(&v, at + i * size, size);
    return has_sign ? (int64_t)(v << unused) >> unused : (int64_t)v;
}

static void put_whole(uint8_t *at, size_t i, dt_dtype_t dtype, int64_t v)
{
    memcpy(at + i * dt_dtype_size(dtype), &v, dt_dtype_size(dtype));
}

/* Numbers whose sums and products are exact in every type. */
static double small(uint64_t random, dt_op_t op)
{
    static const double factors[] = { 1, -1, 2, -2, 0.5, -0.5 };

    return op == DT_PROD ? factors[random % 6] : (double)(random % 21) - 10;
}

/* Repeats the first PERIOD elements of an array, which saves time. */
static void repeat(uint8_t *at, size_t count, size_t size)
{
    for (size_t i = PERIOD; i < count; i += PERIOD)
        memcpy(at + i * size, at, (count - i < PERIOD ? count - i : PERIOD) * size);
}

/* Any bits, unless floats are combined. */
static void fill(uint8_t *at, size_t count, const struct call *c, uint64_t key)
{
    size_t n = count < PERIOD ? count : PERIOD, bytes = n * call_size(c);
    bool any = !c->operation->folds || !dtype_is_float(c->dtype);

    for (size_t i = 0; any && i < bytes; i++)
        at[i] = (uint8_t)((key + i) * 0x9e3779b97f4a7c15 >> 56);
    for (size_t i = 0; !any && i < n; i++)
        put_float(at, i, c->dtype, small((key + i) * 0x9e3779b97f4a7c15 >> 40, c->op));
    repeat(at, count, call_size(c));
}

/* ---- shapes: how many elements a rank has ---- */

/* Elements of the block that goes from one rank to another. */
static size_t block(const struct call *c, int from, int to)
{
    uint64_t dice =
        c->key + (uint64_t)(c->in_place && from > to ? to * MOST + from : from * MOST + to);

    return !c->varies ? c->count : below(&dice, 4) == 0 ? 0 : below(&dice, c->count + 1);
}

/* The only block that the rank gives or gets. */
static size_t own_block(const struct call *c, int rank)
{
    return block(c, 0, rank);
}

size_t call_own_place(const struct call *c, int rank)
{
    size_t n = 0;

    while (rank-- > 0)
        n += own_block(c, rank);
    return n;
}

static size_t one(const struct call *c, int rank)
{
    (void)rank;
    return c->count;
}

static size_t one_at_root(const struct call *c, int rank)
{
    return rank == c->root ? c->count : 0;
}

static size_t all(const struct call *c, int rank)
{
    (void)rank;
    return call_own_place(c, c->group->size);
}

static size_t all_at_root(const struct call *c, int rank)
{
    return rank == c->root ? all(c, rank) : 0;
}

static size_t all_from(const struct call *c, int rank)
{
    size_t n = 0;

    for (int to = 0; to < c->group->size; to++)
        n += block(c, rank, to);
    return n;
}

static size_t all_to(const struct call *c, int rank)
{
    size_t n = 0;

    for (int from = 0; from < c->group->size; from++)
        n += block(c, from, rank);
    return n;
}

static size_t one_at_peer(const struct call *c, int rank)
{
    return rank == c->peer ? c->count : 0;
}

static size_t none(const struct call *c, int rank)
{
    (void)c;
    (void)rank;
    return 0;
}

/* ---- results, by plain computation ---- */

static double fold_float(const struct call *c, size_t i)
{
    double r = 0;
    bool first = true;

    for (int rank = 0; rank < c->group->size; rank++) {
        double v;

        if (c->absent >> rank & 1)
            continue;
        v = get_float(c->inputs[rank], i, c->dtype) * c->options.prescale;
        if (first)
            r = v;
        else if (c->op == DT_SUM || c->op == DT_AVG)
            r += v;
        else if (c->op == DT_PROD)
            r *= v;
        else
            r = c->op == DT_MIN ? fmin(r, v) : fmax(r, v);
        first = false;
    }
    if (c->op == DT_AVG)
        r = c->dtype == DT_F64 ? r / c->group->size : (double)((float)r / (float)c->group->size);
    return r * c->options.postscale;
}

static uint64_t pair_whole(const struct call *c, uint64_t a, uint64_t b)
{
    bool more = c->dtype == DT_U64 ? a > b : (int64_t)a > (int64_t)b;

    switch (c->op) {
    case DT_PROD:
        return a * b;
    case DT_MIN:
        return more ? b : a;
    case DT_MAX:
        return more ? a : b;
    case DT_BAND:
        return a & b;
    case DT_BOR:
        return a | b;
    case DT_BXOR:
        return a ^ b;
    default:
        return a + b;
    }
}

static void fold_whole(const struct call *c, size_t i)
{
    uint64_t r = 0;
    int64_t sum;
    bool first = true;

    for (int rank = 0; rank < c->group->size; rank++) {
        uint64_t v;

        if (c->absent >> rank & 1)
            continue;
        v = (uint64_t)get_whole(c->inputs[rank], i, c->dtype);
        r = first ? v : pair_whole(c, r, v);
        first = false;
    }
    put_whole(c->result, i, c->dtype, (int64_t)r);
    if (c->op != DT_AVG)
        return;
    sum = get_whole(c->result, i, c->dtype); /* which may have wrapped */
    put_whole(c->result, i, c->dtype,
              c->dtype == DT_U64 ? (int64_t)((uint64_t)sum / (uint64_t)c->group->size)
                                 : sum / c->group->size);
}

/* Combines the vectors of n ranks from `first` on. */
static double *adasum(const struct call *c, int first, int n)
{
    double *a, *b, ab = 0, aa = 0, bb = 0;

    if (n == 1) {
        a = calloc(c->count + 1, sizeof *a);
        for (size_t i = 0; i < c->count; i++)
            a[i] = get_float(c->inputs[first], i, c->dtype) * c->options.prescale;
        return a;
    }
    a = adasum(c, first, n / 2);
    b = adasum(c, first + n / 2, n / 2);
    for (size_t i = 0; i < c->count; i++) {
        ab += a[i] * b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
    }
    for (size_t i = 0; i < c->count; i++)
        a[i] = (aa > 0 ? 1 - ab / (2 * aa) : 1) * a[i] + (bb > 0 ? 1 - ab / (2 * bb) : 1) * b[i];
    free(b);
    return a;
}

static void want_adasum(struct call *c)
{
    double *sum = adasum(c, 0, c->group->size);

    for (size_t i = 0; i < c->count; i++)
        put_float(c->result, i, c->dtype, sum[i] * c->options.postscale);
    free(sum);
}

static void want_folded(struct call *c)
{
    size_t n = c->operation->in(c, c->group->rank);

    if (c->op == DT_ADASUM) {
        want_adasum(c);
        return;
    }
    for (size_t i = 0; i < n && i < PERIOD; i++) {
        if (dtype_is_float(c->dtype))
            put_float(c->result, i, c->dtype, fold_float(c, i));
        else
            fold_whole(c, i);
    }
    repeat(c->result, n, call_size(c));
}

static void want_own_folded(struct call *c)
{
    want_folded(c);
    memmove(c->result, c->result + call_own_place(c, c->group->rank) * call_size(c),
            own_block(c, c->group->rank) * call_size(c));
}

static void want_from_root(struct call *c)
{
    memcpy(c->result, c->inputs[c->root], c->count * call_size(c));
}

static void want_from_peer(struct call *c)
{
    memcpy(c->result, c->inputs[c->peer], c->count * call_size(c));
}

static void want_gathered(struct call *c)
{
    uint8_t *at = c->result;

    for (int from = 0; from < c->group->size; from++) {
        memcpy(at, c->inputs[from], own_block(c, from) * call_size(c));
        at += own_block(c, from) * call_size(c);
    }
}

static void want_scattered(struct call *c)
{
    int rank = c->group->rank;

    memcpy(c->result, c->inputs[c->root] + call_own_place(c, rank) * call_size(c),
           own_block(c, rank) * call_size(c));
}

static void want_swapped(struct call *c)
{
    int rank = c->group->rank;
    uint8_t *at = c->result;

    for (int from = 0; from < c->group->size; from++) {
        size_t before = 0, n = block(c, from, rank);

        for (int to = 0; to < rank; to++)
            before += block(c, from, to);
        memcpy(at, c->inputs[from] + before * call_size(c), n * call_size(c));
        at += n * call_size(c);
    }
}

static void want_nothing(struct call *c)
{
    (void)c;
}

/* ---- the calls ---- */

/* Makes a call now, or later if `later` is not NULL. */
#define NOW_OR_LATER(name, ...)                                                                    \
    (later ? dt_i##name(c->comm, __VA_ARGS__, later) : dt_##name(c->comm, __VA_ARGS__))

static void own_counts(const struct call *c, size_t counts[MOST])
{
    for (int rank = 0; rank < c->group->size; rank++)
        counts[rank] = own_block(c, rank);
}

static void swapped_counts(const struct call *c, size_t sends[MOST], size_t receives[MOST])
{
    for (int rank = 0; rank < c->group->size; rank++) {
        sends[rank] = block(c, c->group->rank, rank);
        receives[rank] = block(c, rank, c->group->rank);
    }
}

static dt_result_t make_all_reduce(struct call *c, dt_request_t *later)
{
    const dt_all_reduce_options_t *o = &c->options;

    if (o->prescale == 1 && o->postscale == 1 && o->wire == DT_WIRE_EXACT)
        return NOW_OR_LATER(all_reduce, c->in, c->out, c->count, c->dtype, c->op);
    return NOW_OR_LATER(all_reduce_with, c->in, c->out, c->count, c->dtype, c->op, o);
}

static dt_result_t make_reduce(struct call *c, dt_request_t *later)
{
    return NOW_OR_LATER(reduce, c->in, c->out, c->count, c->dtype, c->op, c->root);
}

static dt_result_t make_broadcast(struct call *c, dt_request_t *later)
{
    return NOW_OR_LATER(broadcast, c->out, c->count, c->dtype, c->root);
}

static dt_result_t make_reduce_scatter(struct call *c, dt_request_t *later)
{
    size_t counts[MOST];

    if (!c->varies)
        return NOW_OR_LATER(reduce_scatter, c->in, c->out, c->count, c->dtype, c->op);
    own_counts(c, counts);
    return NOW_OR_LATER(reduce_scatterv, c->in, c->out, counts, c->dtype, c->op);
}

static dt_result_t make_all_gather(struct call *c, dt_request_t *later)
{
    size_t counts[MOST];

    if (!c->varies)
        return NOW_OR_LATER(all_gather, c->in, c->out, c->count, c->dtype);
    own_counts(c, counts);
    return NOW_OR_LATER(all_gatherv, c->in, c->out, counts, c->dtype);
}

static dt_result_t make_all_to_all(struct call *c, dt_request_t *later)
{
    size_t sends[MOST], receives[MOST];

    if (!c->varies)
        return NOW_OR_LATER(all_to_all, c->in, c->out, c->count, c->dtype);
    swapped_counts(c, sends, receives);
    return NOW_OR_LATER(all_to_allv, c->in, sends, c->out, receives, c->dtype);
}

static dt_result_t make_gather(struct call *c, dt_request_t *later)
{
    size_t counts[MOST];

    if (!c->varies)
        return NOW_OR_LATER(gather, c->in, c->out, c->count, c->dtype, c->root);
    own_counts(c, counts);
    return NOW_OR_LATER(gatherv, c->in, counts[c->group->rank], c->out, counts, c->dtype, c->root);
}

static dt_result_t make_scatter(struct call *c, dt_request_t *later)
{
    size_t counts[MOST];

    if (!c->varies)
        return NOW_OR_LATER(scatter, c->in, c->out, c->count, c->dtype, c->root);
    own_counts(c, counts);
    return NOW_OR_LATER(scatterv, c->in, counts, c->out, counts[c->group->rank], c->dtype, c->root);
}

static dt_result_t make_barrier(struct call *c, dt_request_t *later)
{
    return later ? dt_ibarrier(c->comm, later) : dt_barrier(c->comm);
}

static dt_result_t make_send(struct call *c, dt_request_t *later)
{
    return NOW_OR_LATER(send, c->in, c->count, c->dtype, c->peer);
}

static dt_result_t make_receive(struct call *c, dt_request_t *later)
{
    return NOW_OR_LATER(recv, c->out, c->count, c->dtype, c->peer);
}

const struct operation operations[] = {
    { "all-reduce", one, one, want_folded, make_all_reduce, .folds = true, .marked = true },
    { "reduce", one, one_at_root, want_folded, make_reduce, .folds = true, .rooted = true,
      .marked = true },
    { "broadcast", one_at_root, one, want_from_root, make_broadcast, .rooted = true },
    { "reduce-scatter", all, own_block, want_own_folded, make_reduce_scatter, .folds = true,
      .any_size = true, .marked = true },
    { "all-gather", own_block, all, want_gathered, make_all_gather, .any_size = true,
      .marked = true, .own_in = true },
    { "all-to-all", all_from, all_to, want_swapped, make_all_to_all, .any_size = true,
      .marked = true },
    { "gather", own_block, all_at_root, want_gathered, make_gather, .rooted = true,
      .any_size = true, .own_in = true },
    { "scatter", all_at_root, own_block, want_scattered, make_scatter, .rooted = true,
      .any_size = true, .own_out = true },
    { "barrier", none, none, want_nothing, make_barrier, .folds = false },
    { "send", one, none, want_nothing, make_send, .any_size = true },
    { "receive", one_at_peer, one, want_from_peer, make_receive, .any_size = true },
};

void call_compute(struct call *c)
{
    const struct operation *o = c->operation;
    size_t most = 1;

    for (int rank = 0; rank < c->group->size; rank++) {
        size_t n = o->in(c, rank);

        c->inputs[rank] = malloc(n * call_size(c) + 1);
        fill(c->inputs[rank], n, c, mix(c->key + (uint64_t)rank));
        most = n > most ? n : most;
    }
    if (o->out(c, c->group->rank) > most)
        most = o->out(c, c->group->rank);
    c->result = malloc(most * call_size(c));
    if (o->out(c, c->group->rank))
        o->want(c);
}

/* NCCL multiplies by a rounded fraction, and rounds at every rank. */
void call_set_tolerance(struct call *c)
{
    static const double rounding[] = { [DT_F16] = 1.0 / (1 << 11),
                                       [DT_BF16] = 1.0 / (1 << 8),
                                       [DT_F32] = 1.0 / (1 << 24),
                                       [DT_F64] = 1.0 / (1L << 53) };
    const char *path = getenv("DTRUN_DEVICE");
    int size = c->group->size;

    if (!c->operation->folds || !dtype_is_float(c->dtype))
        return;
    if (c->op == DT_ADASUM ||
        (c->op == DT_AVG && (size & (size - 1)) != 0 && !(path && strcmp(path, "staging") == 0)))
        c->tolerance =
            rounding[c->dtype] * 10 * size * c->options.prescale * c->options.postscale * 2;
    if (c->op == DT_ADASUM && c->dtype == DT_F64)
        c->tolerance *= 100; /* inner products are rounded, too */
}
