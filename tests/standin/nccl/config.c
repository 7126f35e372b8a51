#include "tests/standin/nccl/config.h"

#include <stddef.h>
#include <string.h>

#include "tests/standin/nccl/comm.h"
#include "tests/standin/nccl/errors.h"

/* The values of fields that the program leaves alone. */
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
    .graphUsageMode = NCCL_CONFIG_UNDEF_INT,
    .numRmaCtx = NCCL_CONFIG_UNDEF_INT,
    .maxP2pPeers = NCCL_CONFIG_UNDEF_INT,
    .graphStreamOrdering = NCCL_CONFIG_UNDEF_INT,
};

/* The fields that NCCL checks, in the order of its checks. since: the oldest configuration that has
 * the field. */
static const struct attribute {
    const char *name;
    size_t offset;
    int least, most;
    unsigned since;
} dti_attributes[] = {
#define ATTRIBUTE(name, least, most, since)                                                        \
    {                                                                                              \
#name, offsetof(struct standin_config, name), least, most, since                           \
    }
    ATTRIBUTE(blocking, 0, 1, 21400),
    ATTRIBUTE(cgaClusterSize, 0, INT_MAX, 21700),
    ATTRIBUTE(minCTAs, 1, INT_MAX, 21700),
    ATTRIBUTE(maxCTAs, 1, INT_MAX, 21700),
    ATTRIBUTE(splitShare, 0, 1, 0),
    ATTRIBUTE(trafficClass, INT_MIN, INT_MAX, 22500),
    ATTRIBUTE(collnetEnable, 0, 1, 22700),
    ATTRIBUTE(CTAPolicy, 0, 2, 22700),
    ATTRIBUTE(shrinkShare, 0, 1, 22700),
    ATTRIBUTE(nvlsCTAs, 1, INT_MAX, 22700),
    ATTRIBUTE(nChannelsPerNetPeer, 1, 64, 22800),
    ATTRIBUTE(nvlinkCentricSched, 0, 1, 22800),
    ATTRIBUTE(graphUsageMode, 0, 2, 22900),
    ATTRIBUTE(numRmaCtx, 0, INT_MAX, 22900),
    ATTRIBUTE(maxP2pPeers, 1, INT_MAX, 23000),
    ATTRIBUTE(graphStreamOrdering, 0, 1, 23005),
#undef ATTRIBUTE
};

enum { ATTRIBUTES = sizeof(dti_attributes) / sizeof(dti_attributes[0]) };

static int *value_of(struct standin_config *config, const struct attribute *attribute)
{
    return (int *)(void *)((char *)config + attribute->offset);
}

/* For the library version that this one pretends to be. */
static size_t own_size(int version)
{
    static const struct {
        int since;
        size_t size;
    } sizes[] = { { 23000, 96 }, { 22900, 88 }, { 22800, 80 }, { 22700, 72 }, { 0, 48 } };
    int i = 0;

    while (version < sizes[i].since)
        i++;
    return sizes[i].size;
}

static void forget_unknown(struct standin_config *config, int library)
{
    for (int i = 0; i < ATTRIBUTES; i++) {
        const struct attribute *a = &dti_attributes[i];
        bool takes_all =
            library < 22700 && a->offset == offsetof(struct standin_config, trafficClass);

        if (config->version < a->since && !takes_all)
            *value_of(config, a) = NCCL_CONFIG_UNDEF_INT;
    }
}

static ncclResult_t check(struct standin_config *config, int library)
{
    for (int i = 0; i < ATTRIBUTES; i++) {
        const struct attribute *a = &dti_attributes[i];
        int value = *value_of(config, a);

        if (value != NCCL_CONFIG_UNDEF_INT && (value < a->least || value > a->most))
            return standin_warn(ncclInvalidArgument, "Invalid config %s attribute value %d",
                                a->name, value);
    }
    if (config->minCTAs > config->maxCTAs)
        return standin_warn(ncclInvalidArgument,
                            "Invalid config min/max channels attribute value %d/%d",
                            config->minCTAs, config->maxCTAs);
    if (library >= 22600 && config->trafficClass != NCCL_CONFIG_UNDEF_INT)
        standin_report("a communicator has the traffic class %d", config->trafficClass);
    return ncclSuccess;
}

/* NCCL_COMM_BLOCKING overrides the program's choice. */
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
    size_t known;
    int library;

    *blocking = true;
    if (given) {
        ncclGetVersion(&library);
        known = own_size(library);
        memcpy(&config, given, given->size < known ? given->size : known);
        if (config.magic != DT_NCCL_CONFIG_MAGIC)
            return standin_warn(ncclInvalidArgument, "ncclConfig_t argument not initialized via "
                                                     "NCCL_CONFIG_INITIALIZER");
        forget_unknown(&config, library);
        result = check(&config, library);
        if (result)
            return result;
        *blocking = config.blocking != 0;
    }
    apply_environment(blocking);
    return ncclSuccess;
}
