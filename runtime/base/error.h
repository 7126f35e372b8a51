/* The error behind dt_last_error and dt_last_error_info. A function that fails describes the
 * failure once and returns the code; its callers pass the code on. */
#ifndef DT_BASE_ERROR_H
#define DT_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/dtrun.h"

enum { DT_ERROR_TEXT = sizeof((dt_error_info_t *)NULL)->message };

/* Sets this thread's dt_last_error, and leaves errno as it is. Returns result. */
dt_result_t dt_fail(dt_result_t result, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same for a failed system call: appends ": " and the meaning of the errno "error", and sets
 * the field error of dt_last_error_info. */
dt_result_t dt_fail_errno(dt_result_t result, int error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* After dt_fail: the other fields of dt_last_error_info, for the caller to fill in. */
dt_error_info_t *dt_error_details(void);
/* Save this thread's last error, and restore it, in any thread. The latter returns its code. */
void dt_error_save(dt_error_info_t *saved);
dt_result_t dt_error_restore(const dt_error_info_t *saved);

/* Returns "DT_ERR_PEER", for example. */
const char *dt_result_name(dt_result_t result);

/* Whether this result ends the communicator. */
bool dt_result_is_final(dt_result_t result);

#endif
