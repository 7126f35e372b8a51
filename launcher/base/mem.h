/* Allocation that cannot fail: when memory runs out, dtrun and dtrun-agent print one line and exit
 * with code 125. libdtrun never uses these functions; it returns DT_ERR_NOMEM. */
#ifndef DT_BASE_MEM_H
#define DT_BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>

#include "runtime/wire/codec.h"

void *dt_xcalloc(size_t n, size_t size);
void *dt_xrealloc(void *p, size_t n, size_t size); /* checks n * size for overflow */
char *dt_xstrdup(const char *s);
char *dt_xstrndup(const char *s, size_t n);
char *dt_xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *dt_xvasprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));
char *dt_xpath(const char *dir, const char *name); /* joined by one slash */
void dt_xstrs_add(struct dt_strs *s, const char *text);
void dt_xstrs_add_n(struct dt_strs *s, const char *text, size_t n); /* the first n bytes */

#endif
