#include "tests/standin/nccl/errors.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/standin/nccl/comm.h"

enum { OUR_VERSION = 22809 };

/* NCCL's library contains the text that it writes to its log, where dtrun --check reads the
 * version. */
static const char banner[] __attribute__((used)) = "NCCL version 2.28.9+cuda13.0";

static pthread_mutex_t dti_last_mutex = PTHREAD_MUTEX_INITIALIZER;
static char dti_last[1024];

ncclResult_t standin_warn(ncclResult_t result, const char *format, ...)
{
    va_list args;

    pthread_mutex_lock(&dti_last_mutex);
    va_start(args, format);
    vsnprintf(dti_last, sizeof(dti_last), format, args);
    va_end(args);
    pthread_mutex_unlock(&dti_last_mutex);
    return result;
}

void standin_report(const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    standin_log("%s", text);
    if (!getenv("STANDIN_LOG"))
        fprintf(stderr, "libnccl stand-in: %s\n", text);
}

ncclResult_t standin_cuda(CUresult result)
{
    const char *text = NULL;

    if (!result)
        return ncclSuccess;
    cuGetErrorString(result, &text);
    return standin_warn(ncclUnhandledCudaError, "Cuda failure %d '%s'", result, text ? text : "?");
}

/* One message for the whole process, whatever the communicator. */
const char *ncclGetLastError(ncclComm_t comm)
{
    static _Thread_local char copy[sizeof(dti_last)];

    (void)comm;
    pthread_mutex_lock(&dti_last_mutex);
    memcpy(copy, dti_last, sizeof(copy));
    pthread_mutex_unlock(&dti_last_mutex);
    return copy;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {
        [ncclSuccess] = "no error",
        [ncclUnhandledCudaError] = "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        [ncclSystemError] = "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        [ncclInternalError] = "internal error - please report this issue to the NCCL developers",
        [ncclInvalidArgument] = "invalid argument (run with NCCL_DEBUG=WARN for details)",
        [ncclInvalidUsage] = "invalid usage (run with NCCL_DEBUG=WARN for details)",
        [ncclRemoteError] = "remote process exited or there was a network error",
        [ncclInProgress] = "NCCL operation in progress",
    };

    return (unsigned)result <= ncclInProgress ? texts[result] : "unknown result code";
}

ncclResult_t ncclGetVersion(int *version)
{
    if (!version)
        return ncclInvalidArgument;
    *version = (int)standin_setting("STANDIN_NCCL_VERSION", OUR_VERSION);
    return ncclSuccess;
}
