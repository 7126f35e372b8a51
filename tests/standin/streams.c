/* Streams: each has a thread that does its work in order, and knows what its work waits for.
 *
 * Rules ("Stream synchronization behavior" of the driver API): work in the legacy default stream
 * waits for the work that all blocking streams of the context already hold, and their work waits
 * for the legacy stream's. The per-thread default stream is a blocking one. A
 * CU_STREAM_NON_BLOCKING stream takes part in none of this. cuStreamDestroy returns at once, and
 * the stream ends when its work is done. cuStreamGetCtx needs no context for a stream that was
 * created; as in drivers before 12.5, it is refused while the stream is captured.
 *
 * STANDIN_DELAY_US delays the start of each piece of work, so that code which forgets to wait reads
 * data that is not there yet. With STANDIN_CONNECTIONS=n the streams that have a priority share n
 * hardware queues, as with CUDA_DEVICE_MAX_CONNECTIONS: a queue does the work of all its streams in
 * the order in which it was added. STANDIN_STERN=1 makes calls that make streams, pin memory, load
 * kernels or map memory wait for all work of the context, as some drivers do. With STANDIN_QUEUE=n
 * a stream queues at most n pieces of work. A thread that adds another waits in the driver, and so
 * does every other thread that calls it. With STANDIN_LAZY=1 a thread that loads a kernel waits for
 * all work of the context, and every other thread that calls the driver waits, too
 * (meta-pytorch/torchcomms#2334, NVIDIA/nvbench#136), unless CUDA_MODULE_LOADING is EAGER. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/standin/driver.h"

enum { MAX_CAUSES = 64 };

struct mark {
    unsigned references;
    bool done;
    double time; /* when it was done, in milliseconds */
};

struct work {
    struct work *next;
    CUhostFn function;
    void *data;
    struct mark *done, *causes[MAX_CAUSES];
    int cause_count;
};

struct mark *standin_keep_locked(struct mark *mark)
{
    if (mark)
        mark->references++;
    return mark;
}

void standin_drop_locked(struct mark *mark)
{
    if (mark && --mark->references == 0)
        free(mark);
}

bool standin_done_locked(const struct mark *mark)
{
    return !mark || mark->done;
}

double standin_time_locked(const struct mark *mark)
{
    return mark ? mark->time : 0;
}

void standin_await_locked(struct mark *mark)
{
    standin_keep_locked(mark);
    while (!standin_done_locked(mark))
        pthread_cond_wait(&standin_changed, &standin_mutex);
    standin_drop_locked(mark);
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void await_causes_locked(struct work *work)
{
    for (int i = 0; i < work->cause_count; i++) {
        standin_await_locked(work->causes[i]);
        standin_drop_locked(work->causes[i]);
    }
}

static void do_work(struct work *work)
{
    long delay = standin_setting("STANDIN_DELAY_US", 0);

    if (delay > 0)
        usleep((useconds_t)delay);
    if (work->function)
        work->function(work->data);
    free(work->data);
}

static void *stream_thread(void *data)
{
    CUstream stream = data;

    pthread_mutex_lock(&standin_mutex);
    while (stream->first || !stream->destroyed) {
        struct work *work = stream->first;

        if (!work) {
            pthread_cond_wait(&stream->wake, &standin_mutex);
            continue;
        }
        await_causes_locked(work);
        pthread_mutex_unlock(&standin_mutex);
        do_work(work);
        pthread_mutex_lock(&standin_mutex);
        stream->queued--;
        work->done->done = true;
        work->done->time = now();
        standin_drop_locked(work->done);
        if (!(stream->first = work->next))
            stream->end = &stream->first;
        free(work);
        pthread_cond_broadcast(&standin_changed);
    }
    standin_drop_locked(stream->last);
    pthread_mutex_unlock(&standin_mutex);
    free(stream);
    return NULL;
}

static void start_thread_locked(CUstream stream)
{
    pthread_attr_t detached;
    pthread_t thread;

    if (stream->has_thread)
        return;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &detached, stream_thread, stream) != 0)
        abort();
    pthread_attr_destroy(&detached);
    stream->has_thread = true;
}

static void add_cause_locked(struct work *work, struct mark *cause)
{
    if (standin_done_locked(cause))
        return;
    if (work->cause_count == MAX_CAUSES)
        abort();
    work->causes[work->cause_count++] = standin_keep_locked(cause);
}

static bool is_blocking(const struct CUstream_st *stream)
{
    return !(stream->flags & CU_STREAM_NON_BLOCKING);
}

