/* The order in which a process launches calls of several communicators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/gpu/launchorder.h"

static void a_launch_waits_for_lower_proposals(void **state)
{
    struct dt_launchorder_call a = { 0 }, b = { 0 };

    (void)state;
    dt_launchorder_propose(&a, 1);
    dt_launchorder_propose(&b, 2);
    assert_true(a.stamp < b.stamp);
    dt_launchorder_agree(&b, b.stamp);
    assert_false(dt_launchorder_may(&b));
    dt_launchorder_agree(&a, b.stamp + 1);
    assert_true(dt_launchorder_may(&b));
    assert_false(dt_launchorder_may(&a));
    dt_launchorder_end(&b);
    assert_true(dt_launchorder_may(&a));
    dt_launchorder_end(&a);
}

static void with_equal_stamps_the_lower_communicator_goes_first(void **state)
{
    struct dt_launchorder_call a = { 0 }, b = { 0 };

    (void)state;
    dt_launchorder_propose(&b, 2);
    dt_launchorder_propose(&a, 1);
    dt_launchorder_agree(&a, a.stamp + 10);
    dt_launchorder_agree(&b, a.stamp);
    assert_true(dt_launchorder_may(&a));
    assert_false(dt_launchorder_may(&b));
    dt_launchorder_end(&a);
    assert_true(dt_launchorder_may(&b));
    dt_launchorder_end(&b);
}

static void proposals_exceed_every_known_stamp(void **state)
{
    struct dt_launchorder_call a = { 0 }, b = { 0 };
    int64_t far;

    (void)state;
    dt_launchorder_propose(&a, 1);
    far = a.stamp + 1000;
    dt_launchorder_agree(&a, far);
    dt_launchorder_propose(&b, 2);
    assert_true(b.stamp > far);
    dt_launchorder_end(&a);
    dt_launchorder_end(&b);
}

static void a_launch_without_a_place_can_end(void **state)
{
    struct dt_launchorder_call a = { 0 }, b = { 0 };

    (void)state;
    dt_launchorder_end(&a);
    dt_launchorder_propose(&b, 2);
    dt_launchorder_end(&b);
    dt_launchorder_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launch_waits_for_lower_proposals),
        cmocka_unit_test(with_equal_stamps_the_lower_communicator_goes_first),
        cmocka_unit_test(proposals_exceed_every_known_stamp),
        cmocka_unit_test(a_launch_without_a_place_can_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
