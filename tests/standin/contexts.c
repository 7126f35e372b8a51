/* Contexts: the primary one of each device, those that a program creates, and the stack of each
 * thread.
 *
 * Rules: the first retain creates the primary context, and the last release destroys it. A new
 * context is pushed onto its creator's stack. cuCtxSetCurrent replaces the top; NULL pops it. In a
 * thread without a context, calls that need one return CUDA_ERROR_INVALID_CONTEXT, and in one whose
 * context another thread has destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED. After a kernel's
 * fault they return CUDA_ERROR_ILLEGAL_ADDRESS for as long as the context lives. A reset of the
 * device ends its primary context, whichever parts of the program have retained it. The next one
 * has the same handle, but everything made in the old one is gone. Using an event or a stream of
 * the old one, or a context that the program has created and destroyed, ends the program here, as
 * it may with the real driver. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/standin/driver.h"

enum { MAX_STACK = 16 };

static CUcontext dti_contexts;
static _Thread_local CUcontext dti_stack[MAX_STACK];
static _Thread_local int dti_depth;

static CUcontext *link_of(CUcontext context)
{
    CUcontext *link = &dti_contexts;

    while (*link && *link != context)
        link = &(*link)->next;
    return link;
}

static bool exists(CUcontext context)
{
    bool found;

    pthread_mutex_lock(&standin_mutex);
    found = context && *link_of(context);
    pthread_mutex_unlock(&standin_mutex);
    return found;
}

static CUcontext dti_primaries[STANDIN_MOST_DEVICES];

/* A primary context keeps its address for the device's next one. */
static CUcontext room_for_locked(CUdevice device, bool primary)
{
    if (!primary)
        return calloc(1, sizeof(struct CUctx_st));
    if (!dti_primaries[device])
        dti_primaries[device] = calloc(1, sizeof(struct CUctx_st));
    return dti_primaries[device];
}

/* Returns whether the context exists. The handle of a primary one stays valid after its end. */
static bool check_handle(CUcontext context)
{
    bool valid = exists(context) || !context;

    for (int i = 0; i < STANDIN_MOST_DEVICES; i++)
        valid = valid || dti_primaries[i] == context;
    if (valid)
        return exists(context);
    fprintf(stderr, "libcuda stand-in: a context was used after it had been destroyed\n");
    abort();
}

static CUcontext new_context_locked(CUdevice device, bool primary)
{
    static unsigned long lives;
    CUcontext context = room_for_locked(device, primary);

    *context = (struct CUctx_st){ .life = ++lives };
    context->device = device;
    context->primary = primary;
    context->next = dti_contexts;
    dti_contexts = context;
    standin_new_stream_locked(context, CU_STREAM_LEGACY, CU_STREAM_DEFAULT, 0);
    standin_log("context pid %d device %d %s", (int)getpid(), device,
                primary ? "primary" : "created");
    return context;
}

static void end_context_locked(CUcontext context)
{
    standin_await_context_locked(context);
    while (context->streams)
        standin_end_stream_locked(context->streams);
    standin_end_pinned_locked(context);
    *link_of(context) = context->next;
    if (!context->primary)
        free(context);
}

void standin_need_life_locked(CUcontext context, unsigned long life, const char *what)
{
    if (*link_of(context) && context->life == life)
        return;
    fprintf(stderr, "libcuda stand-in: %s was used after its context had ended\n", what);
    abort();
}

void standin_need_stream_locked(CUstream stream)
{
    for (CUcontext context = dti_contexts; context; context = context->next)
        for (CUstream other = context->streams; other; other = other->next)
            if (other == stream)
                return;
    fprintf(stderr, "libcuda stand-in: a stream was used after it had ended\n");
    abort();
}

int standin_contexts(void)
{
    int count = 0;

    pthread_mutex_lock(&standin_mutex);
    for (CUcontext context = dti_contexts; context; context = context->next)
        count++;
    pthread_mutex_unlock(&standin_mutex);
    return count;
}

unsigned long standin_life(CUcontext context)
{
    unsigned long life;

    pthread_mutex_lock(&standin_mutex);
    life = context && *link_of(context) ? context->life : 0;
    pthread_mutex_unlock(&standin_mutex);
    return life;
}

