/* Structures that begin with their size, as the program's dtrun.h has it: so a library reads those
 * of older programs, and of newer ones as long as these ask for nothing that it does not know.
 * Pure. */
#ifndef DT_BASE_VERSIONED_STRUCT_H
#define DT_BASE_VERSIONED_STRUCT_H

#include <stddef.h>

#include "runtime/dtrun.h"

enum { DT_VERSIONED_STRUCT_MOST = 4096 }; /* bytes that any version's structures have */

/* What a call is given. */
struct dt_versioned_struct {
    const char *call; /* for texts */
    const char *name; /* of the argument */
    const char *init; /* the macro that initializes it */
    size_t first;     /* the size that it had at first */
    size_t known;     /* and has in this library */
};

/* Copies what was given over the first bytes of copy, which is s->known bytes long and holds what
 * is to be where nothing is said. DT_ERR_VERSION: it has a size that no version has, or says
 * something that this library does not know. */
dt_result_t dt_versioned_struct_read(const struct dt_versioned_struct *s, const void *given,
                                     void *copy);

#endif