static void add_implicit_causes_locked(CUstream stream, struct work *work)
{
    for (CUstream other = stream->context->streams; other; other = other->next)
        if (other != stream && is_blocking(stream) && is_blocking(other) &&
            (stream->kind == CU_STREAM_LEGACY || other->kind == CU_STREAM_LEGACY))
            add_cause_locked(work, other->last);
}

static struct mark **queue_of(CUstream stream)
{
    long queues = standin_setting("STANDIN_CONNECTIONS", 0);

    return stream->priority && queues > 0 && queues <= STANDIN_MOST_CONNECTIONS
               ? &stream->context->queued_last[stream->number % queues]
               : NULL;
}

static void join_queue_locked(CUstream stream, struct work *work)
{
    struct mark **last = queue_of(stream);

    if (!last)
        return;
    add_cause_locked(work, *last);
    standin_drop_locked(*last);
    work->done->references++;
    *last = work->done;
}

static void put_last_locked(CUstream stream, struct work *work)
{
    stream->queued++;
    *stream->end = work;
    stream->end = &work->next;
    standin_drop_locked(stream->last);
    stream->last = work->done;
    work->done->references += 2; /* one for the stream, one for its thread */
    start_thread_locked(stream);
    pthread_cond_signal(&stream->wake);
}

static struct {
    bool jammed;
    pthread_t by;
} dti_queue;

void standin_await_jam_locked(void)
{
    while (dti_queue.jammed && !pthread_equal(dti_queue.by, pthread_self()))
        pthread_cond_wait(&standin_changed, &standin_mutex);
}

static void jam_locked(void)
{
    dti_queue.jammed = true;
    dti_queue.by = pthread_self();
}

static void end_jam_locked(void)
{
    if (!dti_queue.jammed)
        return;
    dti_queue.jammed = false;
    pthread_cond_broadcast(&standin_changed);
}

static void await_room_locked(const struct CUstream_st *stream)
{
    long most = standin_setting("STANDIN_QUEUE", 0);

    standin_await_jam_locked();
    while (most && stream->queued >= most) {
        jam_locked();
        pthread_cond_wait(&standin_changed, &standin_mutex);
    }
    end_jam_locked();
}

/* Work for a capturing stream would join a graph. Graphs are never launched here. */
CUresult standin_put_locked(CUstream stream, struct mark *after, CUhostFn function, void *data,
                            struct mark **done)
{
    CUresult result = standin_implicit_locked(stream);
    struct work *work;

    if (result || stream->capture) {
        free(data);
        return stream->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED
                   ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                   : result;
    }
    await_room_locked(stream);
    work = calloc(1, sizeof(*work));
    work->function = function;
    work->data = data;
    work->done = calloc(1, sizeof(*work->done));
    add_cause_locked(work, after);
    add_implicit_causes_locked(stream, work);
    join_queue_locked(stream, work);
    put_last_locked(stream, work);
    if (done)
        *done = standin_keep_locked(work->done);
    return CUDA_SUCCESS;
}

