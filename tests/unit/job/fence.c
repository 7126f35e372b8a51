/* Data that hosts contribute to a barrier of MPI ranks is handed out when all have contributed. */
#include <string.h>

#include "launcher/job/state/fence.h"
#include "tests/unit/unit.h"

static void all_data_is_handed_out_when_all_hosts_have_contributed(void **state)
{
    struct dt_fence f = { 0 };

    (void)state;
    dt_fence_begin(&f, 3);
    for (int round = 0; round < 2; round++) {
        assert_false(dt_fence_arrive(&f, 2, "c", 1));
        assert_false(dt_fence_arrive(&f, 0, "", 0));
        assert_true(dt_fence_arrive(&f, 1, "bb", 2));
        assert_int_equal(f.data.len, 3);
        assert_string_equal(dt_strbuf_text(&f.data), "cbb");
        dt_fence_next(&f);
    }
    dt_fence_free(&f);
}

static void a_host_counts_once_and_others_do_not_count(void **state)
{
    struct dt_fence f = { 0 };

    (void)state;
    assert_false(dt_fence_arrive(&f, 0, "x", 1)); /* no generation has begun */
    dt_fence_begin(&f, 2);
    assert_false(dt_fence_arrive(&f, 0, "a", 1));
    assert_false(dt_fence_arrive(&f, 0, "a", 1));
    assert_false(dt_fence_arrive(&f, 2, "z", 1));
    assert_true(dt_fence_arrive(&f, 1, "b", 1));
    assert_string_equal(dt_strbuf_text(&f.data), "ab");
    dt_fence_free(&f);
}

static void a_new_generation_forgets_the_old_one(void **state)
{
    struct dt_fence f = { 0 };

    (void)state;
    dt_fence_begin(&f, 2);
    dt_fence_arrive(&f, 0, "old", 3);
    dt_fence_begin(&f, 1);
    assert_true(dt_fence_arrive(&f, 0, "new", 3));
    assert_string_equal(dt_strbuf_text(&f.data), "new");
    dt_fence_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_data_is_handed_out_when_all_hosts_have_contributed),
        cmocka_unit_test(a_host_counts_once_and_others_do_not_count),
        cmocka_unit_test(a_new_generation_forgets_the_old_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
