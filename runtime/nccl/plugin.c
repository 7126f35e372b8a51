/* libdtrun-nccl.so: the backend for device memory, over NCCL. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/dtype.h"
#include "runtime/nccl/comm.h"
#include "runtime/nccl/error.h"

#define INIT_TIMEOUT_ENV     "DTRUN_NCCL_INIT_TIMEOUT"
#define INIT_TIMEOUT_SECONDS 120
#define INIT_TIMEOUT_MOST    86400

static dt_result_t init_timeout(const struct dt_device_host *host, int *ms)
{
    const char *text = getenv(INIT_TIMEOUT_ENV);
    char *end;
    long seconds;

    *ms = INIT_TIMEOUT_SECONDS * 1000;
    if (!text || !*text)
        return DT_OK;
    seconds = strtol(text, &end, 10);
    if (*end || seconds < 1 || seconds > INIT_TIMEOUT_MOST)
        return dt_nccl_fail(host, DT_ERR_ARG, "%s=%s: seconds from 1 to %d were expected",
                            INIT_TIMEOUT_ENV, text, INIT_TIMEOUT_MOST);
    *ms = (int)seconds * 1000;
    return DT_OK;
}

static dt_result_t probe(const struct dt_device_host *host, const void *ptr, int *device)
{
    struct cudaPointerAttributes attributes;
    const char *blocking = getenv("NCCL_COMM_BLOCKING");
    int devices = 0, timeout_ms;
    cudaError_t error = cudaGetDeviceCount(&devices);

    if (error != cudaSuccess)
        return dt_nccl_cuda_error(host, "cudaGetDeviceCount", error);
    if (devices == 0)
        return dt_nccl_fail(host, DT_ERR_CUDA, "CUDA sees no device (CUDA_VISIBLE_DEVICES=%s)",
                            getenv("CUDA_VISIBLE_DEVICES") ? getenv("CUDA_VISIBLE_DEVICES") : "");
    if (blocking && atoi(blocking) == 1)
        return dt_nccl_fail(
            host, DT_ERR_NCCL,
            "NCCL_COMM_BLOCKING=1 makes NCCL wait for ever for a lost rank; unset it");
    if ((error = cudaPointerGetAttributes(&attributes, ptr)) != cudaSuccess)
        return dt_nccl_cuda_error(host, "cudaPointerGetAttributes", error);
    if (attributes.type != cudaMemoryTypeDevice)
        return dt_nccl_fail(host, DT_ERR_ARG, "%p is not device memory", ptr);
    *device = attributes.device;
    return init_timeout(host, &timeout_ms);
}

/* Makes device current for one call and says which was before, for leave. */
static dt_result_t enter(const struct dt_device_host *host, int device, int *before)
{
    cudaError_t error = cudaGetDevice(before);

    if (error == cudaSuccess)
        error = cudaSetDevice(device);
    return error == cudaSuccess ? DT_OK : dt_nccl_cuda_error(host, "cudaSetDevice", error);
}

static void leave(int before)
{
    cudaSetDevice(before);
}

static dt_result_t open_all(const struct dt_device_host *host, int device, void **state)
{
    struct dt_nccl *n = NULL;
    int timeout_ms, before;
    dt_result_t result = init_timeout(host, &timeout_ms);

    if (result == DT_OK)
        result = enter(host, device, &before);
    if (result != DT_OK)
        return result;
    result = dt_nccl_connect(host, device, timeout_ms, &n);
    leave(before);
    *state = n;
    return result;
}

static dt_result_t check_pointer(const struct dt_nccl *n, const char *name, const void *ptr)
{
    struct cudaPointerAttributes a;
    cudaError_t error = cudaPointerGetAttributes(&a, ptr);

    if (error != cudaSuccess)
        return dt_nccl_cuda_error(n->host, "cudaPointerGetAttributes", error);
    if (a.type != cudaMemoryTypeDevice)
        return dt_nccl_fail(n->host, DT_ERR_ARG,
                            "\"%s\" is not device memory, but the other buffer is: use one kind",
                            name);
    if (a.device != n->device)
        return dt_nccl_fail(
            n->host, DT_ERR_ARG,
            "\"%s\" is on device %d, but this rank's first collective was on device %d", name,
            a.device, n->device);
    return DT_OK;
}

