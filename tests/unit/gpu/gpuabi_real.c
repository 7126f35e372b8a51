/* The half of tests/unit/gpu/gpuabi that includes NVIDIA's headers, if there are any. */
#include "tests/unit/gpu/gpuabi.h"

#include <stddef.h>

#if defined(__has_include)
#if __has_include(<cuda.h>) && __has_include(<nccl.h>)
#define REAL
#endif
#endif

#ifdef REAL
#define __CUDA_BF16_TYPES_EXIST__ /* makes NCCL before 2.24 declare ncclBfloat16 in C */
#include <cuda.h>
#include <nccl.h>

#if CUDA_VERSION >= 13000 /* the library still has it, but its header does not */
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
#endif

#include "runtime/gpu/nvidia/abi_cuda.h"
#include "runtime/gpu/nvidia/abi_nccl.h"

#define NAME real_facts
#include "tests/unit/gpu/gpuabi_facts.h"

/* For the version of these headers; gpuabi.c has the table of all versions. */
#define FIELD(name)                                                                                \
    {                                                                                              \
#name, offsetof(ncclConfig_t, name)                                                        \
    }
const struct fact real_config[] = {
    { "version", NCCL_VERSION_CODE },
    { "size", sizeof(ncclConfig_t) },
    FIELD(blocking),
    FIELD(cgaClusterSize),
    FIELD(minCTAs),
    FIELD(maxCTAs),
    FIELD(netName),
    FIELD(splitShare),
#if NCCL_VERSION_CODE >= 22600
    FIELD(trafficClass),
#endif
#if NCCL_VERSION_CODE >= 22700
    FIELD(commName),
    FIELD(collnetEnable),
    FIELD(CTAPolicy),
    FIELD(shrinkShare),
    FIELD(nvlsCTAs),
#endif
#if NCCL_VERSION_CODE >= 22800
    FIELD(nChannelsPerNetPeer),
    FIELD(nvlinkCentricSched),
#endif
#if NCCL_VERSION_CODE >= 22900
    FIELD(graphUsageMode),
    FIELD(numRmaCtx),
#endif
#if NCCL_VERSION_CODE >= 23000
    FIELD(maxP2pPeers),
#endif
    { NULL, 0 },
};
#undef FIELD

_Static_assert(sizeof(struct dt_nccl_config) <= sizeof(ncclConfig_t), "newer layouts only grow");
const int have_real_headers = 1;

#define UNLIKE(result, name, arguments)                                                            \
    __builtin_types_compatible_p(__typeof__(name), result arguments) ? "" : #name,
const char *const unlike_functions[] = { DT_CUDA_FUNCTIONS(UNLIKE) DT_NCCL_FUNCTIONS(UNLIKE)
                                             DT_NCCL_NEWER_FUNCTIONS(UNLIKE) NULL };
#else
const int have_real_headers = 0;
const struct fact real_facts[] = { { NULL, 0 } };
const struct fact real_config[] = { { NULL, 0 } };
const char *const unlike_functions[] = { NULL };
#endif
