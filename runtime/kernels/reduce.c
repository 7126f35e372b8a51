#include "runtime/kernels/reduce.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

extern const struct dt_kernels dti_kernels_plain;
#if defined(__x86_64__)
extern const struct dt_kernels dti_kernels_avx2;
extern const struct dt_kernels dti_kernels_avx512;
#elif defined(__aarch64__)
extern const struct dt_kernels dti_kernels_neon;
#endif

static const struct dt_kernels *const sets[] = {
#if defined(__x86_64__)
    &dti_kernels_avx512,
    &dti_kernels_avx2,
#elif defined(__aarch64__)
    &dti_kernels_neon,
#endif
    &dti_kernels_plain,
};

enum { SETS = sizeof(sets) / sizeof(sets[0]) };

static const struct dt_kernels *dti_chosen;

bool dt_reduce_use(const char *isa)
{
    for (int i = 0; i < SETS; i++) {
        bool wanted = !isa || !*isa || strcmp(isa, sets[i]->name) == 0;

        if (wanted && sets[i]->usable()) {
            dti_chosen = sets[i];
            return true;
        }
    }
    return false;
}

const struct dt_kernels *dt_reduce_kernels(void)
{
    if (!dti_chosen)
        dt_reduce_use(NULL);
    return dti_chosen;
}

const char *dt_reduce_isa(void)
{
    return dt_reduce_kernels()->name;
}

const char *dt_reduce_choices(char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < SETS && used < size; i++) {
        if (sets[i]->usable())
            used +=
                (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "", sets[i]->name);
    }
    return text;
}

/* Divides in the widest type of the same sign, since the divisor may not fit into the element type.
 * Then returns from the function. */
#define DIVIDE(type, wide)                                                                         \
    do {                                                                                           \
        typedef type elem __attribute__((aligned(1), may_alias));                                  \
        elem *b = buf;                                                                             \
                                                                                                   \
        for (size_t i = 0; i < count; i++)                                                         \
            b[i] = (type)(b[i] / (wide)n);                                                         \
        return;                                                                                    \
    } while (0)

static void divide_integers(void *buf, size_t count, dt_dtype_t dtype, int n)
{
    switch (dtype) {
    case DT_I8:
        DIVIDE(int8_t, int64_t);
    case DT_U8:
        DIVIDE(uint8_t, uint64_t);
    case DT_I16:
        DIVIDE(int16_t, int64_t);
    case DT_U16:
        DIVIDE(uint16_t, uint64_t);
    case DT_I32:
        DIVIDE(int32_t, int64_t);
    case DT_U32:
        DIVIDE(uint32_t, uint64_t);
    case DT_I64:
        DIVIDE(int64_t, int64_t);
    case DT_U64:
        DIVIDE(uint64_t, uint64_t);
    default:
        return;
    }
}

static void fold_bits(struct dt_fold f, dt_dtype_t dtype, dt_op_t op)
{
    f.count *= dt_dtype_size(dtype);
    dt_reduce_kernels()->fold_bits[op](&f);
}

void dt_fold(const struct dt_fold *f, dt_dtype_t dtype, dt_op_t op)
{
    bool divide_later = f->divisor != 1 && !dt_dtype_is_float(dtype);

    if (f->n == 1 && (f->divisor == 1 || divide_later))
        memmove(f->dst, f->src[0], f->count * dt_dtype_size(dtype));
    else if (op >= DT_BAND)
        fold_bits(*f, dtype, op);
    else
        dt_reduce_kernels()->fold[dtype][op](f);
    if (divide_later)
        divide_integers(f->dst, f->count, dtype, (int)f->divisor);
}

void dt_fold_alone(void *dst, const void *src, size_t count, dt_dtype_t dtype)
{
    const struct dt_fold f = { .dst = dst, .src = &src, .n = 1, .count = count, .divisor = 1 };

    if (dt_dtype_is_float(dtype))
        dt_reduce_kernels()->fold[dtype][DT_SUM](&f);
    else if (dst != src)
        dt_fold(&f, dtype, DT_SUM);
}

void dt_scale(void *dst, const void *src, size_t count, dt_dtype_t dtype, double factor)
{
    dt_reduce_kernels()->scale[dtype](dst, src, count, factor);
}
