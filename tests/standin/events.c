/* Events.
 *
 * Rules: an event that was never recorded is complete, and waiting for it does nothing. An event
 * stands for the work that its stream held at the latest cuEventRecord. cuStreamWaitEvent reads
 * that when it is called, so a later record does not change what it waits for. An event can be
 * recorded only in a stream of its own context, but any stream can wait for it. Times need events
 * with timing. All calls need a current context, as CUDA's documentation allows the driver to
 * demand. cuEventDestroy ends a program that has none, since the event would leak. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/standin/driver.h"

struct CUevent_st {
    CUcontext context;
    unsigned long life; /* of the context */
    unsigned flags;
    struct mark *recorded;
};

static void need_event_locked(CUevent event)
{
    standin_need_life_locked(event->context, event->life, "an event");
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    CUcontext context;
    CUresult result = standin_current(&context);

    if (!result)
        result = standin_refused(__func__);
    if (result)
        return result;
    *event = calloc(1, sizeof(**event));
    (*event)->context = context;
    (*event)->life = context->life;
    (*event)->flags = flags;
    return CUDA_SUCCESS;
}

/* Returns no fault: cuEventDestroy works in spite of one, and check_locked looks for one in the
 * event's context. */
static CUresult check_context(void)
{
    CUcontext context;
    CUresult result = standin_current(&context);

    return result == CUDA_ERROR_ILLEGAL_ADDRESS ? CUDA_SUCCESS : result;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    CUresult result = check_context();

    if (result == CUDA_ERROR_INVALID_CONTEXT) {
        fprintf(stderr, "libcuda stand-in: a thread without a context has destroyed an event\n");
        abort();
    }
    if (result)
        return result;
    pthread_mutex_lock(&standin_mutex);
    need_event_locked(event);
    standin_drop_locked(event->recorded);
    pthread_mutex_unlock(&standin_mutex);
    free(event);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream handle)
{
    struct mark *mark = NULL;
    CUstream stream;
    CUresult result;

    pthread_mutex_lock(&standin_mutex);
    need_event_locked(event);
    result = standin_stream_locked(handle, &stream);
    if (!result && stream->context != event->context)
        result = CUDA_ERROR_INVALID_HANDLE;
    if (!result)
        result = standin_put_locked(stream, NULL, NULL, NULL, &mark);
    if (!result) {
        standin_drop_locked(event->recorded);
        event->recorded = mark;
    }
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

/* Gives up the lock for a moment, since standin_current takes it. */
static CUresult check_locked(CUevent event)
{
    CUresult result;

    pthread_mutex_unlock(&standin_mutex);
    result = check_context();
    pthread_mutex_lock(&standin_mutex);
    need_event_locked(event);
    standin_await_jam_locked();
    if (!result)
        result = standin_unsafe_locked();
    return result ? result : standin_fault_of(event->context);
}

CUresult cuEventQuery(CUevent event)
{
    CUresult result;

    pthread_mutex_lock(&standin_mutex);
    result = check_locked(event);
    if (!result && !standin_done_locked(event->recorded))
        result = CUDA_ERROR_NOT_READY;
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUresult cuEventSynchronize(CUevent event)
{
    CUresult result;

    pthread_mutex_lock(&standin_mutex);
    result = check_locked(event);
    if (!result)
        standin_await_locked(event->recorded);
    if (!result)
        result = standin_fault_of(event->context);
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    CUresult result = check_context();

    if (result)
        return result;
    if (!start->recorded || !end->recorded ||
        ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&standin_mutex);
    if (!standin_done_locked(start->recorded) || !standin_done_locked(end->recorded))
        result = CUDA_ERROR_NOT_READY;
    else
        *milliseconds =
            (float)(standin_time_locked(end->recorded) - standin_time_locked(start->recorded));
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags)
{
    CUstream stream;
    CUresult result;

    (void)flags;
    pthread_mutex_lock(&standin_mutex);
    need_event_locked(event);
    result = standin_stream_locked(handle, &stream);
    if (!result)
        result = standin_put_locked(stream, event->recorded, NULL, NULL, NULL);
    pthread_mutex_unlock(&standin_mutex);
    return result;
}
