#include "runtime/base/gpuway.h"

#include <string.h>

static const char *const names[DT_GPU_WAYS] = { "auto", "staging", "nccl", "shared" };

const char *dt_gpu_way_name(enum dt_gpu_way way)
{
    return (unsigned)way < DT_GPU_WAYS ? names[way] : "?";
}

enum dt_gpu_way dt_gpu_way_find(const char *name)
{
    int way = 0;

    while (way < DT_GPU_WAYS && strcmp(names[way], name) != 0)
        way++;
    return (enum dt_gpu_way)way;
}
