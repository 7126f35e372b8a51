#include "runtime/gpu/fuse.h"

#include <stdio.h>

#include "runtime/base/reduceoptions.h"
#include "runtime/comm/collective.h"
#include "runtime/gpu/device/life.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/devicecall.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/operation.h"
#include "runtime/kernels/dtype.h"

/* ---- memory ---- */

static void open_in_context(struct dt_gpu_fuse *f, size_t bytes)
{
    const struct dt_cuda *cuda = dt_cuda();
    const char *function;
    CUresult result = dt_cuda_make_stream(&f->stream, &function);

    if (!result)
        result = cuda->cuEventCreate(&f->copied, CU_EVENT_DISABLE_TIMING);
    if (!result)
        result = cuda->cuMemAllocAsync(&f->memory, bytes, f->stream);
    if (result)
        f->memory = 0;
}

void dt_gpu_fuse_open(struct dt_gpu_fuse *f, const struct dt_gpu_order *order, size_t bytes)
{
    struct dt_cuda_scope scope;

    if (f->opened)
        return;
    f->opened = true;
    if (dt_cuda_enter(&scope, order->context))
        return;
    f->life = dt_gpu_life(order->context);
    if (f->life) {
        f->context = order->context;
        f->device = order->device;
        open_in_context(f, bytes);
    }
    dt_cuda_leave(&scope);
}

static void close_in_context(struct dt_gpu_fuse *f)
{
    const struct dt_cuda *cuda = dt_cuda();

    if (f->memory)
        cuda->cuMemFreeAsync(f->memory, f->stream);
    if (f->copied)
        cuda->cuEventDestroy_v2(f->copied);
    if (f->stream)
        cuda->cuStreamDestroy_v2(f->stream);
}

/* If the program has destroyed the context, that has freed everything. */
void dt_gpu_fuse_close(struct dt_gpu_fuse *f)
{
    struct dt_cuda_scope scope;

    if (f->context && dt_gpu_enter_life(&scope, f->context, f->life)) {
        close_in_context(f);
        dt_cuda_leave(&scope);
    }
    *f = (struct dt_gpu_fuse){ 0 };
}

/* The program gets its buffers back, so this waits a moment for copies that may still run. `opened`
 * stays, since the thread that fills the bucket may be reading it. */
static void leak(struct dt_gpu_fuse *f)
{
    (void)dt_gpu_settles(f->stream);
    f->context = NULL;
    f->memory = 0;
    f->fuses = false;
}

/* ---- copies ---- */

/* How many buffers are queued before the host waits. A stream that stands still takes a thousand
 * pieces of work or so, and then blocks the thread that queues more. */
enum { GROUP = 32 };

struct fuse_copies {
    struct dt_gpu_fuse *f;
    bool packs;           /* whether it copies from the buffers to the memory */
    CUdeviceptr memory;   /* of the next buffer */
    const char *function; /* the last function called, for error messages */
};

static size_t bytes_of(const struct dt_operation *part)
{
    return part->count * dt_dtype_size(part->dtype);
}

static CUresult queue_copy(struct fuse_copies *q, const struct dt_operation *part)
{
    CUdeviceptr buffer = (CUdeviceptr)(uintptr_t)part->out, memory = q->memory;
    CUresult result = CUDA_SUCCESS;

    q->memory += bytes_of(part);
    q->function = "cuStreamWaitEvent";
    if (q->packs)
        result = dt_gpu_order_follow(&part->order, q->f->stream);
    if (result)
        return result;
    q->function = "cuMemcpyDtoDAsync";
    return dt_cuda()->cuMemcpyDtoDAsync_v2(q->packs ? memory : buffer, q->packs ? buffer : memory,
                                           bytes_of(part), q->f->stream);
}

static CUresult queue_group(struct fuse_copies *q, const struct dt_operation *parts, size_t n)
{
    CUresult result = CUDA_SUCCESS;

    for (size_t i = 0; !result && i < n; i++)
        result = queue_copy(q, &parts[i]);
    if (result)
        return result;
    q->function = "cuEventRecord";
    return dt_cuda()->cuEventRecord(q->f->copied, q->f->stream);
}

/* Does not wait for the last group. */
static dt_result_t queue_copies(struct dt_comm *c, struct fuse_copies q,
                                const struct dt_operation *parts, size_t n)
{
    dt_result_t r = DT_OK;

    for (size_t i = 0; r == DT_OK && i < n; i += GROUP) {
        size_t left = n - i;
        CUresult result = queue_group(&q, parts + i, left < GROUP ? left : GROUP);

        if (result)
            return dt_gpu_fail(c, q.function, result);
        if (left > GROUP)
            r = dt_gpu_await_event(c, q.f->copied);
    }
    return r;
}

/* ---- the call ---- */

/* The call states the size of each buffer: ranks whose buffers differ in size or order must get an
 * error, even if the totals are equal. */
