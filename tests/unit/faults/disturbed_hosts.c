/* System calls that fail, in a rank that calls another host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/checks.h"
#include "tests/unit/faults/failing.h"
#include "tests/unit/faults/trial.h"

static void system_calls_may_fail_between_hosts(void **state)
{
    (void)state;
    failing_try("2 1", 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKS("43", system_calls_may_fail_between_hosts),
    };

    return cmocka_run_group_tests(tests, trial_set_up, trial_tear_down);
}
