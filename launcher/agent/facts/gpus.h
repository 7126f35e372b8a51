/* The GPUs of this host, as CUDA_VISIBLE_DEVICES names them. */
#ifndef DT_AGENT_GPUS_H
#define DT_AGENT_GPUS_H

#include "launcher/agent/sweep/sweep.h"
#include "runtime/wire/codec.h"

/* Appends the index of each GPU that the kernel's driver shows and whose device file this process
 * can see (a container may have been given a part of them). May wait up to 6 s for nvidia-smi, so
 * it is called before the loop runs. An nvidia-smi that cannot be ended stays a child, for which no
 * sweep waits (groups). root: "", or a directory that stands for / (tests). */
void dt_gpus_detect(struct dt_strs *gpus, const char *root, struct dt_groups *groups);

/* Appends the model of each GPU of which the kernel's driver tells, and sets version (to be freed)
 * to the driver's, "" when that cannot be found out. */
void dt_gpus_describe(struct dt_strs *models, char **version, const char *root);

#endif
