#include "runtime/gpu/device/order.h"

#include "runtime/base/error.h"
#include "runtime/gpu/device/stream.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/nvidia/cudafail.h"

/* Stores the thread's current context, or NULL if it has none or has one on another device. */
static CUresult get_current_context(CUdevice device, CUcontext *context, const char **function)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUdevice current = -1;
    CUresult result = cuda->cuCtxGetCurrent(context);

    *function = "cuCtxGetCurrent";
    if (!result && *context) {
        *function = "cuCtxGetDevice";
        result = cuda->cuCtxGetDevice(&current);
    }
    if (current != device)
        *context = NULL;
    return result;
}

struct place { /* of memory */
    CUdevice device;
    CUcontext context; /* that it belongs to; NULL: to none (memory of cuMemCreate) */
};

static dt_result_t find_place(const char *name, const void *ptr, struct place *p)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)ptr;
    CUresult result =
        cuda->cuPointerGetAttribute(&p->device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);

    if (result)
        return dt_cuda_fail(name, "cuPointerGetAttribute", result);
    if (cuda->cuPointerGetAttribute(&p->context, CU_POINTER_ATTRIBUTE_CONTEXT, address))
        p->context = NULL;
    return DT_OK;
}

/* Kernels touch both buffers in one context. */
static dt_result_t combine_places(const char *name, const struct place *in, const struct place *out,
                                  struct place *both)
{
    if (in->device != out->device)
        return dt_fail(DT_ERR_ARG,
                       "%s: in is on device %d, and out on device %d: copy one of them first", name,
                       in->device, out->device);
    if (in->context && out->context && in->context != out->context)
        return dt_fail(DT_ERR_ARG,
                       "%s: in and out belong to different contexts of device %d: copy one of them "
                       "first",
                       name, in->device);
    *both = in->context ? *in : *out;
    return DT_OK;
}

static dt_result_t find_common_place(const char *name, const struct dt_buffer_pair *b,
                                     struct place *p)
{
    struct place in, out;
    dt_result_t r;

    if (!b->in || !b->out || b->in == b->out)
        return find_place(name, b->in ? b->in : b->out, p);
    r = find_place(name, b->in, &in);
    if (r == DT_OK)
        r = find_place(name, b->out, &out);
    return r == DT_OK ? combine_places(name, &in, &out, p) : r;
}

/* For memory that belongs to no context, takes the thread's context. If the thread has none on this
 * device, takes the device's primary context, which the runtime API uses. Like the runtime API,
 * never releases it. */
static dt_result_t find_context(const char *name, const struct place *p, CUcontext *context)
{
    const char *function;
    CUresult result;

    *context = p->context;
    if (*context)
        return DT_OK;
    result = get_current_context(p->device, context, &function);
    if (result)
        return dt_cuda_fail(name, function, result);
    if (!*context)
        result = dt_cuda()->cuDevicePrimaryCtxRetain(context, p->device);
    return result ? dt_cuda_fail(name, "cuDevicePrimaryCtxRetain", result) : DT_OK;
}

static dt_result_t record(const char *name, CUevent *event, CUstream stream)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUresult result = cuda->cuEventCreate(event, CU_EVENT_DISABLE_TIMING);

    if (result)
        return dt_cuda_fail(name, "cuEventCreate", result);
    result = cuda->cuEventRecord(*event, stream);
    return result ? dt_cuda_fail(name, "cuEventRecord", result) : DT_OK;
}

/* `context` is the one that the streams belong to. */
static dt_result_t record_all(struct dt_gpu_order *o, const char *name, CUcontext context,
                              const CUstream *streams, int n)
{
    struct dt_cuda_scope scope;
    CUresult result = dt_cuda_enter(&scope, context);
    dt_result_t r;

    if (result)
        return dt_cuda_fail(name, scope.failed, result);
    r = dt_gpu_stream_check_capture(streams, n, name);
    for (int i = 0; r == DT_OK && i < n; i++)
        r = record(name, &o->events[i], streams[i]);
    dt_cuda_leave(&scope);
    if (r != DT_OK)
        dt_gpu_order_drop(o);
    return r;
}

