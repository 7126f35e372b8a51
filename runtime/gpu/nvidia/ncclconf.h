/* Settings of NCCL: variables of the environment, or lines of the configuration files that NCCL
 * reads for those that are not set. */
#ifndef DT_GPU_NVIDIA_NCCLCONF_H
#define DT_GPU_NVIDIA_NCCLCONF_H

#include <stdbool.h>

#include "runtime/wire/ncclfile.h"

enum { DT_NCCLCONF_TEXT = DT_NCCLFILE_TEXT };

/* Fills value, cut if it is too long, and where, a text such as "/etc/nccl.conf" or "the
 * environment". False: it is not set. */
bool dt_ncclconf_find(const char *name, char value[DT_NCCLCONF_TEXT], char where[DT_NCCLCONF_TEXT]);

#endif
