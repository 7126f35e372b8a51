/* Whether a program is one of Open MPI's, which needs a PMIx server: told by the library that it is
 * linked with, or by what a script imports. Others find what they need without being looked at. */
#ifndef DT_BASE_PROGRAM_MPINEEDS_H
#define DT_BASE_PROGRAM_MPINEEDS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/wire/codec.h"

/* path: the program; argv: its arguments, of which one may be a script. Where it does, why (of size
 * bytes) says what tells so: "libmpi.so.40", or "mpi4py in train.py". */
bool dt_mpi_needs_pmix(const char *path, const struct dt_strs *argv, char *why, size_t size);

#endif
