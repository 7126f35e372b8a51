#include "tests/unit/reference.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/kernels/dtype.h"
#include "runtime/kernels/reduce.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/testjob.h"

uint64_t reference_mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15U;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9U;
    return x ^ x >> 32;
}

/* ---- inputs ---- */

static bool exact;

static double value(int rank, size_t i, bool product)
{
    uint64_t r = reference_mix(((uint64_t)rank << 40) + i + 1);

    if (product)
        return (r & 1 ? 2.0 : 0.5) * (r & 2 ? 1 : -1);
    if (exact)
        return (double)(int64_t)(r % 2001) - 1000;
    return ((double)(r >> 11) / (double)(1ULL << 53) - 0.5) * ((r & 7) ? 1.0 : 1e6);
}

/* Halves of similar size or, where sums have to be exact, powers of two. */
static uint16_t half(uint64_t bits, dt_dtype_t dtype)
{
    uint16_t sign = (uint16_t)(bits % 2 << 15), exponent = (uint16_t)(bits / 2 % 3);
    uint16_t any = (uint16_t)(bits / 2);

    if (dtype == DT_F16)
        return sign | (exact ? (uint16_t)((14 + exponent) << 10) : 0x3800 + any % 0x800);
    return sign | (exact ? (uint16_t)((126 + exponent) << 7) : 0x3f00 + any % 0x100);
}

/* Values that are no numbers, or that careless code may mistake. Zeros of both signs and very small
 * numbers show the order in which hosts are reduced. */
static uint64_t special(dt_dtype_t dtype, uint64_t r)
{
    enum { INFINITE, NEGATIVE_INFINITE, NAN_ONE, NAN_OTHER, MINUS_ZERO };
    unsigned bits = (unsigned)(8 * dt_dtype_size(dtype));
    unsigned exponent = dtype == DT_F16 ? 5 : dtype == DT_F64 ? 11 : 8;
    uint64_t sign = (uint64_t)1 << (bits - 1), all = sign - ((uint64_t)1 << (bits - 1 - exponent));

    switch (r % (exact ? MINUS_ZERO : MINUS_ZERO + 2)) {
    case INFINITE:
        return all;
    case NEGATIVE_INFINITE:
        return all | sign;
    case NAN_ONE:
        return all | 1;
    case NAN_OTHER:
        return sign | all | all >> 1 | 5;
    case MINUS_ZERO:
        return sign;
    default:
        return (r >> 8 & 1 ? sign : 0) | 3; /* a subnormal number */
    }
}

static void make(void *at, int rank, size_t i, dt_dtype_t dtype, bool product)
{
    uint64_t bits = reference_mix(((uint64_t)rank << 41) + i);

    if (dt_dtype_is_float(dtype) && bits % 101 == 0)
        bits = special(dtype, bits >> 8);
    else if (dtype == DT_F16 || dtype == DT_BF16)
        bits = half(bits, dtype);
    else if (dtype == DT_F32)
        memcpy(&bits, &(float){ (float)value(rank, i, product) }, sizeof(float));
    else if (dtype == DT_F64)
        memcpy(&bits, &(double){ value(rank, i, product) }, sizeof(double));
    memcpy(at, &bits, dt_dtype_size(dtype)); /* little-endian */
}

/* Inputs repeat after this many elements, so that they are made once for all tests. */
enum { PERIOD = 16411 };

/* Of sums and similar operations, and of products. */
typedef uint8_t *inputs_t[2][DT_DTYPE_MAX][TESTJOB_RANKS];

static inputs_t inputs[2]; /* the second: exact ones */

static uint8_t *made(int rank, dt_dtype_t dtype, bool product)
{
    size_t size = dt_dtype_size(dtype);
    uint8_t *all = testjob_shared(PERIOD * size);

    for (size_t i = 0; i < PERIOD; i++)
        make(all + i * size, rank, i, dtype, product);
    return all;
}

/* Expected results, which all ranks share. They take turns, so that a rank can go on to the next
 * try while others still compare. */
enum { EXPECTED = 2, EXPECTED_BYTES = 8 * 1024 * 1024 };

static uint8_t *expected[EXPECTED];

void reference_inputs(bool as_exact)
{
    exact = as_exact;
    for (int i = 0; i < EXPECTED && !expected[i]; i++)
        expected[i] = testjob_shared(EXPECTED_BYTES);
    for (dt_dtype_t t = DT_I8; t <= DT_F64 && !inputs[exact][0][t][0]; t++) {
        for (int rank = 0; rank < TESTJOB_RANKS; rank++) {
            uint8_t **of_sums = &inputs[exact][0][t][rank];

            *of_sums = made(rank, t, false);
            inputs[exact][1][t][rank] = t == DT_F32 || t == DT_F64 ? made(rank, t, true) : *of_sums;
        }
    }
}

void reference_fill_from(size_t first, void *buf, int rank, size_t count, dt_dtype_t dtype,
                         dt_op_t op)
{
    const uint8_t *from = inputs[exact][op == DT_PROD][dtype][rank];
    size_t size = dt_dtype_size(dtype), i = 0;

    while (i < count) {
        size_t at = (first + i) % PERIOD, n = PERIOD - at < count - i ? PERIOD - at : count - i;

        memcpy((char *)buf + i * size, from + at * size, n * size);
        i += n;
    }
}

