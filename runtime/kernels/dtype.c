#include "runtime/kernels/dtype.h"

const uint8_t dt_dtype_sizes[DT_DTYPE_MAX] = {
    [DT_I8] = 1,  [DT_U8] = 1,  [DT_I16] = 2, [DT_U16] = 2,  [DT_I32] = 4, [DT_U32] = 4,
    [DT_I64] = 8, [DT_U64] = 8, [DT_F16] = 2, [DT_BF16] = 2, [DT_F32] = 4, [DT_F64] = 8,
};

size_t dt_dtype_size(dt_dtype_t dtype)
{
    return (unsigned)dtype < DT_DTYPE_MAX ? dt_dtype_sizes[dtype] : 0;
}

static const char *const types[DT_DTYPE_MAX] = {
    [DT_I8] = "i8",   [DT_U8] = "u8",     [DT_I16] = "i16", [DT_U16] = "u16",
    [DT_I32] = "i32", [DT_U32] = "u32",   [DT_I64] = "i64", [DT_U64] = "u64",
    [DT_F16] = "f16", [DT_BF16] = "bf16", [DT_F32] = "f32", [DT_F64] = "f64",
};

static const char *const ops[DT_OP_MAX] = {
    [DT_SUM] = "sum", [DT_PROD] = "prod", [DT_MIN] = "min",
    [DT_MAX] = "max", [DT_AVG] = "avg",   [DT_BAND] = "band",
    [DT_BOR] = "bor", [DT_BXOR] = "bxor", [DT_ADASUM] = "adasum",
};

const char *dt_dtype_name(dt_dtype_t dtype)
{
    return (unsigned)dtype < DT_DTYPE_MAX ? types[dtype] : "?";
}

const char *dt_op_name(dt_op_t op)
{
    return (unsigned)op < DT_OP_MAX ? ops[op] : "?";
}
