#include "launcher/io/label.h"

#include <stdio.h>

/* Those that can be read on light and on dark ground. */
static const int colours[] = { 36, 35, 32, 33, 34, 31 };

size_t dt_label(char out[DT_LABEL_MAX], uint32_t rank, bool colour)
{
    if (!colour)
        return (size_t)snprintf(out, DT_LABEL_MAX, "[%u] ", rank);
    return (size_t)snprintf(out, DT_LABEL_MAX, "\033[%dm[%u]\033[0m ",
                            colours[rank % (sizeof colours / sizeof *colours)], rank);
}
