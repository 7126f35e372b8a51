/* The configuration of NCCL 2.28. Written by hand: no test compares it yet. */
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
};

/* Does it ask for a communicator that blocks? Of a program's configuration NCCL takes what `size`
 * covers and `version` knows; NULL is the default. */
ncclResult_t standin_parse_config(const ncclConfig_t *config, bool *blocking);

#endif
