/* The texts behind dt_last_error: a failing function says once what happened and passes the code
 * up. */
#ifndef DT_RUNTIME_ERROR_H
#define DT_RUNTIME_ERROR_H

#include <stdbool.h>

#include "runtime/dtrun.h"

enum { DT_ERROR_TEXT = 512 };

/* Makes the text what dt_last_error returns in this thread; returns result. */
dt_result_t dt_fail(dt_result_t result, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Whether a call that failed in this way is the last of its communicator. */
bool dt_result_is_final(dt_result_t result);

#endif
