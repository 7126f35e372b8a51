/* What is behind dt_last_error and dt_last_error_info: a failing function says once what happened
 * and passes the code up. */
#ifndef DT_BASE_ERROR_H
#define DT_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/dtrun.h"

enum { DT_ERROR_TEXT = sizeof((dt_error_info_t *)NULL)->message };

/* Makes the text what dt_last_error returns in this thread; returns result. */
dt_result_t dt_fail(dt_result_t result, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same for a failed system call: ": " and the meaning of error, an errno, follow the text, and
 * dt_last_error_info tells error. */
dt_result_t dt_fail_errno(dt_result_t result, int error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* After dt_fail: what is known beside the text, for the caller to fill in. */
dt_error_info_t *dt_error_details(void);
/* What this thread's last failure was; and makes it so again, in this thread. Returns its code. */
void dt_error_keep(dt_error_info_t *kept);
dt_result_t dt_error_again(const dt_error_info_t *kept);

/* "DT_ERR_PEER". */
const char *dt_result_name(dt_result_t result);

/* Whether a call that failed in this way is the last of its communicator. */
bool dt_result_is_final(dt_result_t result);

#endif
