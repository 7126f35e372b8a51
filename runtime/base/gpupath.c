#include "runtime/base/gpupath.h"

#include <string.h>

static const char *const names[DT_GPU_PATHS] = { "auto", "staging", "nccl", "shared" };

const char *dt_gpu_path_name(enum dt_gpu_path path)
{
    return (unsigned)path < DT_GPU_PATHS ? names[path] : "?";
}

enum dt_gpu_path dt_gpu_path_find(const char *name)
{
    int path = 0;

    while (path < DT_GPU_PATHS && strcmp(names[path], name) != 0)
        path++;
    return (enum dt_gpu_path)path;
}
