#include "runtime/base/error.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/versioned_struct.h"

/* Size of the structure in the first version. */
enum { FIRST_SIZE = offsetof(dt_error_info_t, status) };

static const dt_error_info_t nothing = { .size = sizeof nothing, .rank = -1, .status = -1 };

static _Thread_local dt_error_info_t dti_last = { .size = sizeof dti_last,
                                                  .rank = -1,
                                                  .status = -1 };

/* Writes numbers as in C: the program's locale may have a decimal comma. */
static void format(char text[DT_ERROR_TEXT], const char *fmt, va_list ap)
{
    int error = errno;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(c);

    vsnprintf(text, DT_ERROR_TEXT, fmt, ap);
    uselocale(before);
    if (c)
        freelocale(c);
    errno = error;
}

/* A refusal begins with the name of the refused call. Other failures name their call later. */
static void name_operation(dt_error_info_t *e)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";

    if (strncmp(e->message, "dt_", 3) == 0)
        snprintf(e->operation, sizeof e->operation, "%.*s", (int)strspn(e->message, letters),
                 e->message);
}

dt_result_t dt_fail(dt_result_t result, const char *fmt, ...)
{
    char text[DT_ERROR_TEXT]; /* the previous text may be one of the arguments */
    va_list ap;

    va_start(ap, fmt);
    format(text, fmt, ap);
    va_end(ap);
    dti_last = nothing;
    dti_last.code = result;
    snprintf(dti_last.message, sizeof dti_last.message, "%s", text);
    name_operation(&dti_last);
    return result;
}

dt_result_t dt_fail_errno(dt_result_t result, int error, const char *fmt, ...)
{
    char text[DT_ERROR_TEXT];
    va_list ap;

    va_start(ap, fmt);
    format(text, fmt, ap);
    va_end(ap);
    dt_fail(result, "%s: %s", text, strerror(error));
    dti_last.error = error;
    return result;
}

dt_error_info_t *dt_error_details(void)
{
    return &dti_last;
}

void dt_error_save(dt_error_info_t *saved)
{
    *saved = dti_last;
}

dt_result_t dt_error_restore(const dt_error_info_t *saved)
{
    dti_last = *saved;
    return saved->code;
}

bool dt_result_is_final(dt_result_t result)
{
    return result != DT_OK && result != DT_ERR_ARG && result != DT_ERR_STATE &&
           result != DT_ERR_UNSUPPORTED && result != DT_ERR_VERSION;
}

const char *dt_last_error(void)
{
    return dti_last.message;
}

dt_result_t dt_last_error_info(dt_error_info_t *info)
{
    size_t size = info ? info->size : 0;

    if (!info)
        return DT_ERR_ARG;
    if (size < FIRST_SIZE || size > DT_VERSIONED_STRUCT_MOST)
        return DT_ERR_VERSION;
    memset(info, 0, size);
    memcpy(info, &dti_last, size < sizeof *info ? size : sizeof *info);
    info->size = size;
    return DT_OK;
}

static const struct {
    const char *name;
    const char *text;
} results[] = {
    [-DT_OK] = { "DT_OK", "success" },
    [-DT_ERR_ARG] = { "DT_ERR_ARG", "an argument is wrong" },
    [-DT_ERR_STATE] = { "DT_ERR_STATE", "called at the wrong time" },
    [-DT_ERR_MISMATCH] = { "DT_ERR_MISMATCH", "ranks made different calls" },
    [-DT_ERR_PEER] = { "DT_ERR_PEER", "a rank died or left" },
    [-DT_ERR_TIMEOUT] = { "DT_ERR_TIMEOUT", "timed out" },
    [-DT_ERR_IO] = { "DT_ERR_IO", "a file or socket failed" },
    [-DT_ERR_NOMEM] = { "DT_ERR_NOMEM", "out of memory" },
    [-DT_ERR_UNSUPPORTED] = { "DT_ERR_UNSUPPORTED", "not supported" },
    [-DT_ERR_VERSION] = { "DT_ERR_VERSION", "program, library and agent do not work together" },
    [-DT_ERR_CUDA] = { "DT_ERR_CUDA", "CUDA failed" },
    [-DT_ERR_NCCL] = { "DT_ERR_NCCL", "NCCL failed" },
    [-DT_ERR_ABORTED] = { "DT_ERR_ABORTED", "aborted" },
    [-DT_ERR_INTERNAL] = { "DT_ERR_INTERNAL", "internal error" },
};

enum { RESULTS = sizeof results / sizeof *results };

const char *dt_result_name(dt_result_t result)
{
    return result <= 0 && result > -RESULTS ? results[-result].name : "?";
}

const char *dt_strerror(dt_result_t result)
{
    return result <= 0 && result > -RESULTS ? results[-result].text : "unknown result";
}
