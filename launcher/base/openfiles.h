/* How many files this process may have open: the limit of "ulimit -n", which it may raise by itself
 * as far as "ulimit -Hn". */
#ifndef DT_BASE_OPENFILES_H
#define DT_BASE_OPENFILES_H

#include <stdint.h>

#include "launcher/base/error.h"

/* Raises the limit to n if it is lower. If that is not allowed, fails and says what for. */
int dt_openfiles_need(uint64_t n, const char *what, struct dt_error *err);
/* The limit before it was raised, for processes that must not inherit the higher one; 0: it was not
 * raised. */
uint64_t dt_openfiles_before(void);
void dt_openfiles_set(uint64_t n); /* lowers it to that again */

#endif
