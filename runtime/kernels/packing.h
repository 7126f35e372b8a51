/* The wire formats (wireformat.h), for body.h. */

typedef float loose __attribute__((aligned(1), may_alias));

enum { BLOCK = DT_FORMAT_BLOCK };

/* ---- halves ---- */

#define HALVES(t)                                                                                  \
    static void pack_##t(void *dst, const void *src, size_t count, float step)                     \
    {                                                                                              \
        enum { STEP = WIDTH / sizeof(float) };                                                     \
        size_t i = 0;                                                                              \
                                                                                                   \
        (void)step;                                                                                \
        for (; count - i >= STEP; i += STEP) {                                                     \
            f32_w v = load_f32_w(AT(src, i, 4));                                                   \
                                                                                                   \
            store_##t##_w(TO(dst, i, 2), ONE_NAN(v));                                              \
        }                                                                                          \
        for (; i < count; i++) {                                                                   \
            f32_1 v = load_f32_1(AT(src, i, 4));                                                   \
                                                                                                   \
            store_##t##_1(TO(dst, i, 2), ONE_NAN(v));                                              \
        }                                                                                          \
    }                                                                                              \
    static void unpack_##t(void *dst, const void *src, size_t count, float step)                   \
    {                                                                                              \
        enum { STEP = WIDTH / sizeof(float) };                                                     \
        size_t i = 0;                                                                              \
                                                                                                   \
        (void)step;                                                                                \
        for (; count - i >= STEP; i += STEP)                                                       \
            store_f32_w(TO(dst, i, 4), load_##t##_w(AT(src, i, 2)));                               \
        for (; i < count; i++)                                                                     \
            store_f32_1(TO(dst, i, 4), load_##t##_1(AT(src, i, 2)));                               \
    }

HALVES(f16)
HALVES(bf16)

/* ---- int8 ---- */

INLINE uint32_t bits_of(float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

INLINE float scale_of(const loose *src, size_t n)
{
    uint32_t most = 0;
    float largest;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bits_of(src[i]) & 0x7fffffff;

        most = bits > most ? bits : most;
    }
    if (most >= 0x7f800000)
        return __builtin_nanf("");
    memcpy(&largest, &most, sizeof largest);
    return largest / 127 < 0x1p-126f ? 0x1p-126f : largest / 127;
}

/* Adds a number whose last bit has the weight 1. The sum is rounded like any other, and its low
 * bits hold the result. */
INLINE void pack_int8_block(uint8_t *dst, const loose *src, size_t n)
{
    float scale = scale_of(src, n), inverse = scale == scale ? 1 / scale : 0;

    memcpy(dst, &scale, sizeof scale);
    for (size_t i = 0; i < n; i++)
        dst[sizeof scale + i] = (uint8_t)bits_of(src[i] * inverse + 0x1.8p23f);
}

static void pack_int8(void *dst, const void *src, size_t count, float step)
{
    const loose *from = src;
    uint8_t *to = dst;

    (void)step;
    for (; count >= BLOCK; count -= BLOCK, from += BLOCK, to += sizeof(float) + BLOCK)
        pack_int8_block(to, from, BLOCK);
    if (count)
        pack_int8_block(to, from, count);
}

INLINE void unpack_int8_block(loose *dst, const uint8_t *src, size_t n)
{
    float scale;

    memcpy(&scale, src, sizeof scale);
    for (size_t i = 0; i < n; i++)
        dst[i] = (float)(int8_t)src[sizeof scale + i] * scale;
}

static void unpack_int8(void *dst, const void *src, size_t count, float step)
{
    const uint8_t *from = src;
    loose *to = dst;

    (void)step;
    for (; count >= BLOCK; count -= BLOCK, to += BLOCK, from += sizeof(float) + BLOCK)
        unpack_int8_block(to, from, BLOCK);
    if (count)
        unpack_int8_block(to, from, count);
}

/* ---- counts ---- */

typedef VEC(int32_t, WIDTH / sizeof(float)) counts;

INLINE counts by_threshold(f32_w v, float step)
{
    counts special = ((u32_w)v & 0x7fffffffu) >= 0x7f800000u;

    return SELECT(special, (counts){ 0 } - 2, (v <= -step) - (v >= step));
}

INLINE counts whole(f32_w v, int32_t nan)
{
    return SELECT(v == v, __builtin_convertvector(v, counts), (counts){ 0 } + nan);
}

/* Number r * words + w of a block is in word w, so that vectors of words are made from vectors of
 * numbers. */
#define COUNTS(bits, count_of)                                                                     \
    INLINE void pack_count##bits##_block(uint8_t *dst, const void *src, float step)                \
    {                                                                                              \
        enum { WORDS = BLOCK * (bits) / 32, STEP = WIDTH / sizeof(float) };                        \
                                                                                                   \
        (void)step;                                                                                \
        for (unsigned w = 0; w < WORDS; w += STEP) {                                               \
            u32_w words = { 0 };                                                                   \
                                                                                                   \
            for (unsigned r = 0; r < BLOCK / WORDS; r++) {                                         \
                f32_w v = load_f32_w(AT(src, r * WORDS + w, 4));                                   \
                                                                                                   \
                words |= ((u32_w)(count_of) & ((1u << (bits)) - 1)) << r * (bits);                 \
            }                                                                                      \
            store_u32_w(TO(dst, w, 4), words);                                                     \
        }                                                                                          \
    }                                                                                              \
    static void pack_count##bits(void *dst, const void *src, size_t count, float step)             \
    {                                                                                              \
        enum { BYTES = BLOCK * (bits) / 8 };                                                       \
        const loose *from = src;                                                                   \
        float last[BLOCK] = { 0 };                                                                 \
        uint8_t *to = dst;                                                                         \
                                                                                                   \
        for (; count >= BLOCK; count -= BLOCK, from += BLOCK, to += BYTES)                         \
            pack_count##bits##_block(to, from, step);                                              \
        if (!count)                                                                                \
            return;                                                                                \
        memcpy(last, from, count * sizeof *last);                                                  \
        pack_count##bits##_block(to, last, step);                                                  \
    }                                                                                              \
    INLINE void unpack_count##bits##_block(void *dst, const uint8_t *src, float step)              \
    {                                                                                              \
        enum { WORDS = BLOCK * (bits) / 32, STEP = WIDTH / sizeof(float) };                        \
        f32_w none = (f32_w){ 0 } + __builtin_nanf("");                                            \
                                                                                                   \
        for (unsigned w = 0; w < WORDS; w += STEP) {                                               \
            u32_w words = load_u32_w(AT(src, w, 4));                                               \
                                                                                                   \
            for (unsigned r = 0; r < BLOCK / WORDS; r++) {                                         \
                counts n = (counts)(words << (32 - (bits)-r * (bits))) >> (32 - (bits));           \
                f32_w v = __builtin_convertvector(n, f32_w) * step;                                \
                                                                                                   \
                store_f32_w(TO(dst, r *WORDS + w, 4), SELECT(n == -(1 << ((bits)-1)), none, v));   \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void unpack_count##bits(void *dst, const void *src, size_t count, float step)           \
    {                                                                                              \
        enum { BYTES = BLOCK * (bits) / 8 };                                                       \
        const uint8_t *from = src;                                                                 \
        float last[BLOCK];                                                                         \
        loose *to = dst;                                                                           \
                                                                                                   \
        for (; count >= BLOCK; count -= BLOCK, to += BLOCK, from += BYTES)                         \
            unpack_count##bits##_block(to, from, step);                                            \
        if (!count)                                                                                \
            return;                                                                                \
        unpack_count##bits##_block(last, from, step);                                              \
        memcpy(to, last, count * sizeof *last);                                                    \
    }

COUNTS(2, by_threshold(v, step))
COUNTS(4, whole(v, -8))
COUNTS(8, whole(v, -128))

/* ---- what is lost ---- */

static void keep_error(void *residual, const void *wanted, const void *arrived, size_t count,
                       float weight)
{
    const loose *w = wanted, *a = arrived;
    loose *r = residual;

    for (size_t i = 0; i < count; i++) {
        float error = r[i] + (w[i] - a[i]) * weight;

        r[i] = (bits_of(error) & 0x7fffffff) < 0x7f800000 ? error : 0;
    }
}