/* What every call on an open communicator begins with. */
static dt_result_t begin(struct dt_nccl *n, const char *call, int *before)
{
    if (n->failed != DT_OK)
        return dt_nccl_fail(n->host, n->failed,
                            "%s: the communicator was given up after an earlier failure", call);
    return enter(n->host, n->device, before);
}

/* NCCL has no 16-bit integers, and folds no bits. */
static const ncclDataType_t types[DT_DTYPE_MAX] = {
    [DT_I8] = ncclInt8,       [DT_U8] = ncclUint8,    [DT_I16] = ncclNumTypes,
    [DT_U16] = ncclNumTypes,  [DT_I32] = ncclInt32,   [DT_U32] = ncclUint32,
    [DT_I64] = ncclInt64,     [DT_U64] = ncclUint64,  [DT_F16] = ncclFloat16,
    [DT_BF16] = ncclBfloat16, [DT_F32] = ncclFloat32, [DT_F64] = ncclFloat64,
};

static const ncclRedOp_t ops[DT_FOLD_MAX] = {
    [DT_SUM] = ncclSum, [DT_PROD] = ncclProd,   [DT_MIN] = ncclMin,    [DT_MAX] = ncclMax,
    [DT_AVG] = ncclAvg, [DT_BAND] = ncclNumOps, [DT_BOR] = ncclNumOps, [DT_BXOR] = ncclNumOps,
};

static dt_result_t check_supported(const struct dt_nccl *n, dt_dtype_t dtype, dt_op_t op)
{
    if (types[dtype] != ncclNumTypes && ops[op] != ncclNumOps)
        return DT_OK;
    return dt_nccl_fail(n->host, DT_ERR_UNSUPPORTED,
                        "NCCL has no all-reduce of %s with %s; copy the data to host memory",
                        dt_dtype_name(dtype), dt_op_name(op));
}

static dt_result_t all_reduce(void *state, const void *in, void *out, size_t count,
                              dt_dtype_t dtype, dt_op_t op)
{
    struct dt_nccl *n = state;
    dt_result_t result;
    int before;

    if ((result = check_supported(n, dtype, op)) != DT_OK ||
        (result = check_pointer(n, "in", in)) != DT_OK ||
        (result = check_pointer(n, "out", out)) != DT_OK ||
        (result = begin(n, "ncclAllReduce", &before)) != DT_OK)
        return result;
    result = dt_nccl_wait(n, "ncclAllReduce",
                          ncclAllReduce(in, out, count, types[dtype], ops[op], n->comm, n->stream));
    leave(before);
    return result;
}

/* In bytes: NCCL need not know the type to copy it. */
static dt_result_t broadcast(void *state, void *buf, size_t count, dt_dtype_t dtype, int root)
{
    struct dt_nccl *n = state;
    dt_result_t result;
    int before;

    if ((result = check_pointer(n, "buf", buf)) != DT_OK ||
        (result = begin(n, "ncclBroadcast", &before)) != DT_OK)
        return result;
    result = dt_nccl_wait(
        n, "ncclBroadcast",
        ncclBroadcast(buf, buf, count * dt_dtype_size(dtype), ncclUint8, root, n->comm, n->stream));
    leave(before);
    return result;
}

static dt_result_t barrier(void *state)
{
    struct dt_nccl *n = state;
    dt_result_t result;
    int before;

    if ((result = begin(n, "barrier", &before)) != DT_OK)
        return result;
    result =
        dt_nccl_wait(n, "barrier (ncclAllReduce)",
                     ncclAllReduce(n->token, n->token, 1, ncclInt32, ncclSum, n->comm, n->stream));
    leave(before);
    return result;
}

static void close_all(void *state)
{
    dt_nccl_disconnect(state);
}

static const struct dt_device_ops dti_ops = {
    .abi = DT_DEVICE_ABI,
    .probe = probe,
    .open = open_all,
    .all_reduce = all_reduce,
    .broadcast = broadcast,
    .barrier = barrier,
    .close = close_all,
};

DT_API const struct dt_device_ops *dti_device_plugin(void);

const struct dt_device_ops *dti_device_plugin(void)
{
    return &dti_ops;
}