void reference_fill(void *buf, int rank, size_t count, dt_dtype_t dtype, dt_op_t op)
{
    reference_fill_from(0, buf, rank, count, dtype, op);
}

/* ---- all-reduce ---- */

static void fold(void *dst, const void *const *src, size_t n, size_t count, double divisor,
                 dt_dtype_t dtype, dt_op_t op)
{
    struct dt_fold f = { .dst = dst, .src = src, .n = n, .count = count, .divisor = divisor };

    dt_fold(&f, dtype, op);
}

/* The power of two by which hosts divide what they will round when they average f16. */
static int host_divisor(const int *home, int n, dt_dtype_t dtype, dt_op_t op)
{
    int ranks[TESTJOB_RANKS] = { 0 }, divisor = 1;

    for (int rank = 0; rank < n && dtype == DT_F16 && op == DT_AVG; rank++) {
        if (++ranks[home[rank]] > divisor)
            divisor *= 2;
    }
    return divisor;
}

/* Reduces the ranks of every host, then the hosts, each in their order and rounded once, with the
 * plain kernels or, where these are too slow, the fastest ones (tests/unit/kernels/reduce tests
 * both). Does so for count elements from "first" on. */
static void reference(void *want, const char *hosts, size_t first, size_t count, dt_dtype_t dtype,
                      dt_op_t op)
{
    int home[TESTJOB_RANKS], n = testjob_place(hosts, home), done = 0;
    int each = host_divisor(home, n, dtype, op);
    size_t bytes = count * dt_dtype_size(dtype), all = (size_t)n * bytes;
    uint8_t *ranks = malloc(2 * all + 1), *sums = ranks + all;
    const void *src[TESTJOB_RANKS], *partial[TESTJOB_RANKS] = { NULL };
    const char *isa = dt_reduce_isa();
    size_t host;

    if (!SANITIZED)
        dt_reduce_use("plain");
    for (host = 0; done < n; host++) {
        size_t here = 0;

        for (int rank = 0; rank < n; rank++) {
            if (home[rank] != (int)host)
                continue;
            src[here] = ranks + here * bytes;
            reference_fill_from(first, ranks + here++ * bytes, rank, count, dtype, op);
        }
        partial[host] = sums + host * bytes;
        fold(sums + host * bytes, src, here, count, each, dtype, op);
        done += (int)here;
    }
    if (n == 1)
        dt_fold_alone(want, src[0], count, dtype);
    else if (host == 1)
        fold(want, src, (size_t)n, count, op == DT_AVG ? n : 1, dtype, op);
    else
        fold(want, partial, host, count, op == DT_AVG ? (double)n / each : 1, dtype, op);
    dt_reduce_use(isa);
    free(ranks);
}

/* Each rank computes a part of what all expect. The others' parts are there when a collective call
 * returns in which all ranks have a part. */
static const uint8_t *expect(const char *hosts, size_t count, dt_dtype_t dtype, dt_op_t op)
{
    static unsigned turn;
    uint8_t *want = expected[turn % EXPECTED];
    size_t n = (size_t)dt_size(), me = (size_t)dt_rank();
    size_t from = count * me / n, to = count * (me + 1) / n;

    reference(want + from * dt_dtype_size(dtype), hosts, from, to - from, dtype, op);
    turn += count > 0; /* calls without data do not wait for other ranks */
    return want;
}

bool reference_canaries(const uint8_t *p)
{
    for (int i = 0; i < REFERENCE_CANARY; i++) {
        if (p[i] != 0xa5)
            return false;
    }
    return true;
}

int reference_try(const char *hosts, size_t count, dt_dtype_t dtype, dt_op_t op, size_t offset)
{
    size_t bytes = count * dt_dtype_size(dtype), room = bytes + 2 * REFERENCE_CANARY + offset;
    uint8_t *in = malloc(room), *out = malloc(room), *mine = malloc(bytes + 1);
    uint8_t *i0 = in + REFERENCE_CANARY + offset, *o0 = out + REFERENCE_CANARY + offset;
    const uint8_t *want;

    NEED(bytes <= EXPECTED_BYTES);
    memset(in, 0xa5, REFERENCE_CANARY + offset);
    memset(i0 + bytes, 0xa5, REFERENCE_CANARY);
    memset(out, 0xa5, room);
    reference_fill(i0, dt_rank(), count, dtype, op);
    memcpy(mine, i0, bytes);
    want = expect(hosts, count, dtype, op);
    NEED(dt_all_reduce(DT_WORLD, i0, o0, count, dtype, op) == DT_OK);
    NEED(memcmp(i0, mine, bytes) == 0);
    NEED(reference_canaries(i0 - REFERENCE_CANARY) && reference_canaries(i0 + bytes));
    NEED(memcmp(o0, want, bytes) == 0);
    NEED(reference_canaries(o0 - REFERENCE_CANARY) && reference_canaries(o0 + bytes));
    memcpy(o0, mine, bytes);
    NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, o0, count, dtype, op) == DT_OK);
    NEED(memcmp(o0, want, bytes) == 0);
    NEED(reference_canaries(o0 - REFERENCE_CANARY) && reference_canaries(o0 + bytes));
    free(in);
    free(out);
    free(mine);
    return 0;
}
