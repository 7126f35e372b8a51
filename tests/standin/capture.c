/* Stream capture: only which calls it forbids.
 *
 * Rules: a capturing stream can be neither waited for nor queried. Either returns
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED and invalidates the capture. While a blocking stream
 * captures, calls on the legacy default stream return ..._IMPLICIT. Unsafe calls are refused while
 * any thread captures in mode GLOBAL, or the calling thread in mode THREAD_LOCAL, unless the
 * calling thread has set its own mode to RELAXED (cuThreadExchangeStreamCaptureMode). Only the
 * thread that began a capture may end it, except in mode RELAXED. */
#include <stdlib.h>

#include "tests/standin/driver.h"

struct CUgraph_st {
    int unused;
};

/* The streams that capture now. None can be destroyed before its capture ends. */
static struct {
    CUstream streams[16];
    int count;
} dti_captures;
static _Thread_local CUstreamCaptureMode dti_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static bool forbids(const struct CUstream_st *stream)
{
    bool own = pthread_equal(stream->capturer, pthread_self());

    if (stream->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL)
        return own || dti_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    return own && stream->capture_mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
}

CUresult standin_unsafe_locked(void)
{
    CUresult result = CUDA_SUCCESS;

    for (int i = 0; i < dti_captures.count; i++)
        if (dti_mode != CU_STREAM_CAPTURE_MODE_RELAXED && forbids(dti_captures.streams[i])) {
            dti_captures.streams[i]->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    return result;
}

/* Whether work on the stream would have to wait for a stream that captures. */
static bool depends_on(const struct CUstream_st *stream, const struct CUstream_st *captures)
{
    return stream->kind == CU_STREAM_LEGACY && captures->context == stream->context &&
           !(captures->flags & CU_STREAM_NON_BLOCKING);
}

CUresult standin_implicit_locked(CUstream stream)
{
    CUresult result = CUDA_SUCCESS;

    for (int i = 0; i < dti_captures.count; i++)
        if (depends_on(stream, dti_captures.streams[i])) {
            dti_captures.streams[i]->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
            result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    return result;
}

static CUresult begin_locked(CUstream handle, CUstreamCaptureMode mode)
{
    CUstream stream;
    CUresult result = standin_stream_locked(handle, &stream);

    if (result)
        return result;
    if (stream->kind == CU_STREAM_LEGACY || dti_captures.count == 16)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture)
        return CUDA_ERROR_INVALID_VALUE;
    stream->capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    stream->capture_mode = mode;
    stream->capturer = pthread_self();
    dti_captures.streams[dti_captures.count++] = stream;
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    CUresult result;

    pthread_mutex_lock(&standin_mutex);
    result = begin_locked(stream, mode);
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

static void forget_locked(CUstream stream)
{
    for (int i = 0; i < dti_captures.count; i++)
        if (dti_captures.streams[i] == stream)
            dti_captures.streams[i] = dti_captures.streams[--dti_captures.count];
}

static CUresult end_locked(CUstream handle, CUgraph *graph)
{
    CUstream stream;
    CUresult result = standin_stream_locked(handle, &stream);
    CUstreamCaptureStatus capture;

    if (result)
        return result;
    capture = stream->capture;
    if (!capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (stream->capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        !pthread_equal(stream->capturer, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    stream->capture = CU_STREAM_CAPTURE_STATUS_NONE;
    forget_locked(stream);
    if (capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    *graph = calloc(1, sizeof(**graph));
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    CUresult result;

    *graph = NULL;
    pthread_mutex_lock(&standin_mutex);
    result = end_locked(stream, graph);
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

/* Asking is not a use of the stream, so it does not invalidate the capture. */
CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    CUstream stream;
    CUresult result;

    pthread_mutex_lock(&standin_mutex);
    result = standin_stream_locked(handle, &stream);
    for (int i = 0; !result && i < dti_captures.count; i++)
        if (depends_on(stream, dti_captures.streams[i]))
            result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (!result)
        *status = stream->capture;
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = dti_mode;
    CUresult result = standin_refused(__func__);

    if (result)
        return result;
    dti_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    free(graph);
    return CUDA_SUCCESS;
}
