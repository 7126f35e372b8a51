/* A CUDA driver library for tests: its device memory is ordinary memory, in two arenas. */
#include "tests/fake/cuda.h"

#include <stdint.h>

enum { MEMORY_TYPE = 2, IS_MANAGED = 8, DEVICE = 2, INVALID_VALUE = 1 };

static char dti_device[FAKE_BYTES], dti_managed[FAKE_BYTES];

static int inside(const char *arena, unsigned long long ptr)
{
    return ptr - (uintptr_t)arena < FAKE_BYTES;
}

__attribute__((visibility("default"))) int cuPointerGetAttribute(void *data, int attribute,
                                                                 unsigned long long ptr)
{
    if (!inside(dti_device, ptr) && !inside(dti_managed, ptr))
        return INVALID_VALUE;
    if (attribute == MEMORY_TYPE)
        *(unsigned *)data = DEVICE;
    else if (attribute == IS_MANAGED)
        *(unsigned *)data = (unsigned)inside(dti_managed, ptr);
    else
        return INVALID_VALUE;
    return 0;
}

__attribute__((visibility("default"))) void *fake_device_memory(void)
{
    return dti_device;
}

__attribute__((visibility("default"))) void *fake_managed_memory(void)
{
    return dti_managed;
}
