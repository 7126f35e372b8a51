/* Whether a program uses Horovod and so needs a rendezvous. Only the imports of a Python script
 * show this: Horovod's libraries are Python modules, and programs do not link them. */
#ifndef DT_BASE_PROGRAM_HOROVODNEEDS_H
#define DT_BASE_PROGRAM_HOROVODNEEDS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/wire/codec.h"

/* path is the program, argv its arguments. On success why (of size bytes) names the evidence, as in
 * "import horovod in train.py"; otherwise it is empty. */
bool dt_horovod_is_used(const char *path, const struct dt_strs *argv, char *why, size_t size);

#endif
