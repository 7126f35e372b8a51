#include "runtime/gpu/ncclcalls.h"

#include <math.h>
#include <stdint.h>

#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/operation.h"
#include "runtime/kernels/dtype.h"

enum { NONE = -1 };

/* NCCL has no 16-bit integers and no bitwise operations. */
static const int types[DT_DTYPE_MAX] = {
    [DT_I8] = ncclInt8,       [DT_U8] = ncclUint8,    [DT_I16] = NONE,
    [DT_U16] = NONE,          [DT_I32] = ncclInt32,   [DT_U32] = ncclUint32,
    [DT_I64] = ncclInt64,     [DT_U64] = ncclUint64,  [DT_F16] = ncclFloat16,
    [DT_BF16] = ncclBfloat16, [DT_F32] = ncclFloat32, [DT_F64] = ncclFloat64,
};

static const int ops[DT_OP_MAX] = {
    [DT_SUM] = ncclSum, [DT_PROD] = ncclProd, [DT_MIN] = ncclMin,
    [DT_MAX] = ncclMax, [DT_AVG] = ncclAvg,   [DT_BAND] = NONE,
    [DT_BOR] = NONE,    [DT_BXOR] = NONE,     [DT_ADASUM] = NONE,
};

/* ---- factors ---- */

/* The factor for every input, so that the sum is what the options ask for. */
static double factor_of(const struct dt_operation *o, int size)
{
    double factor = o->how.prescale * o->how.postscale;

    return o->op == DT_AVG ? factor / size : factor;
}

static bool has_factor(const struct dt_operation *o)
{
    return o->how.size && o->how.prescale * o->how.postscale != 1;
}

/* A 16-bit factor would be rounded, and with it all results, unless it is a power of two that both
 * 16-bit types can represent. */
static bool is_exact_in_16_bits(double factor)
{
    int exponent;

    return frexp(factor, &exponent) == 0.5 && exponent > -13 && exponent < 16;
}

static bool serves_factor(const struct dt_operation *o, int size)
{
    if (o->op != DT_SUM && o->op != DT_AVG)
        return false;
    return dt_dtype_size(o->dtype) > 2 || is_exact_in_16_bits(factor_of(o, size));
}

union scalar {
    uint16_t u16;
    float f32;
    double f64;
};

/* A factor of 16 bits is a power of two (is_exact_in_16_bits): only its exponent has bits. */
static union scalar scalar_of(double factor, dt_dtype_t dtype)
{
    int exponent;

    frexp(factor, &exponent);
    switch (dtype) {
    case DT_F16:
        return (union scalar){ .u16 = (uint16_t)((exponent - 1 + 15) << 10) };
    case DT_BF16:
        return (union scalar){ .u16 = (uint16_t)((exponent - 1 + 127) << 7) };
    case DT_F32:
        return (union scalar){ .f32 = (float)factor };
    default:
        return (union scalar){ .f64 = factor };
    }
}

/* ---- what NCCL supports ---- */

static bool serves_fold(const struct dt_operation *o)
{
    return types[o->dtype] != NONE && ops[o->op] != NONE;
}

bool dt_ncclcalls_serves(const struct dt_operation *o, int size)
{
    switch (o->kind->call) {
    case DT_CALL_ALL_REDUCE:
        if (o->how.size && o->how.wire != DT_WIRE_EXACT)
            return false;
        return serves_fold(o) && (!has_factor(o) || serves_factor(o, size));
    case DT_CALL_REDUCE:
    case DT_CALL_REDUCE_SCATTER:
        return serves_fold(o);
    case DT_CALL_BROADCAST:
    case DT_CALL_ALL_GATHER:
    case DT_CALL_ALL_TO_ALL:
        return true;
    default:
        return false;
    }
}

/* ---- the calls ---- */

/* In NCCL's reduce-scatter in place, a rank's result replaces the rank's own block. NCCL does not
 * define other calls whose buffers overlap. */
static void *result_of_scatter(const struct dt_ncclcall *n, const struct dt_operation *o)
{
    size_t block = o->count * dt_dtype_size(o->dtype);

    return (uint8_t *)o->out + (o->in == o->out ? (size_t)n->rank * block : 0);
}

static ncclResult_t make_fold(struct dt_ncclcall *n, const struct dt_ncclapi *api,
                              const struct dt_operation *o, ncclRedOp_t op)
{
    ncclDataType_t type = (ncclDataType_t)types[o->dtype];

    switch (o->kind->call) {
    case DT_CALL_REDUCE:
        n->name = "ncclReduce";
        return api->ncclReduce(o->in, o->out, o->count, type, op, o->root, n->comm, n->stream);
    case DT_CALL_REDUCE_SCATTER:
        n->name = "ncclReduceScatter";
        return api->ncclReduceScatter(o->in, result_of_scatter(n, o), o->count, type, op, n->comm,
                                      n->stream);
    default:
        n->name = "ncclAllReduce";
        return api->ncclAllReduce(o->in, o->out, o->count, type, op, n->comm, n->stream);
    }
}

