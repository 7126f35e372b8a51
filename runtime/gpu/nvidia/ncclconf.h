/* Settings of NCCL: variables of the environment or, where these are not set, lines of NCCL's
 * configuration files. */
#ifndef DT_GPU_NVIDIA_NCCLCONF_H
#define DT_GPU_NVIDIA_NCCLCONF_H

#include <stdbool.h>

#include "runtime/wire/ncclfile.h"

enum { DT_NCCLCONF_TEXT = DT_NCCLFILE_TEXT };

/* Looks where this version of NCCL (such as 22809) does. Fills in value (cut if it is too long) and
 * where (a text such as "/etc/nccl.conf" or "the environment"). Returns false if the setting is not
 * set. */
bool dt_ncclconf_find(const char *name, int version, char value[DT_NCCLCONF_TEXT],
                      char where[DT_NCCLCONF_TEXT]);

#endif
