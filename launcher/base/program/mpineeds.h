/* Whether a program uses Open MPI, or another MPI library that was built with PMIx, and so needs a
 * PMIx server. The libraries that it links, or the imports of a script, show this. */
#ifndef DT_BASE_PROGRAM_MPINEEDS_H
#define DT_BASE_PROGRAM_MPINEEDS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/wire/codec.h"

/* path is the program. Its arguments argv, or a shell script among them, may name another; search
 * is its PATH, and libraries its LD_LIBRARY_PATH, or NULL. On success why (of size bytes) names the
 * evidence: "libmpi.so.40", "mpi4py in train.py", "mpi4py.bench", or "libmpi.so.40 in ./train". */
bool dt_mpi_needs_pmix(const char *path, const struct dt_strs *argv, const char *search,
                       const char *libraries, char *why, size_t size);

#endif
