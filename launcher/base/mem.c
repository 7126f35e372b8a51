#include "launcher/base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/error.h"

static void *must(void *p)
{
    if (p)
        return p;
    fputs("dtrun: out of memory\n", stderr);
    exit(DT_EXIT_LAUNCH);
}

void *dt_xcalloc(size_t n, size_t size)
{
    return must(calloc(n ? n : 1, size ? size : 1));
}

void *dt_xrealloc(void *p, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size)
        return must(NULL);
    return must(realloc(p, n && size ? n * size : 1));
}

char *dt_xstrdup(const char *s)
{
    return must(strdup(s));
}

char *dt_xstrndup(const char *s, size_t n)
{
    return must(strndup(s, n));
}

char *dt_xasprintf(const char *fmt, ...)
{
    va_list ap;
    char *s;

    va_start(ap, fmt);
    s = dt_xvasprintf(fmt, ap);
    va_end(ap);
    return s;
}

char *dt_xvasprintf(const char *fmt, va_list ap)
{
    char *s = NULL;

    return must(vasprintf(&s, fmt, ap) < 0 ? NULL : s);
}

char *dt_xpath(const char *dir, const char *name)
{
    size_t n = strlen(dir);

    return dt_xasprintf("%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
}

void dt_xstrs_add(struct dt_strs *s, const char *text)
{
    if (dt_strs_add(s, text) < 0)
        must(NULL);
}

void dt_xstrs_add_n(struct dt_strs *s, const char *text, size_t n)
{
    char *copy = dt_xstrndup(text, n);

    dt_xstrs_add(s, copy);
    free(copy);
}