dt_result_t dt_gpu_order_take(struct dt_gpu_order *o, const char *name,
                              const struct dt_buffer_pair *buffers)
{
    static const CUstream streams[] = { CU_STREAM_LEGACY, CU_STREAM_PER_THREAD };
    dt_result_t r = dt_cuda_check(name);
    CUcontext context;
    struct place p;

    *o = (struct dt_gpu_order){ 0 };
    if (r == DT_OK)
        r = find_common_place(name, buffers, &p);
    if (r == DT_OK)
        r = find_context(name, &p, &context);
    if (r != DT_OK)
        return r;
    *o =
        (struct dt_gpu_order){ .context = context, .device = p.device, .bound = p.context != NULL };
    return record_all(o, name, context, streams, 2);
}

/* Everything that the call needs was made in the stream's context. */
static dt_result_t check_place(const char *name, const struct place *p,
                               const struct dt_gpu_stream *s)
{
    if (p->device != s->device)
        return dt_fail(DT_ERR_ARG, "%s: the buffer is on device %d, but the stream is on device %d",
                       name, p->device, s->device);
    if (!p->context || p->context == s->context)
        return DT_OK;
    return dt_fail(DT_ERR_ARG,
                   "%s: the buffer belongs to another context of device %d than the stream: "
                   "allocate it in the stream's context, or use a stream of the buffer's context",
                   name, p->device);
}

dt_result_t dt_gpu_order_check_on(struct dt_gpu_order *o, const char *name,
                                  const struct dt_buffer_pair *buffers,
                                  const struct dt_gpu_stream *s)
{
    struct place p;
    dt_result_t r;

    *o = (struct dt_gpu_order){ .context = s->context, .device = s->device, .bound = true };
    if (!buffers->in && !buffers->out)
        return DT_OK;
    r = find_common_place(name, buffers, &p);
    return r == DT_OK ? check_place(name, &p, s) : r;
}

dt_result_t dt_gpu_order_take_on(struct dt_gpu_order *o, const char *name,
                                 const struct dt_buffer_pair *buffers,
                                 const struct dt_gpu_stream *s)
{
    dt_result_t r = dt_gpu_order_check_on(o, name, buffers, s);

    return r == DT_OK ? record_all(o, name, s->context, &s->stream, 1) : r;
}

CUresult dt_gpu_order_follow(const struct dt_gpu_order *o, CUstream stream)
{
    CUresult result = CUDA_SUCCESS;

    for (int i = 0; !result && i < DT_GPU_ORDER_EVENTS; i++) {
        if (o->events[i])
            result = dt_cuda()->cuStreamWaitEvent(stream, o->events[i], CU_EVENT_WAIT_DEFAULT);
    }
    return result;
}

dt_result_t dt_gpu_order_await(const struct dt_gpu_order *o,
                               dt_result_t (*await)(void *arg, CUevent event), void *arg)
{
    dt_result_t r = DT_OK;

    for (int i = 0; r == DT_OK && i < DT_GPU_ORDER_EVENTS; i++) {
        if (o->events[i])
            r = await(arg, o->events[i]);
    }
    return r;
}

static void destroy_events(const struct dt_gpu_order *o)
{
    struct dt_cuda_scope scope;

    if (dt_cuda_enter(&scope, o->context))
        return;
    for (int i = 0; i < DT_GPU_ORDER_EVENTS; i++) {
        if (o->events[i])
            dt_cuda()->cuEventDestroy_v2(o->events[i]);
    }
    dt_cuda_leave(&scope);
}

void dt_gpu_order_drop(struct dt_gpu_order *o)
{
    bool any = false;

    for (int i = 0; i < DT_GPU_ORDER_EVENTS; i++)
        any = any || o->events[i];
    if (any)
        destroy_events(o);
    *o = (struct dt_gpu_order){ 0 };
}