static struct dt_operation fused_operation(const struct dt_gpu_fuse *f,
                                           const struct dt_operation *parts, size_t n)
{
    struct dt_operation whole = parts[0];

    whole.in = whole.out = (void *)(uintptr_t)f->memory;
    whole.how = (dt_all_reduce_options_t)DT_ALL_REDUCE_OPTIONS_INIT;
    whole.order = (struct dt_gpu_order){
        .context = f->context, .device = f->device, .bound = true, .events = { f->copied }
    };
    whole.unlaunched = parts[n - 1].unlaunched;
    for (size_t i = 1; i < n; i++) {
        whole.count += parts[i].count;
        whole.buffers = dt_reduceoptions_mark_buffer(whole.buffers, bytes_of(&parts[i]));
    }
    return whole;
}

/* Collective. rank is one that lacks the memory. */
static void warn_of_lack(struct dt_comm *c, int rank)
{
    static _Atomic bool warned;
    char name[DT_WORLD_NAME], text[DT_RANK_NOTE_TEXT];

    snprintf(text, sizeof text,
             "warning: %s gets no stream-ordered GPU memory for a bucket: all ranks reduce the "
             "bucket's buffers in GPU memory one by one",
             dt_world_name(c->world, c->ranks[rank], name));
    dt_gpu_warn_once(c, &warned, text);
}

/* In stream order, which waits for nothing. */
static void free_memory(struct dt_gpu_fuse *f)
{
    struct dt_cuda_scope scope;

    if (f->memory && dt_gpu_enter_life(&scope, f->context, f->life)) {
        dt_cuda()->cuMemFreeAsync(f->memory, f->stream);
        dt_cuda_leave(&scope);
    }
    f->memory = 0;
}

/* Collective. Matches the calls first, so that ranks with different calls notice before they wait
 * for each other here. */
static dt_result_t decide(struct dt_comm *c, struct dt_gpu_fuse *f,
                          const struct dt_operation *whole)
{
    int64_t lacks = f->memory ? -1 : c->rank; /* then the last rank that lacks it */
    dt_result_t r;

    if (f->decided)
        return DT_OK;
    r = dt_comm_match(c, DT_CALL_ALL_REDUCE, dt_gpu_call(whole));
    if (r == DT_OK)
        r = dt_comm_all_reduce_words(c, DT_CALL_GPU_CHOICE, &lacks, 1, DT_MAX);
    if (r != DT_OK)
        return r;
    f->decided = true;
    f->fuses = lacks < 0;
    if (!f->fuses) {
        free_memory(f);
        warn_of_lack(c, (int)lacks);
    }
    return DT_OK;
}

static dt_result_t make_each(struct dt_comm *c, const struct dt_operation *parts, size_t n)
{
    dt_result_t r = DT_OK;

    for (size_t i = 0; r == DT_OK && i < n; i++)
        r = dt_gpu_make(c, &parts[i]);
    return r;
}

static dt_result_t make_in_context(struct dt_comm *c, struct dt_gpu_fuse *f,
                                   const struct dt_operation *whole,
                                   const struct dt_operation *parts, size_t n)
{
    struct fuse_copies q = { .f = f, .packs = true, .memory = f->memory };
    dt_result_t r = DT_OK;

    for (size_t i = 0; r == DT_OK && i < n; i++)
        r = dt_gpu_await_gates(c, &parts[i].order, NULL);
    if (r == DT_OK)
        r = queue_copies(c, q, parts, n);
    if (r == DT_OK)
        r = dt_gpu_make(c, whole);
    q.packs = false;
    if (r == DT_OK)
        r = queue_copies(c, q, parts, n);
    return r == DT_OK ? dt_gpu_await_event(c, f->copied) : r;
}

static dt_result_t make_fused(struct dt_comm *c, struct dt_gpu_fuse *f,
                              const struct dt_operation *whole, const struct dt_operation *parts,
                              size_t n)
{
    struct dt_cuda_scope scope;
    CUresult result = dt_gpu_enter_made(&scope, f->context, f->life, NULL);
    dt_result_t r;

    if (result)
        return dt_gpu_fail(c, scope.failed, result);
    r = make_in_context(c, f, whole, parts, n);
    if (r != DT_OK)
        leak(f);
    dt_cuda_leave(&scope);
    return r;
}

/* Between dt_join_begin and dt_join, calls are staged, and ranks without data do not know which are
 * fused. Once c has failed, the memory stays unused, so that it need not be leaked. */
dt_result_t dt_gpu_fuse_make(struct dt_comm *c, struct dt_gpu_fuse *f,
                             const struct dt_operation *parts, size_t n)
{
    struct dt_operation whole;
    dt_result_t r;

    if (c->announce || c->failed != DT_OK)
        return make_each(c, parts, n);
    whole = fused_operation(f, parts, n);
    r = dt_gpu_check_place(c, f->memory ? &whole : parts);
    if (r == DT_OK)
        r = decide(c, f, &whole);
    if (r != DT_OK)
        return r;
    return f->fuses ? make_fused(c, f, &whole, parts, n) : make_each(c, parts, n);
}
