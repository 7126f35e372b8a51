/* --env: the variables that launchers of other frameworks set to tell a rank its place. Pure. */
#ifndef DT_PLACE_FRAMEWORKS_H
#define DT_PLACE_FRAMEWORKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/base/error.h"
#include "runtime/wire/codec.h"
#include "runtime/wire/msg.h"

enum dt_framework {
    DT_FRAMEWORK_HOROVOD = 1,
    DT_FRAMEWORK_TENSORFLOW = 2,
    DT_FRAMEWORK_MPI = 4,
    DT_FRAMEWORK_MXNET = 8,
};

/* Adds the frameworks that list names to *set, as in "horovod,mpi". On failure err names the known
 * ones. */
int dt_frameworks_parse(unsigned *set, const char *list, struct dt_error *err);

/* Returns the framework in set that sets the variable of this name (n bytes), or NULL. */
const char *dt_frameworks_owner(unsigned set, const char *name, size_t n);

/* Returns the variable in which a framework of set looks for the name of an interface, or NULL. */
const char *dt_frameworks_iface(unsigned set);

/* Returns whether a framework of set needs auxiliaries beside the ranks (role.h). */
bool dt_frameworks_have_auxiliaries(unsigned set);

/* Adds to values every variable of the process with that number (role.h), which must be one of
 * start. */
void dt_frameworks_put(struct dt_strs *values, const struct dt_msg_start *start, uint32_t number,
                       const struct dt_msg_go *go);

#endif
