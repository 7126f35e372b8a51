/* System calls fail, in ranks of one host, or in one of two ranks on two hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/checks.h"
#include "tests/unit/faults/failing.h"
#include "tests/unit/faults/trial.h"

static void system_calls_may_fail_on_one_host(void **state)
{
    (void)state;
    failing_try("2", 1, NULL);
}

static void system_calls_may_fail_in_a_rank_that_accepts(void **state)
{
    (void)state;
    failing_try("1 1", 1, "accept4 realloc recv send");
}

static void system_calls_may_fail_in_a_rank_that_connects_twice(void **state)
{
    (void)state;
    testjob_streams(2);
    failing_try("1 1", 0, "connect recv send");
    testjob_streams(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKS("43", system_calls_may_fail_on_one_host),
        CHECKS("43", system_calls_may_fail_in_a_rank_that_accepts),
        CHECKS("43", system_calls_may_fail_in_a_rank_that_connects_twice),
    };

    return cmocka_run_group_tests(tests, trial_set_up, trial_tear_down);
}
