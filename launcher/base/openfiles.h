/* How many files this process may have open. "ulimit -n" shows the limit, and the process may raise
 * it up to "ulimit -Hn". */
#ifndef DT_BASE_OPENFILES_H
#define DT_BASE_OPENFILES_H

#include <stdint.h>

#include "launcher/base/error.h"

/* Raises the limit to n if it is lower. If that is not allowed, fails with an error that names what
 * needs the files. */
int dt_openfiles_need(uint64_t n, const char *what, struct dt_error *err);
/* Returns the limit before it was raised, for processes that must not inherit the higher one, or 0
 * if it was not raised. */
uint64_t dt_openfiles_before(void);
/* Returns how many connections of strangers may be open: most, or a quarter of the limit if that is
 * less. */
unsigned dt_openfiles_for_strangers(unsigned most);
/* Lowers the limit to n again. */
void dt_openfiles_lower(uint64_t n);

#endif
