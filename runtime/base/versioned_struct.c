#include "runtime/base/versioned_struct.h"

#include <stdint.h>
#include <string.h>

#include "runtime/base/error.h"

dt_result_t dt_versioned_struct_read(const struct dt_versioned_struct *s, const void *given,
                                     void *copy)
{
    const uint8_t *bytes = given;
    size_t size;

    memcpy(&size, given, sizeof size);
    if (size < s->first || size > DT_VERSIONED_STRUCT_MOST)
        return dt_fail(
            DT_ERR_VERSION,
            "%s: %s->size is %zu, which no version of dtrun.h has; initialize %s with %s", s->call,
            s->name, size, s->name, s->init);
    for (size_t i = s->known; i < size; i++) {
        if (bytes[i])
            return dt_fail(DT_ERR_VERSION,
                           "%s: something is set in %s (at byte %zu) that this libdtrun, which is "
                           "older than the program's dtrun.h, does not know",
                           s->call, s->name, i);
    }
    memcpy(copy, given, size < s->known ? size : s->known);
    return DT_OK;
}
