/* NVIDIA's NCCL, found at run time: the library that the program has loaded, else the one of the
 * Python packages that it uses, else the system's. DTRUN_NCCL names another file. */
#ifndef DT_GPU_NVIDIA_NCCLAPI_H
#define DT_GPU_NVIDIA_NCCLAPI_H

#include "runtime/gpu/nvidia/abi_nccl.h"

#define DT_NCCL_MEMBER(result, name, arguments) result(*name) arguments;

struct dt_ncclapi {
    DT_NCCL_FUNCTIONS(DT_NCCL_MEMBER)
    int version; /* 22809 */
};

/* NULL: there is none that can be used, and *why says why not. Looks once in a process. */
const struct dt_ncclapi *dt_ncclapi(const char **why);

#endif
