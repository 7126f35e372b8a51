#include "launcher/io/label.h"

#include <stdio.h>

size_t dt_label(char out[DT_LABEL_MAX], uint32_t rank)
{
    return (size_t)snprintf(out, DT_LABEL_MAX, "[%u] ", rank);
}
