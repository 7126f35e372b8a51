#include "runtime/gpu/device/stream.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/gpu/device/gate.h"
#include "runtime/gpu/device/life.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/nvidia/cudafail.h"

/* Each time a captured graph ran, it would make calls that the other ranks do not join and that
 * libdtrun would not know of. */
dt_result_t dt_gpu_stream_check_capture(const CUstream *streams, int n, const char *name)
{
    const struct dt_cuda *cuda = dt_cuda();

    for (int i = 0; i < n; i++) {
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        CUresult result = cuda->cuStreamIsCapturing(streams[i], &status);

        if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || status)
            return dt_fail(DT_ERR_UNSUPPORTED,
                           "%s: a graph is being captured, and this call cannot be part of it: "
                           "make it before or after the capture",
                           name);
        if (result)
            return dt_cuda_fail(name, "cuStreamIsCapturing", result);
    }
    return DT_OK;
}

static dt_result_t try_gates(const char *name, const struct dt_gpu_stream *s)
{
    const char *function;
    CUresult result = dt_gpu_gates_try(s->stream, s->life, &function);

    if (result == CUDA_ERROR_NOT_SUPPORTED && strcmp(function, "cuStreamWaitValue32") == 0)
        return dt_fail(DT_ERR_UNSUPPORTED,
                       "%s: device %d has no stream memory operations, which enqueued calls need: "
                       "make calls on the communicator itself",
                       name, s->device);
    return result ? dt_cuda_fail(name, function, result) : DT_OK;
}

/* In the stream's context. */
static dt_result_t find_device_and_try(const char *name, struct dt_gpu_stream *s)
{
    dt_result_t r = dt_gpu_stream_check_capture(&s->stream, 1, name);
    CUresult result;

    if (r != DT_OK)
        return r;
    s->life = dt_gpu_life(s->context);
    result = dt_cuda()->cuCtxGetDevice(&s->device);
    return result ? dt_cuda_fail(name, "cuCtxGetDevice", result) : try_gates(name, s);
}

static dt_result_t find_context_and_try(const char *name, struct dt_gpu_stream *s)
{
    struct dt_cuda_scope scope;
    CUresult result = dt_cuda()->cuStreamGetCtx(s->stream, &s->context);
    dt_result_t r;

    if (result)
        return dt_cuda_fail(name, "cuStreamGetCtx", result);
    result = dt_cuda_enter(&scope, s->context);
    if (result)
        return dt_cuda_fail(name, scope.failed, result);
    r = find_device_and_try(name, s);
    dt_cuda_leave(&scope);
    return r;
}

static bool has_context(void)
{
    CUcontext context = NULL;

    return dt_cuda()->cuCtxGetCurrent(&context) == CUDA_SUCCESS && context;
}

/* Drivers before 12.5 refuse cuStreamGetCtx while the stream is captured, so this asks first. In a
 * thread without a context the driver need not answer before it is in the stream's. */
dt_result_t dt_gpu_stream_find(struct dt_gpu_stream *s, const char *name, void *handle)
{
    dt_result_t r = DT_OK;

    *s = (struct dt_gpu_stream){ .stream = handle ? handle : CU_STREAM_LEGACY };
    if (has_context())
        r = dt_gpu_stream_check_capture(&s->stream, 1, name);
    return r == DT_OK ? find_context_and_try(name, s) : r;
}

dt_result_t dt_gpu_stream_channel(struct dt_gpu_stream *s, const char *name, int channel, int n,
                                  size_t bytes, struct dt_gpu_copies **copies)
{
    struct dt_gpu_copies *own;
    CUresult result;

    if (!s->channels) {
        s->channels = calloc((size_t)n, sizeof *s->channels);
        s->n = n;
    }
    if (!s->channels)
        return dt_fail(DT_ERR_NOMEM, "%s: out of memory", name);
    own = &s->channels[channel];
    result = dt_gpu_copies_open(own, s->context);
    if (result && result != CUDA_ERROR_NOT_READY)
        return dt_cuda_fail(name, own->failed, result);
    dt_gpu_copies_reserve(own, bytes);
    *copies = result ? NULL : own;
    return DT_OK;
}

void dt_gpu_stream_make_missing(struct dt_gpu_stream *s)
{
    if (!dt_gpu_copies_open(s->copies, s->context))
        dt_gpu_copies_reserve(s->copies, 0);
    for (int i = 0; s->channels && i < s->n; i++) {
        if (s->channels[i].wanted && !dt_gpu_copies_open(&s->channels[i], s->context))
            dt_gpu_copies_reserve(&s->channels[i], 0);
    }
}

void dt_gpu_stream_close(struct dt_gpu_stream *s)
{
    for (int i = 0; s->channels && i < s->n; i++)
        dt_gpu_copies_close(&s->channels[i]);
    free(s->channels);
    *s = (struct dt_gpu_stream){ 0 };
}
