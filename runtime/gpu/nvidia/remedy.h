/* What a user can do about an error of CUDA or of NCCL. Pure. */
#ifndef DT_GPU_NVIDIA_REMEDY_H
#define DT_GPU_NVIDIA_REMEDY_H

#include "runtime/gpu/nvidia/abi_cuda.h"
#include "runtime/gpu/nvidia/abi_nccl.h"

/* A clause for an error of this function of the driver; "": none is known. */
const char *dt_cuda_remedy(const char *function, CUresult error);
/* A clause for a failure of NCCL, from NCCL's own text about it. */
const char *dt_nccl_remedy(const char *said);

/* Returns "ncclSystemError", for example. */
const char *dt_nccl_error_name(ncclResult_t error);

#endif
