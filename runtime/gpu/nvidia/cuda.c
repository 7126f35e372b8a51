#include "runtime/gpu/nvidia/cuda.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/gpu/nvidia/remedy.h"

enum { EXIT_S = 3 }; /* exits rarely take longer */

static struct {
    _Atomic unsigned long long seen; /* how many objects were loaded at the last look */
    _Atomic(const struct dt_cuda *) found;
    pthread_mutex_t mutex;
    struct dt_cuda driver;
    _Atomic bool exits;
    pthread_t exiting; /* the thread in exit() */
} dti_cuda = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static int first_object(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    *(unsigned long long *)out = info->dlpi_adds;
    return 1;
}

static void find_functions(void *library)
{
#define FIND(result, name, arguments)                                                              \
    *(void **)&dti_cuda.driver.name = dlsym(library, #name);                                       \
    if (!dti_cuda.driver.name)                                                                     \
        dti_cuda.driver.lacks = #name;
    DT_CUDA_FUNCTIONS(FIND)
#undef FIND
}

/* Usually runs before the driver's own functions for the exit, since a program starts the driver
 * before it passes GPU memory. */
static void note_exit(void)
{
    dti_cuda.exiting = pthread_self();
    dti_cuda.exits = true;
}

void dt_cuda_await_exit(CUresult error)
{
    bool own = dti_cuda.exits && pthread_equal(dti_cuda.exiting, pthread_self());

    if (error == CUDA_ERROR_DEINITIALIZED && !own)
        sleep(EXIT_S);
}

static void look(unsigned long long loaded)
{
    void *library;

    pthread_mutex_lock(&dti_cuda.mutex);
    library = dti_cuda.found ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library) {
        find_functions(library);
        atexit(note_exit);
        dti_cuda.found = &dti_cuda.driver;
    }
    dti_cuda.seen = loaded;
    pthread_mutex_unlock(&dti_cuda.mutex);
}

/* The program may load CUDA at any time. Asking the linker again makes sense only if something has
 * been loaded since. */
const struct dt_cuda *dt_cuda(void)
{
    const struct dt_cuda *found = dti_cuda.found;
    unsigned long long loaded = 0;

    if (found)
        return found;
    dl_iterate_phdr(first_object, &loaded);
    if (dti_cuda.seen != loaded)
        look(loaded);
    return dti_cuda.found;
}

dt_result_t dt_cuda_code(CUresult error)
{
    return error == DT_CUDA_NO_HOST_MEMORY ? DT_ERR_NOMEM : DT_ERR_CUDA;
}

const char *dt_cuda_describe(const char *function, CUresult error, char text[DT_CUDA_TEXT])
{
    const struct dt_cuda *cuda = dt_cuda();
    const char *name = "?", *means = "unknown error", *remedy = dt_cuda_remedy(function, error);

    if (error == DT_CUDA_NO_HOST_MEMORY)
        snprintf(text, DT_CUDA_TEXT, "%s: the process gets no memory, or no thread", function);
    else if (cuda->cuGetErrorName(error, &name) || cuda->cuGetErrorString(error, &means))
        snprintf(text, DT_CUDA_TEXT, "%s: error %d%s%s", function, (int)error, *remedy ? ": " : "",
                 remedy);
    else
        snprintf(text, DT_CUDA_TEXT, "%s: %s (%s, %d)%s%s", function, means, name, (int)error,
                 *remedy ? ": " : "", remedy);
    return text;
}

CUresult dt_cuda_enter(struct dt_cuda_scope *scope, CUcontext context)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUresult result = cuda->cuCtxPushCurrent_v2(context);

    scope->failed = "cuCtxPushCurrent";
    if (result)
        return result;
    scope->failed = "cuThreadExchangeStreamCaptureMode";
    scope->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    result = cuda->cuThreadExchangeStreamCaptureMode(&scope->mode);
    if (result)
        cuda->cuCtxPopCurrent_v2(&context);
    return result;
}

void dt_cuda_leave(struct dt_cuda_scope *scope)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUcontext left;

    cuda->cuThreadExchangeStreamCaptureMode(&scope->mode);
    cuda->cuCtxPopCurrent_v2(&left);
}

CUresult dt_cuda_make_stream(CUstream *stream, const char **function)
{
    const struct dt_cuda *cuda = dt_cuda();
    int least, greatest;
    CUresult result = cuda->cuCtxGetStreamPriorityRange(&least, &greatest);

    *function = "cuCtxGetStreamPriorityRange";
    if (result)
        return result;
    *function = "cuStreamCreateWithPriority";
    return cuda->cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, greatest);
}
