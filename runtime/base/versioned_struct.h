/* Reads structures that begin with their size, so that they can grow. The library accepts the
 * structures of older programs, and those of newer programs if they set nothing that the library
 * does not know. Pure. */
#ifndef DT_BASE_VERSIONED_STRUCT_H
#define DT_BASE_VERSIONED_STRUCT_H

#include <stddef.h>

#include "runtime/dtrun.h"

enum { DT_VERSIONED_STRUCT_MOST = 4096 }; /* bytes; no version's structures are larger */

/* Describes an argument of a call. */
struct dt_versioned_struct {
    const char *call; /* name of the call, for errors */
    const char *name; /* of the argument */
    const char *init; /* the macro that initialises it */
    size_t first;     /* its size in the first version */
    size_t known;     /* its size in this library */
};

/* Copies the given structure over the beginning of copy, which is s->known bytes long and holds the
 * defaults. DT_ERR_VERSION: no version has this size, or a field is set that this library does not
 * know. */
dt_result_t dt_versioned_struct_read(const struct dt_versioned_struct *s, const void *given,
                                     void *copy);

#endif
