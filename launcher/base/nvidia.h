/* What the kernel's NVIDIA driver says of the GPUs of this machine. */
#ifndef DT_BASE_NVIDIA_H
#define DT_BASE_NVIDIA_H

#include <stdbool.h>

/* Calls see with the driver's text on each GPU that has a device file here (a container may have
 * been given a part of them), in the order of the bus, as CUDA counts with
 * CUDA_DEVICE_ORDER=PCI_BUS_ID. root: "", or a directory that stands for / (tests). False: there is
 * no such driver. */
bool dt_nvidia_each(const char *root, void (*see)(void *arg, const char *information), void *arg);

/* What stands behind key in such a text, or NULL. */
const char *dt_nvidia_value(const char *information, const char *key);

#endif