static ncclResult_t fold(struct dt_ncclcall *n, const struct dt_ncclapi *api,
                         const struct dt_operation *o)
{
    ncclRedOp_t op = (ncclRedOp_t)ops[o->op];
    union scalar scalar;
    ncclResult_t r, freed;

    if (!has_factor(o))
        return make_fold(n, api, o, op);
    scalar = scalar_of(factor_of(o, n->size), o->dtype);
    n->name = "ncclRedOpCreatePreMulSum";
    r = api->ncclRedOpCreatePreMulSum(&op, &scalar, (ncclDataType_t)types[o->dtype],
                                      ncclScalarHostImmediate, n->comm);
    if (dt_nccl_failed(r))
        return r;
    r = make_fold(n, api, o, op);
    freed = api->ncclRedOpDestroy(op, n->comm);
    if (dt_nccl_failed(r) || !dt_nccl_failed(freed))
        return r;
    n->name = "ncclRedOpDestroy";
    return freed;
}

/* Copies bytes, so NCCL need not know the type. */
static ncclResult_t pass_blocks(struct dt_ncclcall *n, const struct dt_ncclapi *api,
                                const struct dt_operation *o)
{
    size_t bytes = o->given.each * dt_dtype_size(o->dtype);
    const uint8_t *in = o->in;
    uint8_t *out = o->out;
    ncclResult_t r = ncclSuccess;

    for (int peer = 0; !dt_nccl_failed(r) && peer < n->size; peer++) {
        n->name = "ncclSend";
        r = api->ncclSend(in + (size_t)peer * bytes, bytes, ncclUint8, peer, n->comm, n->stream);
        if (dt_nccl_failed(r))
            break;
        n->name = "ncclRecv";
        r = api->ncclRecv(out + (size_t)peer * bytes, bytes, ncclUint8, peer, n->comm, n->stream);
    }
    return r;
}

static ncclResult_t pass_in_group(struct dt_ncclcall *n, const struct dt_ncclapi *api,
                                  const struct dt_operation *o)
{
    ncclResult_t r = api->ncclGroupStart(), ended;

    n->name = "ncclGroupStart";
    if (dt_nccl_failed(r))
        return r;
    r = pass_blocks(n, api, o);
    ended = api->ncclGroupEnd();
    if (dt_nccl_failed(r))
        return r;
    n->name = "ncclGroupEnd (ncclSend, ncclRecv)";
    return ended;
}

static ncclResult_t broadcast(struct dt_ncclcall *n, const struct dt_ncclapi *api,
                              const struct dt_operation *o)
{
    size_t bytes = o->count * dt_dtype_size(o->dtype);

    n->name = "ncclBroadcast";
    return api->ncclBroadcast(o->out, o->out, bytes, ncclUint8, o->root, n->comm, n->stream);
}

static ncclResult_t all_gather(struct dt_ncclcall *n, const struct dt_ncclapi *api,
                               const struct dt_operation *o)
{
    size_t bytes = o->taken.each * dt_dtype_size(o->dtype);

    n->name = "ncclAllGather";
    return api->ncclAllGather(o->in, o->out, bytes, ncclUint8, n->comm, n->stream);
}

ncclResult_t dt_ncclcalls_queue(struct dt_ncclcall *n, const struct dt_operation *o)
{
    const struct dt_ncclapi *api = dt_nccl();

    switch (o->kind->call) {
    case DT_CALL_BROADCAST:
        return broadcast(n, api, o);
    case DT_CALL_ALL_GATHER:
        return all_gather(n, api, o);
    case DT_CALL_ALL_TO_ALL:
        return pass_in_group(n, api, o);
    default:
        return fold(n, api, o);
    }
}

CUresult dt_ncclcalls_finish(const struct dt_ncclcall *n, const struct dt_operation *o)
{
    const uint8_t *result;

    if (o->kind->call != DT_CALL_REDUCE_SCATTER || !o->count)
        return CUDA_SUCCESS;
    result = result_of_scatter(n, o);
    if (result == o->out)
        return CUDA_SUCCESS;
    return dt_cuda()->cuMemcpyDtoDAsync_v2((CUdeviceptr)(uintptr_t)o->out,
                                           (CUdeviceptr)(uintptr_t)result,
                                           o->count * dt_dtype_size(o->dtype), n->stream);
}
