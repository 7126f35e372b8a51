#include "runtime/gpu/order.h"

#include "runtime/base/error.h"
#include "runtime/gpu/cuda.h"

static dt_result_t fail(const char *name, const char *function, CUresult error)
{
    char text[DT_CUDA_TEXT];

    return dt_fail(DT_ERR_CUDA, "%s: %s", name, dt_cuda_describe(function, error, text));
}

static CUresult current_on(CUdevice device, CUcontext *context)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUdevice current = -1;
    CUresult result = cuda->cuCtxGetCurrent(context);

    if (!result && *context)
        result = cuda->cuCtxGetDevice(&current);
    if (current != device)
        *context = NULL;
    return result;
}

/* The context that the memory belongs to. Memory of cuMemCreate belongs to none: then it is the
 * thread's, or the device's primary one, which the runtime API uses and never gives back. */
static CUresult find_context(const void *ptr, struct dt_gpu_order *o)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)ptr;
    CUresult result;

    result = cuda->cuPointerGetAttribute(&o->device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    if (result)
        return result;
    if (cuda->cuPointerGetAttribute(&o->context, CU_POINTER_ATTRIBUTE_CONTEXT, address))
        o->context = NULL;
    if (!o->context)
        result = current_on(o->device, &o->context);
    if (!result && !o->context)
        result = cuda->cuDevicePrimaryCtxRetain(&o->context, o->device);
    return result;
}

/* A call that is to be done when it returns cannot become part of a graph. */
static dt_result_t check_capture(const char *name)
{
    static const CUstream streams[] = { CU_STREAM_LEGACY, CU_STREAM_PER_THREAD };
    const struct dt_cuda *cuda = dt_cuda();

    for (int i = 0; i < 2; i++) {
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        CUresult result = cuda->cuStreamIsCapturing(streams[i], &status);

        if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || status)
            return dt_fail(DT_ERR_UNSUPPORTED,
                           "%s: a graph is being captured, of which this call cannot be a part: "
                           "make it before or after the capture",
                           name);
        if (result)
            return fail(name, "cuStreamIsCapturing", result);
    }
    return DT_OK;
}

static CUresult record(CUevent *event, CUstream stream)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUresult result = cuda->cuEventCreate(event, CU_EVENT_DISABLE_TIMING);

    return result ? result : cuda->cuEventRecord(*event, stream);
}

static dt_result_t record_both(struct dt_gpu_order *o, const char *name)
{
    struct dt_cuda_scope scope;
    CUresult result = dt_cuda_enter(&scope, o->context);
    dt_result_t r;

    if (result)
        return fail(name, "cuCtxPushCurrent", result);
    r = check_capture(name);
    if (r == DT_OK) {
        result = record(&o->legacy, CU_STREAM_LEGACY);
        if (!result)
            result = record(&o->own, CU_STREAM_PER_THREAD);
    }
    dt_cuda_leave(&scope);
    return result ? fail(name, "cuEventRecord", result) : r;
}

dt_result_t dt_gpu_order_take(struct dt_gpu_order *o, const char *name, const void *ptr)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUresult result;
    dt_result_t r;

    *o = (struct dt_gpu_order){ 0 };
    if (cuda->lacks)
        return dt_fail(DT_ERR_CUDA, "%s: the CUDA driver lacks %s: CUDA 12 or newer is needed",
                       name, cuda->lacks);
    result = find_context(ptr, o);
    if (result)
        return fail(name, "cuPointerGetAttribute", result);
    r = record_both(o, name);
    if (r != DT_OK)
        dt_gpu_order_drop(o);
    return r;
}

CUresult dt_gpu_order_follow(const struct dt_gpu_order *o, CUstream stream)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUresult result = cuda->cuStreamWaitEvent(stream, o->legacy, CU_EVENT_WAIT_DEFAULT);

    return result ? result : cuda->cuStreamWaitEvent(stream, o->own, CU_EVENT_WAIT_DEFAULT);
}

void dt_gpu_order_drop(struct dt_gpu_order *o)
{
    if (o->legacy)
        dt_cuda()->cuEventDestroy_v2(o->legacy);
    if (o->own)
        dt_cuda()->cuEventDestroy_v2(o->own);
    *o = (struct dt_gpu_order){ 0 };
}
