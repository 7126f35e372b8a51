/* Whether a program uses Horovod, and so needs to be told where the other ranks are: told by what a
 * Python script imports. (Horovod's libraries are modules of Python; programs are not linked with
 * them.) */
#ifndef DT_BASE_PROGRAM_HOROVODNEEDS_H
#define DT_BASE_PROGRAM_HOROVODNEEDS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/wire/codec.h"

/* path: the program; argv: its arguments. why (of size bytes) says what tells so, as in
 * "import horovod in train.py", or is empty. */
bool dt_horovod_is_used(const char *path, const struct dt_strs *argv, char *why, size_t size);

#endif
