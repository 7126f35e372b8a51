#include "launcher/io/label.h"

#include <stdio.h>

/* Colours that are readable on light and dark backgrounds. */
static const int colours[] = { 36, 35, 32, 33, 34, 31 };

size_t dt_label(char out[DT_LABEL_MAX], uint32_t number, uint32_t np, bool colour)
{
    char name[DT_ROLE_NAME_MAX];

    if (number < np)
        snprintf(name, sizeof name, "%u", number);
    else
        dt_role_name(name, number, np);
    if (!colour)
        return (size_t)snprintf(out, DT_LABEL_MAX, "[%s] ", name);
    return (size_t)snprintf(out, DT_LABEL_MAX, "\033[%dm[%s]\033[0m ",
                            colours[number % (sizeof colours / sizeof *colours)], name);
}
