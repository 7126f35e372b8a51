/* Our declarations of CUDA's driver and of NCCL against NVIDIA's headers. */
#include "tests/unit/gpu/gpuabi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

static void sizes_offsets_and_constants_are_nvidias(void **state)
{
    size_t compared = 0;

    (void)state;
    need_real_headers();
    for (const struct fact *real = real_facts; real->name; real++, compared++) {
        const struct fact *own = own_fact(real->name);

        if (!own->name || own->value != real->value)
            fail_msg("%s is %llu, in NVIDIA's headers %llu", real->name, own->value, real->value);
    }
    assert_true(compared > 100);
}

static void functions_have_nvidias_types(void **state)
{
    (void)state;
    need_real_headers();
    assert_non_null(unlike_functions[0]);
    for (const char *const *name = unlike_functions; *name; name++)
        if (**name)
            fail_msg("%s has another type in NVIDIA's headers", *name);
}

/* NCCL copies `size` bytes and believes of them what `version` knows. */
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
        cmocka_unit_test(sizes_offsets_and_constants_are_nvidias),
        cmocka_unit_test(functions_have_nvidias_types),
        cmocka_unit_test(the_configuration_is_that_of_nccl_2_18),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