CUresult standin_enqueue(CUstream handle, CUhostFn function, void *data)
{
    CUstream stream;
    CUresult result;

    pthread_mutex_lock(&standin_mutex);
    result = standin_stream_locked(handle, &stream);
    if (!result)
        result = standin_put_locked(stream, NULL, function, data, NULL);
    else
        free(data);
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUstream standin_new_stream_locked(CUcontext context, CUstream kind, unsigned flags, int priority)
{
    CUstream stream = calloc(1, sizeof(*stream));

    stream->context = context;
    stream->kind = kind;
    stream->owner = pthread_self();
    stream->flags = flags;
    stream->priority = priority;
    if (priority)
        stream->number = context->high_streams++;
    stream->end = &stream->first;
    pthread_cond_init(&stream->wake, NULL);
    stream->next = context->streams;
    context->streams = stream;
    return stream;
}

void standin_end_stream_locked(CUstream stream)
{
    CUstream *link = &stream->context->streams;

    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    stream->destroyed = true;
    if (stream->has_thread)
        pthread_cond_signal(&stream->wake);
    else
        free(stream);
}

void standin_await_context_locked(CUcontext context)
{
    for (CUstream stream = context->streams; stream; stream = stream->next)
        if (!standin_done_locked(stream->last)) {
            standin_await_locked(stream->last);
            stream = context->streams; /* the list may have changed meanwhile: start again */
        }
}

static CUstream default_stream_locked(CUcontext context, CUstream kind)
{
    for (CUstream stream = context->streams; stream; stream = stream->next)
        if (stream->kind == kind &&
            (kind == CU_STREAM_LEGACY || pthread_equal(stream->owner, pthread_self())))
            return stream;
    return standin_new_stream_locked(context, kind, CU_STREAM_DEFAULT, 0);
}

/* Gives up the lock for a moment, since standin_current takes it. */
static bool is_special(CUstream handle)
{
    return !handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

CUresult standin_stream_locked(CUstream handle, CUstream *stream)
{
    CUcontext context;
    CUresult result;

    pthread_mutex_unlock(&standin_mutex);
    result = standin_current(&context);
    pthread_mutex_lock(&standin_mutex);
    if (result)
        return result;
    if (is_special(handle)) {
        *stream = default_stream_locked(context, handle ? handle : CU_STREAM_LEGACY);
        return CUDA_SUCCESS;
    }
    standin_need_stream_locked(handle);
    *stream = handle;
    return CUDA_SUCCESS;
}

CUresult standin_check_place(CUstream handle, CUcontext context)
{
    CUstream stream;
    CUresult result;

    pthread_mutex_lock(&standin_mutex);
    result = standin_stream_locked(handle, &stream);
    if (!result && stream->context != context)
        result = CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

void standin_await_stern(void)
{
    CUcontext context;

    if (!standin_setting("STANDIN_STERN", 0) || standin_current(&context))
        return;
    pthread_mutex_lock(&standin_mutex);
    standin_await_context_locked(context);
    pthread_mutex_unlock(&standin_mutex);
}

static bool loads_eagerly(void)
{
    const char *mode = getenv("CUDA_MODULE_LOADING");

    return mode && strcmp(mode, "EAGER") == 0;
}

/* Other threads wait in the driver meanwhile. */
void standin_await_load(void)
{
    CUcontext context;

    standin_await_stern();
    if (!standin_setting("STANDIN_LAZY", 0) || loads_eagerly() || standin_current(&context))
        return;
    pthread_mutex_lock(&standin_mutex);
    standin_await_jam_locked();
    jam_locked();
    standin_await_context_locked(context);
    end_jam_locked();
    pthread_mutex_unlock(&standin_mutex);
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    CUcontext context;
    CUresult result = standin_current(&context);

    if (!result)
        result = standin_refused(__func__);
    if (result)
        return result;
    standin_await_stern();
    if (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&standin_mutex);
    *stream = standin_new_stream_locked(context, NULL, flags, priority);
    pthread_mutex_unlock(&standin_mutex);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
    CUstream stream;
    CUresult result;

    pthread_mutex_lock(&standin_mutex);
    result = standin_stream_locked(handle, &stream);
    if (!result && stream->kind)
        result = CUDA_ERROR_INVALID_HANDLE;
    if (!result)
        standin_end_stream_locked(stream);
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

static CUresult check_idle_locked(CUstream handle, CUstream *stream)
{
    CUresult result = standin_stream_locked(handle, stream);

    if (result)
        return result;
    if ((*stream)->capture) {
        (*stream)->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return standin_implicit_locked(*stream);
}

CUresult cuStreamQuery(CUstream handle)
{
    CUstream stream;
    CUresult result;

    pthread_mutex_lock(&standin_mutex);
    result = check_idle_locked(handle, &stream);
    if (!result && !standin_done_locked(stream->last))
        result = CUDA_ERROR_NOT_READY;
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUresult standin_sync(CUstream handle)
{
    CUstream stream;
    CUresult result;

    pthread_mutex_lock(&standin_mutex);
    result = check_idle_locked(handle, &stream);
    if (!result)
        standin_await_locked(stream->last);
    if (!result)
        result = standin_fault_of(stream->context);
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    return standin_sync(stream);
}

CUresult cuStreamGetFlags(CUstream handle, unsigned *flags)
{
    CUstream stream;
    CUresult result;

    pthread_mutex_lock(&standin_mutex);
    result = standin_stream_locked(handle, &stream);
    if (!result)
        *flags = stream->flags;
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context)
{
    CUstream stream = handle;
    CUresult result;

    pthread_mutex_lock(&standin_mutex);
    if (is_special(handle)) {
        result = standin_stream_locked(handle, &stream);
    } else {
        standin_need_stream_locked(handle);
        result = standin_ready();
    }
    if (!result && stream->capture)
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!result)
        *context = stream->context;
    pthread_mutex_unlock(&standin_mutex);
    return result;
}
