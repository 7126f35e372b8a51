/* How calls on GPU memory are executed, by name. Pure. */
#ifndef DT_BASE_GPUPATH_H
#define DT_BASE_GPUPATH_H

enum dt_gpu_path {
    DT_GPU_AUTO, /* not chosen yet */
    DT_GPU_STAGING,
    DT_GPU_NCCL,
    DT_GPU_SHARED,
    DT_GPU_PATHS
};

/* The name as in DTRUN_DEVICE, such as "auto". */
const char *dt_gpu_path_name(enum dt_gpu_path path);
/* DT_GPU_PATHS: no such name. */
enum dt_gpu_path dt_gpu_path_find(const char *name);

#endif
