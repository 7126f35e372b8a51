#include "runtime/error.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char dti_last_error[DT_ERROR_TEXT];

dt_result_t dt_fail(dt_result_t result, const char *fmt, ...)
{
    char text[DT_ERROR_TEXT]; /* the old text may be among the arguments */
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    snprintf(dti_last_error, sizeof dti_last_error, "%s", text);
    return result;
}

bool dt_result_is_final(dt_result_t result)
{
    return result != DT_OK && result != DT_ERR_ARG && result != DT_ERR_STATE &&
           result != DT_ERR_UNSUPPORTED && result != DT_ERR_VERSION;
}

const char *dt_last_error(void)
{
    return dti_last_error;
}

const char *dt_strerror(dt_result_t result)
{
    switch (result) {
    case DT_OK:
        return "success";
    case DT_ERR_ARG:
        return "an argument is wrong";
    case DT_ERR_STATE:
        return "called at the wrong time";
    case DT_ERR_MISMATCH:
        return "ranks made different calls";
    case DT_ERR_PEER:
        return "a rank died or left";
    case DT_ERR_TIMEOUT:
        return "timed out";
    case DT_ERR_IO:
        return "a file or socket failed";
    case DT_ERR_NOMEM:
        return "out of memory";
    case DT_ERR_UNSUPPORTED:
        return "not supported";
    case DT_ERR_VERSION:
        return "library and agent do not fit each other";
    case DT_ERR_CUDA:
        return "CUDA failed";
    case DT_ERR_NCCL:
        return "NCCL failed";
    case DT_ERR_ABORTED:
        return "aborted";
    case DT_ERR_INTERNAL:
        return "internal error";
    }
    return "unknown result";
}
