/* NVIDIA's NCCL, found at run time: the library that the program has loaded, else the one in the
 * Python packages that it uses, else the system's. DTRUN_NCCL names another file. */
#ifndef DT_GPU_NVIDIA_NCCLAPI_H
#define DT_GPU_NVIDIA_NCCLAPI_H

#include <stdbool.h>

#include "runtime/gpu/nvidia/abi_nccl.h"

/* The first version whose ncclCommAbort, inside a group, frees the communicator when that ends. */
enum { DT_NCCL_ABORTS_IN_GROUPS = 22200 };

#define DT_NCCL_MEMBER(result, name, arguments) result(*name) arguments;

struct dt_ncclapi {
    DT_NCCL_FUNCTIONS(DT_NCCL_MEMBER)
    DT_NCCL_NEWER_FUNCTIONS(DT_NCCL_MEMBER) /* NULL if the library lacks it */
    int version;                            /* such as 22809 */
    bool blocks; /* its calls return once NCCL has launched them; else NCCL's own thread launches */
    bool splits; /* ncclCommSplit blocks, and parent and child share nothing */
};

/* Returns NULL if no library can be used, and sets *why. Looks only once in a process. */
const struct dt_ncclapi *dt_ncclapi(const char **why);
/* The library that dt_ncclapi has found. */
static inline const struct dt_ncclapi *dt_nccl(void)
{
    const char *why;

    return dt_ncclapi(&why);
}

/* A call that NCCL makes in a thread of its own returns ncclInProgress. */
static inline bool dt_nccl_failed(ncclResult_t r)
{
    return r != ncclSuccess && r != ncclInProgress;
}

#endif
