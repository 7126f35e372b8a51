/* Compares our declarations of CUDA's driver and of NCCL with NVIDIA's headers. */
#include "tests/unit/gpu/gpuabi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/gpu/nvidia/abi_cuda.h"
#include "runtime/gpu/nvidia/abi_nccl.h"

#define NAME own_facts
static
#include "tests/unit/gpu/gpuabi_facts.h"

    static void
    need_real_headers(void)
{
    if (!have_real_headers) {
        print_message("no cuda.h and nccl.h\n");
        skip();
    }
}

static const struct fact *own_fact(const char *name)
{
    const struct fact *fact = own_facts;

    while (fact->name && strcmp(fact->name, name) != 0)
        fact++;
    return fact;
}

static void sizes_offsets_and_constants_match_nvidias(void **state)
{
    size_t compared = 0;

    (void)state;
    need_real_headers();
    for (const struct fact *real = real_facts; real->name; real++, compared++) {
        const struct fact *own = own_fact(real->name);

        if (!own->name || own->value != real->value)
            fail_msg("%s is %llu, but %llu in NVIDIA's headers", real->name, own->value,
                     real->value);
    }
    assert_true(compared > 100);
}

static void function_types_match_nvidias(void **state)
{
    (void)state;
    need_real_headers();
    assert_non_null(unlike_functions[0]);
    for (const char *const *name = unlike_functions; *name; name++)
        if (**name)
            fail_msg("the type of %s differs from that in NVIDIA's headers", *name);
}

/* ncclConfig_t in each version of nccl.h from 2.18.1 to 2.30.7. New versions only append. */
static const struct layout {
    int since;
    size_t size;
} layouts[] = { { 21801, 48 }, { 22700, 72 }, { 22800, 80 }, { 22900, 88 }, { 23000, 96 } };

enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static const struct field {
    const char *name;
    size_t offset;
    int since; /* the first library version that reads it */
} fields[] = {
    { "blocking", 16, 21801 },
    { "cgaClusterSize", 20, 21801 },
    { "minCTAs", 24, 21801 },
    { "maxCTAs", 28, 21801 },
    { "netName", 32, 21801 },
    { "splitShare", 40, 21801 },
    { "trafficClass", 44, 22602 }, /* 2.26 reads it whatever `version` is */
    { "commName", 48, 22703 },
    { "collnetEnable", 56, 22703 },
    { "CTAPolicy", 60, 22703 },
    { "shrinkShare", 64, 22703 },
    { "nvlsCTAs", 68, 22703 },
    { "nChannelsPerNetPeer", 72, 22803 },
    { "nvlinkCentricSched", 76, 22803 },
    { "graphUsageMode", 80, 22902 },
    { "numRmaCtx", 84, 22902 },
    { "maxP2pPeers", 88, 23003 }, /* and graphStreamOrdering from 2.30.5 on, in its padding */
};

enum { FIELDS = sizeof fields / sizeof *fields };

static size_t size_in(int version)
{
    int i = LAYOUTS - 1;

    while (i > 0 && version < layouts[i].since)
        i--;
    return layouts[i].size;
}

static void the_table_of_configurations_matches_nvidias(void **state)
{
    const struct fact *real = real_config;
    int version;

    (void)state;
    need_real_headers();
    version = (int)real++->value;
    assert_int_equal(real++->value, size_in(version));
    for (int i = 0; i < FIELDS && fields[i].since <= version; i++, real++) {
        assert_string_equal(real->name, fields[i].name);
        assert_int_equal(real->value, fields[i].offset);
    }
    assert_null(real->name);
}

/* Of our configuration, no version of the library reads a field that we have not set. */
static void no_version_reads_unset_fields(void **state)
{
    static const ncclConfig_t config = DT_NCCL_CONFIG_INITIALIZER;
    size_t end = offsetof(ncclConfig_t, blocking);

    (void)state;
    assert_int_equal(config.size, layouts[0].size);
    for (int i = 0; i < FIELDS && fields[i].offset < config.size; i++) {
        bool pointer = strcmp(fields[i].name, "netName") == 0;
        const char *at = (const char *)&config + fields[i].offset;
        int undefined = NCCL_CONFIG_UNDEF_INT;
        const void *none = NULL;

        assert_int_equal(fields[i].offset, end);
        assert_memory_equal(at, pointer ? (const void *)&none : &undefined, pointer ? 8 : 4);
        end += pointer ? 8 : 4;
    }
    assert_int_equal(end, config.size);
}

/* NCCL copies `size` bytes, and trusts the fields that `version` knows. */
static void the_configuration_is_that_of_nccl_2_18(void **state)
{
    static const ncclConfig_t config = DT_NCCL_CONFIG_INITIALIZER;

    (void)state;
    assert_int_equal(sizeof(config), 48);
    assert_int_equal(config.size, 48);
    assert_int_equal(config.magic, 0xcafebeef);
    assert_int_equal(config.version, 2 * 10000 + 18 * 100);
    assert_int_equal(offsetof(ncclConfig_t, splitShare), 40);
    assert_int_equal(config.undefined, NCCL_CONFIG_UNDEF_INT);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_offsets_and_constants_match_nvidias),
        cmocka_unit_test(function_types_match_nvidias),
        cmocka_unit_test(the_table_of_configurations_matches_nvidias),
        cmocka_unit_test(no_version_reads_unset_fields),
        cmocka_unit_test(the_configuration_is_that_of_nccl_2_18),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
