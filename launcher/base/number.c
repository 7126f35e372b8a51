#include "launcher/base/number.h"

#include <string.h>

int dt_number_parse(const char *text, int min, int max, int *value, struct dt_error *err)
{
    long long n = 0;

    if (!*text || text[strspn(text, "0123456789")])
        return dt_error_usage(err, "a number was expected");
    for (const char *p = text; *p && n <= max; p++)
        n = n * 10 + (*p - '0');
    if (n < min || n > max)
        return dt_error_usage(err, "a number from %d to %d was expected", min, max);
    *value = (int)n;
    return 0;
}
