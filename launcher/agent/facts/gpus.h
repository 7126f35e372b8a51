/* The GPUs of this host, as CUDA_VISIBLE_DEVICES names them. */
#ifndef DT_AGENT_FACTS_GPUS_H
#define DT_AGENT_FACTS_GPUS_H

#include "launcher/agent/sweep/sweep.h"
#include "runtime/wire/codec.h"

/* Appends the index of each GPU that the kernel's driver shows and whose device file this process
 * can see (a container may see only some); or, if one of them is divided into MIG devices, the UUID
 * of each MIG device and of each other GPU. If neither the driver nor nvidia-smi shows GPUs, counts
 * device files. gpus is empty before. May wait up to 6 s for nvidia-smi, so call it before the loop
 * runs. If nvidia-smi cannot be ended, it stays a child, and no sweep waits for it (groups). root
 * is "", or a directory that stands for / in tests. */
void dt_gpus_detect(struct dt_strs *gpus, const char *root, struct dt_groups *groups);

/* Appends the model of each GPU that the kernel's driver reports. Sets version, which the caller
 * frees, to the driver's version, or "" if it is unknown. */
void dt_gpus_describe(struct dt_strs *models, char **version, const char *root);

#endif