void standin_fault(CUcontext context)
{
    context->faulted = true;
}

bool standin_faulted(CUcontext context)
{
    return context->faulted;
}

CUresult standin_fault_of(CUcontext context)
{
    return context->faulted ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

CUresult standin_current(CUcontext *context)
{
    CUresult result = standin_ready();

    if (result)
        return result;
    if (!dti_depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!exists(dti_stack[dti_depth - 1]))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *context = dti_stack[dti_depth - 1];
    return standin_fault_of(*context);
}

static CUcontext primary_locked(CUdevice device)
{
    CUcontext context = dti_contexts;

    while (context && !(context->primary && context->device == device))
        context = context->next;
    return context;
}

static CUresult check_device(CUdevice device)
{
    CUresult result = standin_ready();

    return result || standin_device_exists(device) ? result : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult result = check_device(device);

    if (result)
        return result;
    pthread_mutex_lock(&standin_mutex);
    *context = primary_locked(device);
    if (!*context)
        *context = new_context_locked(device, true);
    (*context)->retained++;
    pthread_mutex_unlock(&standin_mutex);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUresult result = check_device(device);
    CUcontext context;

    if (result)
        return result;
    pthread_mutex_lock(&standin_mutex);
    context = primary_locked(device);
    if (!context)
        result = CUDA_ERROR_INVALID_CONTEXT;
    else if (--context->retained == 0)
        end_context_locked(context);
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

/* Does not release: the parts of the program that have retained the context get its next life. */
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    CUresult result = check_device(device);
    CUcontext context;
    unsigned retained;

    if (result)
        return result;
    pthread_mutex_lock(&standin_mutex);
    context = primary_locked(device);
    if (context) {
        retained = context->retained;
        end_context_locked(context);
        new_context_locked(device, true)->retained = retained;
    }
    pthread_mutex_unlock(&standin_mutex);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    CUresult result = check_device(device);

    if (!result)
        result = standin_refused(__func__);
    if (result)
        return result;
    pthread_mutex_lock(&standin_mutex);
    *flags = CU_CTX_SCHED_AUTO;
    *active = primary_locked(device) != NULL;
    pthread_mutex_unlock(&standin_mutex);
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    CUresult result = standin_ready();

    if (result)
        return result;
    if (!check_handle(context) || dti_depth == MAX_STACK)
        return CUDA_ERROR_INVALID_CONTEXT;
    dti_stack[dti_depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    CUresult result = standin_ready();

    if (result)
        return result;
    if (!dti_depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    dti_depth--;
    if (context)
        *context = dti_stack[dti_depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult result = standin_ready();

    if (result)
        return result;
    if (context && !check_handle(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    dti_depth -= dti_depth > 0;
    if (context)
        dti_stack[dti_depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult result = standin_ready();

    if (!result)
        *context = dti_depth ? dti_stack[dti_depth - 1] : NULL;
    return result;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    CUcontext context;
    CUresult result = standin_current(&context);

    if (result && result != CUDA_ERROR_ILLEGAL_ADDRESS)
        return result;
    *device = context->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    CUresult result = check_device(device);

    (void)flags;
    if (result)
        return result;
    pthread_mutex_lock(&standin_mutex);
    *context = new_context_locked(device, false);
    pthread_mutex_unlock(&standin_mutex);
    return cuCtxPushCurrent_v2(*context);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    CUresult result = standin_ready();

    if (result)
        return result;
    if (!exists(context) || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (dti_depth && dti_stack[dti_depth - 1] == context)
        dti_depth--;
    pthread_mutex_lock(&standin_mutex);
    end_context_locked(context);
    pthread_mutex_unlock(&standin_mutex);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    CUcontext context;
    CUresult result = standin_current(&context);

    if (!result)
        result = standin_refused(__func__);
    if (!result) {
        *least = 0;
        *greatest = -5;
    }
    return result;
}

CUresult cuCtxSynchronize(void)
{
    CUcontext context;
    CUresult result = standin_current(&context);

    if (result)
        return result;
    pthread_mutex_lock(&standin_mutex);
    result = standin_unsafe_locked();
    if (!result)
        standin_await_context_locked(context);
    pthread_mutex_unlock(&standin_mutex);
    return result ? result : standin_fault_of(context);
}
