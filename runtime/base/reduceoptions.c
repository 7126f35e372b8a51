#include "runtime/base/reduceoptions.h"

#include <math.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/base/versioned_struct.h"
#include "runtime/kernels/dtype.h"
#include "runtime/kernels/reduce.h"
#include "runtime/wire/env.h"

/* Smaller calls gain nothing from a wire format, and may carry counts that must be exact. */
enum { LEAST_COUNT = 4096 };

static const struct dt_versioned_struct stamp = { .name = "options",
                                                  .init = "DT_ALL_REDUCE_OPTIONS_INIT",
                                                  .first = sizeof(dt_all_reduce_options_t),
                                                  .known = sizeof(dt_all_reduce_options_t) };

static const struct {
    const char *name;
    /* the options as text: alone, with factors or a threshold, and of a bucket */
    const char *text;
    const char *text_with_number;
    const char *text_of_bucket;
} wires[] = {
    [DT_WIRE_EXACT] = { "exact", "", " with factors", " of a bucket" },
    [DT_WIRE_F16] = { "f16", " as f16", " as f16 with factors", " as f16 of a bucket" },
    [DT_WIRE_BF16] = { "bf16", " as bf16", " as bf16 with factors", " as bf16 of a bucket" },
    [DT_WIRE_INT8] = { "int8", " as int8", " as int8 with factors", " as int8 of a bucket" },
    [DT_WIRE_2BIT] = { "2bit", " as 2bit", " as 2bit with a threshold", " as 2bit of a bucket" },
};

/* Set in the mark of a bucket's buffers, whose hash is in the low 56 bits. */
#define BUFFERS (1ULL << 63)

enum { WIRES = sizeof wires / sizeof *wires };

static dt_all_reduce_options_t dti_default = DT_ALL_REDUCE_OPTIONS_INIT;

/* ---- what holds without options ---- */

dt_result_t dt_reduceoptions_choose_wire(dt_wire_t wire, const char *where)
{
    dti_default.wire = DT_WIRE_EXACT;
    if (wire == DT_WIRE_2BIT)
        return dt_fail(DT_ERR_ARG,
                       "dt_init: %s=2bit is not possible: 2bit needs a residual, which only the "
                       "program can give, with dt_all_reduce_with; use exact, f16, bf16 or int8",
                       where);
    if ((unsigned)wire >= WIRES)
        return dt_fail(DT_ERR_ARG, "dt_init: %s: %d is not a dt_wire_t", where, (int)wire);
    dti_default.wire = wire;
    return DT_OK;
}

dt_result_t dt_reduceoptions_choose(const char *text)
{
    for (int i = 0; i < WIRES; i++) {
        if (strcmp(text, wires[i].name) == 0)
            return dt_reduceoptions_choose_wire((dt_wire_t)i, DT_ENV_WIRE);
    }
    dti_default.wire = DT_WIRE_EXACT;
    return dt_fail(DT_ERR_ARG, "dt_init: " DT_ENV_WIRE "=%s is not one of exact, f16, bf16, int8",
                   text);
}

static bool can_be_packed(dt_dtype_t dtype, dt_op_t op)
{
    return dtype == DT_F32 && (op == DT_SUM || op == DT_AVG);
}

const dt_all_reduce_options_t *dt_reduceoptions_default(size_t count, dt_dtype_t dtype, dt_op_t op)
{
    bool packed =
        dti_default.wire != DT_WIRE_EXACT && count >= LEAST_COUNT && can_be_packed(dtype, op);

    return packed ? &dti_default : NULL;
}

/* ---- reading ---- */

static dt_result_t check_wire(const char *name, const dt_all_reduce_options_t *o, size_t count,
                              dt_dtype_t dtype, dt_op_t op)
{
    if ((unsigned)o->wire >= WIRES)
        return dt_fail(DT_ERR_ARG, "%s: %d is not a dt_wire_t", name, (int)o->wire);
    if ((o->wire != DT_WIRE_EXACT || o->residual) && !can_be_packed(dtype, op))
        return dt_fail(DT_ERR_ARG, "%s: %s is for sums and averages of f32, not for the %s of %s",
                       name, o->wire == DT_WIRE_EXACT ? "a residual" : wires[o->wire].name,
                       dt_op_name(op), dt_dtype_name(dtype));
    if (o->wire != DT_WIRE_2BIT)
        return DT_OK;
    if (!(o->threshold > 0) || !isfinite(o->threshold))
        return dt_fail(DT_ERR_ARG, "%s: the threshold is %g, and must be above 0", name,
                       (double)o->threshold);
    if (count && !o->residual)
        return dt_fail(DT_ERR_ARG,
                       "%s: 2bit needs a residual: as many f32 numbers as the buffer has, 0 at "
                       "first and kept from call to call",
                       name);
    return DT_OK;
}

