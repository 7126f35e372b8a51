/* The part of NCCL's ABI that dtrun uses, declared without NVIDIA's headers: that of NCCL 2.18,
 * which every newer library serves.
 *
 * tests/unit/gpu/gpuabi compares the declarations with the real nccl.h if one is installed. It has
 * passed with each release from 2.18.1 to 2.30.7. If the real header has been included first, only
 * the list of functions and the configuration of 2.18 are declared here. */
#ifndef DT_GPU_NVIDIA_ABI_NCCL_H
#define DT_GPU_NVIDIA_ABI_NCCL_H

#include <limits.h>
#include <stddef.h>

#include "runtime/gpu/nvidia/abi_cuda.h"

#ifndef NCCL_MAJOR

typedef struct ncclComm *ncclComm_t;

#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7
} ncclResult_t;

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_SPLIT_NOCOLOR    -1

/* Operators of ncclRedOpCreatePreMulSum have numbers above these. */
typedef enum {
    ncclSum = 0,
    ncclProd = 1,
    ncclMax = 2,
    ncclMin = 3,
    ncclAvg = 4,
    ncclNumOps = 5,
    ncclMaxRedOp = 0x7fffffff
} ncclRedOp_t;

/* The 8-bit floating-point types came with NCCL 2.24: ncclGetVersion tells whether they can be
 * used. */
typedef enum {
    ncclInt8 = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclFloat32 = 7,
    ncclFloat64 = 8,
    ncclBfloat16 = 9,
    ncclFloat8e4m3 = 10,
    ncclFloat8e5m2 = 11
} ncclDataType_t;

typedef enum { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 } ncclScalarResidence_t;

typedef struct dt_nccl_config ncclConfig_t;

#endif /* NCCL_MAJOR */

/* The configuration of NCCL 2.18. A newer library reads the fields that both `size` covers and
 * `version` knows, and has defaults for the rest. New versions only append:
 *
 *     NCCL      bytes  new fields
 *     2.18-2.25    48
 *     2.26         48  trafficClass, which it reads whatever `version` is
 *     2.27         72  commName, collnetEnable, CTAPolicy, shrinkShare, nvlsCTAs
 *     2.28         80  nChannelsPerNetPeer, nvlinkCentricSched
 *     2.29         88  graphUsageMode, numRmaCtx
 *     2.30         96  maxP2pPeers, graphStreamOrdering */
struct dt_nccl_config {
    size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
    int cgaClusterSize;
    int minCTAs;
    int maxCTAs;
    const char *netName;
    int splitShare;
    int undefined; /* padding in 2.18; newer versions have trafficClass here */
};

#define DT_NCCL_CONFIG_MAGIC   0xcafebeefu
#define DT_NCCL_CONFIG_VERSION 21800u
#define DT_NCCL_CONFIG_INITIALIZER                                                                 \
    {                                                                                              \
        .size = sizeof(struct dt_nccl_config), .magic = DT_NCCL_CONFIG_MAGIC,                      \
        .version = DT_NCCL_CONFIG_VERSION, .blocking = INT_MIN, .cgaClusterSize = INT_MIN,         \
        .minCTAs = INT_MIN, .maxCTAs = INT_MIN, .netName = NULL, .splitShare = INT_MIN,            \
        .undefined = INT_MIN,                                                                      \
    }

/* X(result, symbol, arguments): the symbols as libnccl.so.2 exports them since 2.18. */
/* clang-format off */
#define DT_NCCL_FUNCTIONS(X)                                                                       \
    X(ncclResult_t, ncclGetVersion, (int *version))                                                \
    X(ncclResult_t, ncclGetUniqueId, (ncclUniqueId *id))                                           \
    X(ncclResult_t, ncclCommInitRank, (ncclComm_t *comm, int size, ncclUniqueId id, int rank))     \
    X(ncclResult_t, ncclCommInitRankConfig, (ncclComm_t *comm, int size, ncclUniqueId id,          \
        int rank, ncclConfig_t *config))                                                           \
    X(ncclResult_t, ncclCommSplit, (ncclComm_t comm, int color, int key, ncclComm_t *split,        \
        ncclConfig_t *config))                                                                     \
    X(ncclResult_t, ncclCommFinalize, (ncclComm_t comm))                                           \
    X(ncclResult_t, ncclCommDestroy, (ncclComm_t comm))                                            \
    X(ncclResult_t, ncclCommAbort, (ncclComm_t comm))                                              \
    X(const char *, ncclGetErrorString, (ncclResult_t result))                                     \
    X(const char *, ncclGetLastError, (ncclComm_t comm))                                           \
    X(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t *error))                 \
    X(ncclResult_t, ncclCommCount, (ncclComm_t comm, int *count))                                  \
    X(ncclResult_t, ncclCommCuDevice, (ncclComm_t comm, int *device))                              \
    X(ncclResult_t, ncclCommUserRank, (ncclComm_t comm, int *rank))                                \
    X(ncclResult_t, ncclRedOpCreatePreMulSum, (ncclRedOp_t *op, void *scalar, ncclDataType_t type, \
        ncclScalarResidence_t residence, ncclComm_t comm))                                         \
    X(ncclResult_t, ncclRedOpDestroy, (ncclRedOp_t op, ncclComm_t comm))                           \
    X(ncclResult_t, ncclReduce, (const void *from, void *to, size_t count, ncclDataType_t type,    \
        ncclRedOp_t op, int root, ncclComm_t comm, CUstream stream))                               \
    X(ncclResult_t, ncclBroadcast, (const void *from, void *to, size_t count,                      \
        ncclDataType_t type, int root, ncclComm_t comm, CUstream stream))                          \
    X(ncclResult_t, ncclAllReduce, (const void *from, void *to, size_t count,                      \
        ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, CUstream stream))                    \
    X(ncclResult_t, ncclReduceScatter, (const void *from, void *to, size_t count,                  \
        ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, CUstream stream))                    \
    X(ncclResult_t, ncclAllGather, (const void *from, void *to, size_t count,                      \
        ncclDataType_t type, ncclComm_t comm, CUstream stream))                                    \
    X(ncclResult_t, ncclSend, (const void *from, size_t count, ncclDataType_t type, int peer,      \
        ncclComm_t comm, CUstream stream))                                                         \
    X(ncclResult_t, ncclRecv, (void *to, size_t count, ncclDataType_t type, int peer,              \
        ncclComm_t comm, CUstream stream))                                                         \
    X(ncclResult_t, ncclGroupStart, (void))                                                        \
    X(ncclResult_t, ncclGroupEnd, (void))
/* clang-format on */

/* Exported since 2.19. */
#define DT_NCCL_NEWER_FUNCTIONS(X) X(ncclResult_t, ncclMemFree, (void *memory))

#endif
