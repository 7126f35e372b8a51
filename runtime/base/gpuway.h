/* How calls on GPU memory are executed, by name. Pure. */
#ifndef DT_BASE_GPUWAY_H
#define DT_BASE_GPUWAY_H

enum dt_gpu_way {
    DT_GPU_AUTO, /* not chosen yet */
    DT_GPU_STAGING,
    DT_GPU_NCCL,
    DT_GPU_SHARED,
    DT_GPU_WAYS
};

/* The name as in DTRUN_DEVICE, such as "auto". */
const char *dt_gpu_way_name(enum dt_gpu_way way);
/* DT_GPU_WAYS: no such name. */
enum dt_gpu_way dt_gpu_way_find(const char *name);

#endif
