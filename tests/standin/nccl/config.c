#include "tests/standin/nccl/config.h"

#include <stdlib.h>
#include <string.h>

#include "tests/standin/nccl/errors.h"

/* What a configuration has where nothing is said. */
static const struct standin_config dti_undefined = {
    .blocking = NCCL_CONFIG_UNDEF_INT,
    .cgaClusterSize = NCCL_CONFIG_UNDEF_INT,
    .minCTAs = NCCL_CONFIG_UNDEF_INT,
    .maxCTAs = NCCL_CONFIG_UNDEF_INT,
    .splitShare = NCCL_CONFIG_UNDEF_INT,
    .trafficClass = NCCL_CONFIG_UNDEF_INT,
    .collnetEnable = NCCL_CONFIG_UNDEF_INT,
    .CTAPolicy = NCCL_CONFIG_UNDEF_INT,
    .shrinkShare = NCCL_CONFIG_UNDEF_INT,
    .nvlsCTAs = NCCL_CONFIG_UNDEF_INT,
    .nChannelsPerNetPeer = NCCL_CONFIG_UNDEF_INT,
    .nvlinkCentricSched = NCCL_CONFIG_UNDEF_INT,
};

static ncclResult_t within(const char *name, int value, int least, int most)
{
    if (value == NCCL_CONFIG_UNDEF_INT || (value >= least && value <= most))
        return ncclSuccess;
    return standin_warn(ncclInvalidArgument, "Invalid config %s attribute value %d", name, value);
}

static ncclResult_t check(const struct standin_config *config)
{
    const struct {
        const char *name;
        int value, least, most, since;
    } limits[] = {
        { "blocking", config->blocking, 0, 1, 21400 },
        { "cgaClusterSize", config->cgaClusterSize, 0, INT_MAX, 21700 },
        { "minCTAs", config->minCTAs, 1, INT_MAX, 21700 },
        { "maxCTAs", config->maxCTAs, 1, INT_MAX, 21700 },
        { "splitShare", config->splitShare, 0, 1, 0 },
        { "collnetEnable", config->collnetEnable, 0, 1, 22700 },
        { "CTAPolicy", config->CTAPolicy, 0, 2, 22700 },
        { "shrinkShare", config->shrinkShare, 0, 1, 22700 },
        { "nvlsCTAs", config->nvlsCTAs, 1, INT_MAX, 22700 },
        { "nChannelsPerNetPeer", config->nChannelsPerNetPeer, 1, 64, 22800 },
        { "nvlinkCentricSched", config->nvlinkCentricSched, 0, 1, 22800 },
    };
    ncclResult_t result = ncclSuccess;

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]) && !result; i++)
        if (config->version >= (unsigned)limits[i].since)
            result = within(limits[i].name, limits[i].value, limits[i].least, limits[i].most);
    if (!result && config->version >= 21700 && config->minCTAs > config->maxCTAs)
        result = standin_warn(ncclInvalidArgument,
                              "Invalid config min/max channels attribute value %d/%d",
                              config->minCTAs, config->maxCTAs);
    return result;
}

/* NCCL_COMM_BLOCKING overrides what a program says. */
static void apply_environment(bool *blocking)
{
    long asked = standin_setting("NCCL_COMM_BLOCKING", -1);

    if (asked == 0 || asked == 1)
        *blocking = asked;
}

ncclResult_t standin_parse_config(const ncclConfig_t *given, bool *blocking)
{
    struct standin_config config = dti_undefined;
    ncclResult_t result;

    *blocking = true;
    if (given) {
        memcpy(&config, given, given->size < sizeof(config) ? given->size : sizeof(config));
        if (config.magic != DT_NCCL_CONFIG_MAGIC)
            return standin_warn(ncclInvalidArgument, "ncclConfig_t argument not initialized via "
                                                     "NCCL_CONFIG_INITIALIZER");
        result = check(&config);
        if (result)
            return result;
        *blocking = config.version < 21400 || config.blocking != 0;
    }
    apply_environment(blocking);
    return ncclSuccess;
}
