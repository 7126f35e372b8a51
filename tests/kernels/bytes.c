/* Prints the results of one instruction set's kernels: for every operation a line with a hash of
 * many results. Builds for different processors must print the same (kernels.bats compares them),
 * so inputs are made from bits, without floating-point arithmetic.
 *
 * usage: bytes            the names of the sets that this processor has
 *        bytes SET WIDTH  the hashes of SET; WIDTH is the widest vector of the sets being compared
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/kernels/reduce.h"

enum { SOURCES = 8, LONGEST = 1037, ROOM = (LONGEST + 8) * 8 };

static const size_t larger[] = { 255, 256, 257, 512, LONGEST };

static size_t width; /* of a vector, in bytes */

/* Tries every count up to this many elements. That covers two rounds of four vectors, which are
 * reduced side by side, and every possible remainder. bytes: size of an element in a vector. */
static size_t every_count_to(size_t bytes)
{
    size_t two_rounds = 2 * 4 * width / bytes;

    return (two_rounds > 128 ? two_rounds : 128) + 2;
}

static uint64_t state;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t hash(uint64_t h, const void *data, size_t n)
{
    const uint8_t *p = data;

    while (n--)
        h = (h ^ *p++) * 0x100000001b3U;
    return h;
}

/* ---- inputs ---- */

static const struct layout {
    unsigned bits, exponent; /* bits of the number, and of its exponent */
} layouts[DT_DTYPE_MAX] = {
    [DT_F16] = { 16, 5 }, [DT_BF16] = { 16, 8 }, [DT_F32] = { 32, 8 }, [DT_F64] = { 64, 11 }
};

/* Mostly numbers of similar size, mixed with random bits, zeros, subnormals, infinities and all
 * kinds of NaN. */
static uint64_t element(dt_dtype_t t)
{
    uint64_t r = next_random(), mantissa, exponent;
    unsigned place = layouts[t].bits - layouts[t].exponent - 1,
             all = (1u << layouts[t].exponent) - 1;

    if (!layouts[t].bits || r % 16 == 0)
        return next_random();
    mantissa = r % 16 == 1 ? 0 : next_random() & (((uint64_t)1 << place) - 1);
    exponent = r % 16 <= 2 ? (r >> 8 & 1) * all : r % 16 == 3 ? 0 : all / 2 - 2 + (r >> 9) % 5;
    return (r >> 4 & 1) << (layouts[t].bits - 1) | exponent << place | mantissa;
}

static void fill(dt_dtype_t t, uint8_t *p, size_t count)
{
    size_t size = dt_dtype_size(t);

    for (size_t i = 0; i < count; i++) {
        uint64_t bits = element(t);

        memcpy(p + i * size, &bits, size);
    }
}

/* ---- results ---- */

static uint8_t raw[SOURCES][ROOM], out[ROOM], back[ROOM];

/* Folds n sources at addresses with every alignment, and divides where that is allowed. */
static uint64_t fold_once(uint64_t h, dt_dtype_t t, dt_op_t op, size_t n, size_t count)
{
    size_t shift = (count * 3 + n) % 8;
    const void *src[SOURCES];
    struct dt_fold fold = {
        .dst = out + shift, .src = src, .n = n, .count = count, .divisor = op == DT_AVG ? (int)n : 1
    };

    for (size_t s = 0; s < n; s++) {
        fill(t, raw[s] + shift, count);
        src[s] = raw[s] + shift;
    }
    dt_fold(&fold, t, op);
    return hash(h, out + shift, count * dt_dtype_size(t));
}

static uint64_t scale_once(uint64_t h, dt_dtype_t t, dt_op_t op, size_t n, size_t count)
{
    (void)op;
    fill(t, raw[0] + n % 8, count);
    dt_scale(out + count % 8, raw[0] + n % 8, count, t, n == 2 ? -0.1 : n == 3 ? 1e-40 : 3);
    return hash(h, out + count % 8, count * dt_dtype_size(t));
}

/* Values for count formats: integers that fit, and NaN. */
static void fill_whole(uint8_t *p, size_t count, int most)
{
    for (size_t i = 0; i < count; i++) {
        float v = (float)((int)(next_random() % (2 * (unsigned)most + 1)) - most);

        memcpy(p + i * sizeof v, next_random() % 16 ? &v : &(float){ __builtin_nanf("") },
               sizeof v);
    }
}

/* `op` is the format here. */
static uint64_t pack_once(uint64_t h, dt_dtype_t t, dt_op_t op, size_t n, size_t count)
{
    enum dt_wireformat f = (enum dt_wireformat)op;
    size_t shift = (count + n) % 8;

    if (f == DT_FORMAT_COUNT4 || f == DT_FORMAT_COUNT8)
        fill_whole(raw[0] + shift, count, f == DT_FORMAT_COUNT4 ? 7 : 127);
    else
        fill(t, raw[0] + shift, count);
    dt_wireformat_pack(f, out + shift, raw[0] + shift, count, n == 2 ? 0.5F : 1);
    h = hash(h, out + shift, dt_wireformat_bytes(f, count));
    dt_wireformat_unpack(f, back + shift, out + shift, count, n == 2 ? 0.5F : 1);
    h = hash(h, back + shift, count * sizeof(float));
    fill(t, raw[1] + shift, count);
    dt_wireformat_keep_error(raw[1] + shift, raw[0] + shift, back + shift, count, 0.25F);
    return hash(h, raw[1] + shift, count * sizeof(float));
}

typedef uint64_t (*once_f)(uint64_t h, dt_dtype_t t, dt_op_t op, size_t n, size_t count);

static void print(const char *what, const char *of, once_f once, dt_dtype_t t, dt_op_t op)
{
    size_t last = every_count_to(once == pack_once ? 1 : dt_dtype_size(t));
    uint64_t h = 0xcbf29ce484222325U;

    state = 88172645463325252U;
    for (size_t n = 2; n <= SOURCES; n += n == 3 ? 5 : 1) {
        for (size_t count = 0; count <= last; count++)
            h = once(h, t, op, n, count);
        for (size_t i = 0; i < sizeof larger / sizeof *larger; i++)
            h = once(h, t, op, n, larger[i]);
    }
    printf("%s %s %016llx\n", what, of, (unsigned long long)h);
}

int main(int argc, char **argv)
{
    static const char *const formats[DT_FORMATS] = { "f16",    "bf16",   "int8",
                                                     "count2", "count4", "count8" };
    char names[64];

    if (argc == 1) {
        puts(dt_reduce_choices(names, sizeof names));
        return 0;
    }
    width = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (width == 0 || every_count_to(1) > LONGEST) {
        fprintf(stderr, "usage: bytes [SET WIDTH]\n");
        return 2;
    }
    if (!dt_reduce_use(argv[1])) {
        fprintf(stderr, "bytes: this processor does not have %s\n", argv[1]);
        return 1;
    }
    for (dt_dtype_t t = DT_I8; t <= DT_F64; t++) {
        for (dt_op_t op = DT_SUM; op <= DT_BXOR; op++) {
            if (dt_op_applies(op, t))
                print(dt_dtype_name(t), dt_op_name(op), fold_once, t, op);
        }
        if (dt_dtype_is_float(t))
            print(dt_dtype_name(t), "scale", scale_once, t, DT_SUM);
    }
    for (int f = 0; f < DT_FORMATS; f++)
        print("wire", formats[f], pack_once, DT_F32, (dt_op_t)f);
    return 0;
}
