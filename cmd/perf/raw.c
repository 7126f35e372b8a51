#include "cmd/perf/raw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/nvidia/ncclapi.h"
#include "runtime/kernels/dtype.h"

static struct {
    const struct dt_ncclapi *nccl;
    ncclComm_t comm;
    CUstream stream;
} dti_raw;

static const int types[DT_DTYPE_MAX] = {
    [DT_I8] = ncclInt8,     [DT_U8] = ncclUint8,
    [DT_I16] = -1,          [DT_U16] = -1,
    [DT_I32] = ncclInt32,   [DT_U32] = ncclUint32,
    [DT_I64] = ncclInt64,   [DT_U64] = ncclUint64,
    [DT_F16] = ncclFloat16, [DT_BF16] = ncclBfloat16,
    [DT_F32] = ncclFloat32, [DT_F64] = ncclFloat64,
};

static bool find_op(dt_op_t op, ncclRedOp_t *found)
{
    static const struct {
        dt_op_t ours;
        ncclRedOp_t nccl;
    } ops[] = { { DT_SUM, ncclSum },
                { DT_PROD, ncclProd },
                { DT_MIN, ncclMin },
                { DT_MAX, ncclMax },
                { DT_AVG, ncclAvg } };

    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        *found = ops[i].nccl;
        if (ops[i].ours == op)
            return true;
    }
    return false;
}

bool dt_perf_raw_combines(const struct dt_perf_op *op, const struct dt_perf_case *c)
{
    ncclRedOp_t found;

    return types[c->dtype] >= 0 && (!op->reduces || find_op(c->op, &found));
}

/* A communicator that has failed cannot be used, and peers wait in it, so all that is left is to
 * exit. */
static _Noreturn void fail_nccl(const char *call, ncclResult_t result)
{
    fprintf(stderr, "dtrun-perf: %s: %s (%s)\n", call, dti_raw.nccl->ncclGetErrorString(result),
            dti_raw.nccl->ncclGetLastError(NULL));
    exit(1);
}

static dt_result_t finish_call(const char *call, ncclResult_t result)
{
    char text[DT_CUDA_TEXT];
    CUresult waited;

    if (result)
        fail_nccl(call, result);
    waited = dt_cuda()->cuStreamSynchronize(dti_raw.stream);
    if (!waited)
        return DT_OK;
    fprintf(stderr, "dtrun-perf: %s: %s\n", call,
            dt_cuda_describe("cuStreamSynchronize", waited, text));
    exit(1);
}

static ncclRedOp_t op_of(const struct dt_perf_case *c)
{
    ncclRedOp_t op;

    find_op(c->op, &op);
    return op;
}

#define NCCL(function, ...)                                                                        \
    finish_call(#function, dti_raw.nccl->function(__VA_ARGS__, dti_raw.comm, dti_raw.stream))
#define TYPE(c) ((ncclDataType_t)types[(c)->dtype])

static dt_result_t all_reduce(const struct dt_perf_case *c, const void *in, void *out, size_t count)
{
    return NCCL(ncclAllReduce, in, out, count, TYPE(c), op_of(c));
}

static dt_result_t reduce(const struct dt_perf_case *c, const void *in, void *out, size_t count)
{
    return NCCL(ncclReduce, in, out, count, TYPE(c), op_of(c), c->root);
}

static dt_result_t broadcast(const struct dt_perf_case *c, const void *in, void *out, size_t count)
{
    return NCCL(ncclBroadcast, in, out, count, TYPE(c), c->root);
}

static dt_result_t all_gather(const struct dt_perf_case *c, const void *in, void *out, size_t count)
{
    return NCCL(ncclAllGather, in, out, count, TYPE(c));
}

static dt_result_t reduce_scatter(const struct dt_perf_case *c, const void *in, void *out,
                                  size_t count)
{
    return NCCL(ncclReduceScatter, in, out, count, TYPE(c), op_of(c));
}

bool dt_perf_raw_find(struct dt_perf_op *raw, const struct dt_perf_op *op)
{
    static const struct {
        const char *name;
        dt_result_t (*run)(const struct dt_perf_case *c, const void *in, void *out, size_t count);
    } calls[] = { { "all_reduce", all_reduce },
                  { "reduce", reduce },
                  { "broadcast", broadcast },
                  { "all_gather", all_gather },
                  { "reduce_scatter", reduce_scatter } };

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        *raw = *op;
        raw->run = calls[i].run;
        if (strcmp(op->name, calls[i].name) == 0)
            return true;
    }
    return false;
}

/* If one rank is not ready, the others must not wait for it in NCCL. */
static bool all_ready(bool ready)
{
    uint8_t all = ready;

    return dt_all_reduce(DT_WORLD, DT_IN_PLACE, &all, 1, DT_U8, DT_MIN) == DT_OK && all;
}

bool dt_perf_raw_open(char text[DT_PERF_RAW_TEXT])
{
    const char *why = "";
    ncclUniqueId id;
    ncclResult_t result = ncclSuccess;

    *text = '\0';
    dti_raw.nccl = dt_ncclapi(&why);
    if (!dti_raw.nccl)
        snprintf(text, DT_PERF_RAW_TEXT, "--raw: %s", why);
    else if (dt_rank() == 0 && (result = dti_raw.nccl->ncclGetUniqueId(&id)))
        snprintf(text, DT_PERF_RAW_TEXT, "--raw: ncclGetUniqueId: %s",
                 dti_raw.nccl->ncclGetErrorString(result));
    else if (dt_cuda()->cuStreamCreate(&dti_raw.stream, CU_STREAM_NON_BLOCKING))
        snprintf(text, DT_PERF_RAW_TEXT, "--raw: cuStreamCreate failed");
    if (!all_ready(*text == '\0') || dt_broadcast(DT_WORLD, &id, sizeof id, DT_U8, 0) != DT_OK)
        return false;
    result = dti_raw.nccl->ncclCommInitRank(&dti_raw.comm, dt_size(), id, dt_rank());
    if (result)
        snprintf(text, DT_PERF_RAW_TEXT, "--raw: ncclCommInitRank: %s (%s)",
                 dti_raw.nccl->ncclGetErrorString(result), dti_raw.nccl->ncclGetLastError(NULL));
    return all_ready(!result);
}

void dt_perf_raw_close(void)
{
    if (!dti_raw.comm)
        return;
    dti_raw.nccl->ncclCommDestroy(dti_raw.comm);
    dt_cuda()->cuStreamDestroy_v2(dti_raw.stream);
}
