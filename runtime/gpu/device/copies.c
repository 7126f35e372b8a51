#include "runtime/gpu/device/copies.h"

#include <stdlib.h>

#include "runtime/gpu/device/life.h"
#include "runtime/gpu/device/lifelong.h"
#include "runtime/gpu/device/pinned.h"
#include "runtime/gpu/device/provision.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/nvidia/cuda.h"

static CUdeviceptr address(const void *ptr)
{
    return (CUdeviceptr)(uintptr_t)ptr;
}

static void close_in_context(struct dt_gpu_copies *s)
{
    const struct dt_cuda *cuda = dt_cuda();

    for (int i = 0; i < DT_GPU_COPY_SLOTS; i++) {
        if (s->copied[i])
            cuda->cuEventDestroy_v2(s->copied[i]);
    }
    if (s->stream)
        cuda->cuStreamDestroy_v2(s->stream);
}

/* If the program has destroyed the context, that has freed everything. */
void dt_gpu_copies_close(struct dt_gpu_copies *s)
{
    struct dt_cuda_scope scope;

    if (s->life && dt_gpu_enter_life(&scope, s->context, s->life)) {
        close_in_context(s);
        dt_cuda_leave(&scope);
    }
    dt_pinned_release(s);
    *s = (struct dt_gpu_copies){ .next = s->next };
}

static bool is_open_in(const struct dt_gpu_copies *s, CUcontext context, uint64_t life)
{
    return s->stream && s->context == context && s->life == life;
}

static CUresult make_events(struct dt_gpu_copies *s, const char **function)
{
    CUresult result = CUDA_SUCCESS;

    *function = "cuEventCreate";
    for (int i = 0; !result && i < DT_GPU_COPY_SLOTS; i++)
        result = dt_cuda()->cuEventCreate(&s->copied[i], CU_EVENT_DISABLE_TIMING);
    return result;
}

static CUresult open_in_context(struct dt_gpu_copies *s, CUcontext context, uint64_t life)
{
    const char *function;
    CUresult result;

    if (s->stream)
        dt_gpu_copies_close(s);
    s->context = context;
    s->life = life;
    result = dt_cuda_make_stream(&s->stream, &function);
    if (!result)
        result = make_events(s, &function);
    if (result)
        dt_gpu_copies_close(s);
    s->failed = function;
    return result;
}

CUresult dt_gpu_copies_open(struct dt_gpu_copies *s, CUcontext context)
{
    uint64_t life = dt_gpu_life(context);
    CUresult result;

    if (is_open_in(s, context, life))
        return CUDA_SUCCESS;
    if (!dt_gpu_provision_begin())
        return CUDA_ERROR_NOT_READY;
    result = open_in_context(s, context, life);
    dt_gpu_provision_end();
    return result;
}

void dt_gpu_copies_reserve(struct dt_gpu_copies *s, size_t bytes)
{
    if (bytes > s->wanted)
        s->wanted = bytes;
    if (s->wanted && dt_pinned_reserve(s->wanted, s) != CUDA_ERROR_NOT_READY)
        s->wanted = 0;
}

static CUresult record_copied(struct dt_gpu_copies *s, int slot)
{
    s->failed = "cuEventRecord";
    return dt_cuda()->cuEventRecord(s->copied[slot], s->stream);
}

CUresult dt_gpu_copies_fetch(struct dt_gpu_copies *s, int slot, void *host, const void *device,
                             size_t bytes)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUresult result = CUDA_SUCCESS;

    s->failed = "cuMemcpyDtoHAsync";
    if (bytes)
        result = cuda->cuMemcpyDtoHAsync_v2(host, address(device), bytes, s->stream);
    return result ? result : record_copied(s, slot);
}

CUresult dt_gpu_copies_store(struct dt_gpu_copies *s, int slot, void *device, const void *host,
                             size_t bytes)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUresult result = CUDA_SUCCESS;

    s->failed = "cuMemcpyHtoDAsync";
    if (bytes)
        result = cuda->cuMemcpyHtoDAsync_v2(address(device), host, bytes, s->stream);
    return result ? result : record_copied(s, slot);
}

