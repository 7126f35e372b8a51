#include "launcher/place/tfcluster.h"

#include <stdlib.h>

#include "tests/unit/unit.h"

static void workers_are_listed_by_rank(void **state)
{
    const char *addrs[] = { "10.0.0.1", "10.0.0.1", "fe80::1", "host2" };
    const uint16_t ports[] = { 20001, 20002, 65535, 1 };
    char *text = dt_tfcluster(addrs, ports, 4);

    (void)state;
    assert_string_equal(text, "{\"worker\":[\"10.0.0.1:20001\",\"10.0.0.1:20002\","
                              "\"[fe80::1]:65535\",\"host2:1\"]}");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_are_listed_by_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
