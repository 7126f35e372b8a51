/* What the kernel's NVIDIA driver says about the GPUs of this machine. */
#ifndef DT_BASE_NVIDIA_H
#define DT_BASE_NVIDIA_H

#include <stdbool.h>

/* Calls see with the driver's text for each GPU that has a device file here (a container may have
 * only some of them). The order is that of the PCI bus, as CUDA counts with
 * CUDA_DEVICE_ORDER=PCI_BUS_ID. root is "", or a directory that stands for / in tests. Returns
 * false if there is no such driver. */
bool dt_nvidia_each(const char *root, void (*see)(void *arg, const char *information), void *arg);

/* Returns the value of key in such a text, or NULL. */
const char *dt_nvidia_value(const char *information, const char *key);

#endif
