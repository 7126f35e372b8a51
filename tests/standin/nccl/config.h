/* The configuration of NCCL 2.30. Each older one is a prefix of it. tests/unit/gpu/gpuabi has the
 * size of each version, and compares it with the real nccl.h. */
#ifndef TESTS_STANDIN_NCCL_CONFIG_H
#define TESTS_STANDIN_NCCL_CONFIG_H

#include <stdbool.h>

#include "runtime/gpu/nvidia/abi_nccl.h"

struct standin_config {
    size_t size;
    unsigned magic, version;
    int blocking, cgaClusterSize, minCTAs, maxCTAs;
    const char *netName;
    int splitShare, trafficClass;
    const char *commName;
    int collnetEnable, CTAPolicy, shrinkShare, nvlsCTAs, nChannelsPerNetPeer, nvlinkCentricSched;
    int graphUsageMode, numRmaCtx, maxP2pPeers, graphStreamOrdering;
};

/* Sets whether the configuration asks for a blocking communicator. NCCL reads the fields that both
 * `size` and its own layout cover. Of these, the ones that `version` does not know become
 * undefined, except trafficClass: NCCL 2.26 takes it from every configuration of 48 bytes. NULL
 * means the default. A traffic class is reported, since no tested program asks for one. */
ncclResult_t standin_parse_config(const ncclConfig_t *config, bool *blocking);

#endif
