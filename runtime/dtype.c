#include "runtime/dtype.h"

static const struct {
    const char *name;
    unsigned char size;
    bool is_float;
} types[DT_DTYPE_MAX] = {
    [DT_I8] = { "i8", 1, false },    [DT_U8] = { "u8", 1, false },   [DT_I16] = { "i16", 2, false },
    [DT_U16] = { "u16", 2, false },  [DT_I32] = { "i32", 4, false }, [DT_U32] = { "u32", 4, false },
    [DT_I64] = { "i64", 8, false },  [DT_U64] = { "u64", 8, false }, [DT_F16] = { "f16", 2, true },
    [DT_BF16] = { "bf16", 2, true }, [DT_F32] = { "f32", 4, true },  [DT_F64] = { "f64", 8, true },
};

static const char *const ops[DT_OP_MAX] = {
    [DT_SUM] = "sum", [DT_PROD] = "prod", [DT_MIN] = "min", [DT_MAX] = "max",
    [DT_AVG] = "avg", [DT_BAND] = "band", [DT_BOR] = "bor", [DT_BXOR] = "bxor",
};

static bool exists(dt_dtype_t dtype)
{
    return (unsigned)dtype < DT_DTYPE_MAX;
}

size_t dt_dtype_size(dt_dtype_t dtype)
{
    return exists(dtype) ? types[dtype].size : 0;
}

const char *dt_dtype_name(dt_dtype_t dtype)
{
    return exists(dtype) ? types[dtype].name : "?";
}

const char *dt_op_name(dt_op_t op)
{
    return (unsigned)op < DT_OP_MAX ? ops[op] : "?";
}

bool dt_dtype_is_float(dt_dtype_t dtype)
{
    return exists(dtype) && types[dtype].is_float;
}

bool dt_op_applies(dt_op_t op, dt_dtype_t dtype)
{
    return exists(dtype) && (unsigned)op < DT_OP_MAX && (op < DT_BAND || !types[dtype].is_float);
}