dt_result_t dt_reduceoptions_read(const char *name, const dt_all_reduce_options_t *given,
                                  size_t count, dt_dtype_t dtype, dt_op_t op, bool device,
                                  dt_all_reduce_options_t *o)
{
    struct dt_versioned_struct of_call = stamp;
    const dt_all_reduce_options_t *common =
        device ? NULL : dt_reduceoptions_default(count, dtype, op);
    dt_result_t r;

    of_call.call = name;
    r = dt_versioned_struct_read(&of_call, given, o);
    if (r != DT_OK)
        return r;
    if (o->wire == DT_WIRE_DEFAULT)
        o->wire = common ? common->wire : DT_WIRE_EXACT;
    if ((o->prescale != 1 || o->postscale != 1) && !dt_dtype_is_float(dtype))
        return dt_fail(DT_ERR_ARG, "%s: factors are for floats, not for %s", name,
                       dt_dtype_name(dtype));
    if (device && o->residual && o->wire == DT_WIRE_EXACT)
        return dt_fail(DT_ERR_UNSUPPORTED,
                       "%s: a residual without a wire format works in host memory only", name);
    return check_wire(name, o, count, dtype, op);
}

/* ---- telling ---- */

static uint64_t mix(uint64_t x, uint64_t word)
{
    x = (x ^ word) * 0x9e3779b97f4a7c15U;
    return x ^ x >> 32;
}

/* All NaNs count as the same. */
static uint64_t bits_of(double v)
{
    double one = isnan(v) ? (double)NAN : v;
    uint64_t bits;

    memcpy(&bits, &one, sizeof bits);
    return bits;
}

uint64_t dt_reduceoptions_mark(const dt_all_reduce_options_t *o)
{
    bool counting = o->wire == DT_WIRE_2BIT;
    uint64_t x = 0;

    if (counting || o->prescale != 1 || o->postscale != 1) {
        x = mix(mix(mix(0, bits_of(o->prescale)), bits_of(o->postscale)),
                counting ? bits_of((double)o->threshold) : 0);
        x = x >> 8 ? x >> 8 : 1;
    }
    return (uint64_t)o->wire << 56 | x;
}

uint64_t dt_reduceoptions_mark_buffer(uint64_t mark, size_t bytes)
{
    uint64_t x = mix(mark, bytes);

    return BUFFERS | (x >> 8 ? x >> 8 : 1);
}

uint64_t dt_reduceoptions_buffers(uint64_t mark)
{
    return mark & BUFFERS ? BUFFERS | (mark << 8 >> 8) : 0;
}

const char *dt_reduceoptions_describe(uint64_t mark)
{
    uint64_t wire = (mark & ~BUFFERS) >> 56;

    if (wire >= WIRES)
        return " with unknown options";
    if (mark & BUFFERS)
        return wires[wire].text_of_bucket;
    return mark << 8 ? wires[wire].text_with_number : wires[wire].text;
}

/* ---- doing ---- */

static void add_residual(void *out, const void *in, void *residual, size_t count)
{
    const void *src[] = { in, residual };
    struct dt_fold f = { .dst = out, .src = src, .n = 2, .count = count, .divisor = 1 };

    dt_fold(&f, DT_F32, DT_SUM);
    memset(residual, 0, count * sizeof(float));
}

const void *dt_reduceoptions_before(const dt_all_reduce_options_t *o, const void *in, void *out,
                                    size_t count, dt_dtype_t dtype)
{
    if (!count)
        return in;
    if (o->prescale != 1) {
        dt_scale(out, in, count, dtype, o->prescale);
        in = out;
    }
    if (o->residual) {
        add_residual(out, in, o->residual, count);
        in = out;
    }
    return in;
}

void dt_reduceoptions_after(const dt_all_reduce_options_t *o, void *out, size_t count,
                            dt_dtype_t dtype)
{
    if (count && o->postscale != 1)
        dt_scale(out, out, count, dtype, o->postscale);
}
