#include "launcher/place/frameworks_go.h"

#include <stdlib.h>

#include "launcher/place/frameworks.h"
#include "tests/unit/unit.h"

/* Ranks 0 and 3 run on the first host, 1 on the second, 2 and 4 on the third. */
static uint32_t dti_first[] = { 0, 3 }, dti_second[] = { 1 }, dti_third[] = { 2, 4 };
static uint32_t dti_node_of[] = { 0, 1, 2, 0, 2 };
static struct dt_plan_node dti_nodes[] = {
    { .node_rank = 0, .ranks = { dti_first, 2 } },
    { .node_rank = 1, .ranks = { dti_second, 1 } },
    { .node_rank = 2, .ranks = { dti_third, 2 } },
};
static const struct dt_plan dti_plan = {
    .np = 5, .nprocs = 5, .nodes = dti_nodes, .nnodes = 3, .node_of = dti_node_of
};
static const struct dt_frameworks_node dti_net[] = { { "10.0.0.1", 20000 },
                                                     { "fe80::1", 65532 },
                                                     { "host3", 1 } };

static void tensorflow_is_told_all_workers_by_rank(void **state)
{
    struct dt_msg_go go = { 0 };

    (void)state;
    dt_frameworks_go_fill(&go, DT_FRAMEWORK_MPI | DT_FRAMEWORK_TENSORFLOW, &dti_plan, dti_net);
    assert_string_equal(go.tf_cluster, "{\"worker\":[\"10.0.0.1:20003\",\"[fe80::1]:65535\","
                                       "\"host3:4\",\"10.0.0.1:20004\",\"host3:5\"]}");
    assert_int_equal(go.local_sizes.n, 0);
    dt_frameworks_go_free(&go);
}

static void ports_for_ranks_end_at_the_last_port(void **state)
{
    static const struct {
        uint16_t free_port;
        uint32_t ranks;
    } cases[] = { { 0, 65533 }, { 20000, 45533 }, { 65532, 1 }, { 65533, 0 }, { 65535, 0 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_frameworks_node node = { "a", cases[i].free_port };

        assert_int_equal(dt_frameworks_go_ports(&node), cases[i].ranks);
    }
}

static void with_a_rendezvous_the_number_of_ranks_on_each_host_is_told(void **state)
{
    struct dt_msg_go go = { .rendezvous_port = 7 };

    (void)state;
    dt_frameworks_go_fill(&go, 0, &dti_plan, dti_net);
    assert_string_equal(go.tf_cluster, "");
    assert_int_equal(go.local_sizes.n, 3);
    assert_int_equal(go.local_sizes.v[0], 2);
    assert_int_equal(go.local_sizes.v[1], 1);
    assert_int_equal(go.local_sizes.v[2], 2);
    dt_frameworks_go_free(&go);
}

static void a_rendezvous_needs_ipv4(void **state)
{
    (void)state;
    assert_null(dt_frameworks_go_lacks("10.0.0.1"));
    assert_null(dt_frameworks_go_lacks("host3"));
    assert_string_equal(dt_frameworks_go_lacks("fd77::1"), "Horovod needs IPv4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensorflow_is_told_all_workers_by_rank),
        cmocka_unit_test(ports_for_ranks_end_at_the_last_port),
        cmocka_unit_test(with_a_rendezvous_the_number_of_ranks_on_each_host_is_told),
        cmocka_unit_test(a_rendezvous_needs_ipv4),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