/* ---- the stream that calls share ---- */

static struct dt_gpu_lifelong dti_shared_streams = DT_GPU_LIFELONG;

static CUresult make_shared(void **made, const char **function)
{
    CUstream stream = NULL;
    CUresult result = dt_cuda_make_stream(&stream, function);

    *made = stream;
    return result;
}

static CUresult find_or_make_shared(CUcontext context, uint64_t life, CUstream *stream,
                                    const char **function)
{
    void *made;
    CUresult result =
        dt_gpu_lifelong_get(&dti_shared_streams, context, life, make_shared, &made, function);

    *stream = made;
    return result;
}

CUresult dt_gpu_copies_make_shared(CUcontext context, const char **function)
{
    CUstream stream;

    return find_or_make_shared(context, dt_gpu_life(context), &stream, function);
}

/* A context without such a stream has no view, so no gate holds any of its streams. */
static CUresult share(struct dt_gpu_copies *s, CUcontext context, const char **function)
{
    CUresult result;

    s->context = context;
    s->life = dt_gpu_life(context);
    result = find_or_make_shared(context, s->life, &s->stream, function);
    return result ? result : make_events(s, function);
}

/* Closes all but the stream. */
static void end_sharing(struct dt_gpu_copies *s)
{
    s->stream = NULL;
    dt_gpu_copies_close(s);
}

/* ---- one call ---- */

static CUresult take_host(struct dt_gpu_copying *g, size_t bytes, const void *owner)
{
    g->host = dt_pinned_take(bytes, owner);
    if (g->host)
        return CUDA_SUCCESS;
    g->host = malloc(bytes);
    g->pageable = g->waits = true;
    g->failed = "malloc";
    return g->host ? CUDA_SUCCESS : DT_CUDA_NO_HOST_MEMORY;
}

CUresult dt_gpu_copying_begin(struct dt_gpu_copying *g, struct dt_gpu_copies *s, CUcontext context,
                              size_t bytes)
{
    CUresult result = s ? dt_gpu_copies_open(s, context) : CUDA_ERROR_NOT_READY;

    *g = (struct dt_gpu_copying){ .copies = s, .failed = s ? s->failed : NULL };
    if (result == CUDA_ERROR_NOT_READY) {
        g->copies = &g->sharing;
        g->waits = true;
        result = share(&g->sharing, context, &g->failed);
    }
    if (!result && bytes)
        result = take_host(g, bytes, s ? s : g->copies);
    if (result)
        end_sharing(&g->sharing);
    return result;
}

static void give_host(const struct dt_gpu_copying *g, bool failed)
{
    if (g->pageable)
        free(g->host);
    else
        dt_pinned_give(g->host, !failed);
}

/* If copies may still run, an entry stays in its list, since memory is reserved by the entry's
 * address. Its stream is made again when it is needed. */
bool dt_gpu_copying_end(struct dt_gpu_copying *g, bool failed)
{
    struct dt_gpu_copies *s = g->copies;
    bool over = !failed || dt_gpu_settles(s->stream);

    if (over) {
        give_host(g, failed);
        end_sharing(&g->sharing);
    } else {
        *s = (struct dt_gpu_copies){ .next = s->next, .context = s->context };
    }
    return over;
}

/* ---- lists ---- */

struct dt_gpu_copies *dt_gpu_copies_in(struct dt_gpu_copies **list, CUcontext context)
{
    struct dt_gpu_copies *s = *list;

    while (s && s->context != context)
        s = s->next;
    if (s)
        return s;
    s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->context = context;
    s->next = *list;
    *list = s;
    return s;
}

void dt_gpu_copies_close_all(struct dt_gpu_copies **list)
{
    while (*list) {
        struct dt_gpu_copies *s = *list;

        *list = s->next;
        dt_gpu_copies_close(s);
        free(s);
    }
}
