#include "launcher/base/number.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A number that does not consist of digits alone, such as 0.2 or -1. */
static bool is_other_number(const char *text)
{
    char *end;

    if (!*text || !strchr("+-.0123456789", *text))
        return false;
    strtod(text, &end);
    return end != text && *end == '\0';
}

int dt_number_parse(const char *text, int min, int max, int *value, struct dt_error *err)
{
    long long n = 0;

    if (is_other_number(text) && text[strspn(text, "0123456789")])
        return dt_error_usage(err, "a whole number from %d to %d was expected", min, max);
    if (!*text || text[strspn(text, "0123456789")])
        return dt_error_usage(err, "a number was expected");
    for (const char *p = text; *p && n <= max; p++)
        n = n * 10 + (*p - '0');
    if (n < min || n > max)
        return dt_error_usage(err, "a number from %d to %d was expected", min, max);
    *value = (int)n;
    return 0;
}
