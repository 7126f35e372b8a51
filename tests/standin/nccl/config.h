/* The configuration of NCCL 2.30, whose first bytes are that of each older one.
 * tests/unit/gpu/gpuabi has the size of each version, and compares it with the real nccl.h. */
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

/* Does it ask for a communicator that blocks? Of a program's configuration NCCL takes what `size`
 * and its own layout cover. Of that, what `version` does not know becomes undefined, but
 * trafficClass in NCCL 2.26, which takes that from every configuration of 48 bytes. NULL is the
 * default. A traffic class is reported, as no program that is tested asks for one. */
ncclResult_t standin_parse_config(const ncclConfig_t *config, bool *blocking);

#endif
