#include <string.h>

#include "launcher/job/job_fsm.h"
#include "tests/unit/unit.h"

/* The whole table, one letter per cell, so that a change of it shows as what it is. Rows: states;
 * columns: idle, started, spawn failed, rank failed, host lost, settled, stop, kill, closed. */
static const char *const want[DT_JOB_STATES] = {
    [DT_JOB_CONNECTING] = "L.....AA.", /**/
    [DT_JOB_STARTING] = "FRXCC.SK.",   /**/
    [DT_JOB_RUNNING] = "F..CC.SK.",    /**/
    [DT_JOB_FAILING] = "D.X..DSK.",    /**/
    [DT_JOB_RECOVERING] = "r...o.SK.", /**/
    [DT_JOB_STOPPING] = "F......K.",   /**/
    [DT_JOB_ENDING] = "......ccE",     /**/
};

static const char letters[] = {
    [DT_ACT_NONE] = '.',     [DT_ACT_LAUNCH] = 'L',    [DT_ACT_RUN] = 'R',
    [DT_ACT_REFUSE] = 'X',   [DT_ACT_COLLECT] = 'C',   [DT_ACT_DECIDE] = 'D',
    [DT_ACT_RELAUNCH] = 'r', [DT_ACT_RECONNECT] = 'o', [DT_ACT_ABANDON] = 'A',
    [DT_ACT_STOP] = 'S',     [DT_ACT_KILL] = 'K',      [DT_ACT_FINISH] = 'F',
    [DT_ACT_CUT] = 'c',      [DT_ACT_LEAVE] = 'E',
};

static void test_every_cell(void **state)
{
    (void)state;
    for (int s = 0; s < DT_JOB_STATES; s++) {
        assert_int_equal(strlen(want[s]), DT_JOB_EVENTS);
        for (int e = 0; e < DT_JOB_EVENTS; e++) {
            enum dt_job_action action = dt_job_fsm((enum dt_job_state)s, (enum dt_job_event)e);

            if ((size_t)action >= sizeof letters || letters[action] != want[s][e])
                fail_msg("state %d, event %d: action %d", s, e, action);
        }
    }
}

/* Whatever the job is doing, the user can end it, and insisting ends it at once. */
static void test_user_is_always_heard(void **state)
{
    (void)state;
    for (int s = 0; s < DT_JOB_STATES; s++) {
        assert_int_not_equal(dt_job_fsm((enum dt_job_state)s, DT_EV_KILL), DT_ACT_NONE);
        if (s != DT_JOB_STOPPING)
            assert_int_not_equal(dt_job_fsm((enum dt_job_state)s, DT_EV_STOP), DT_ACT_NONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cell),
        cmocka_unit_test(test_user_is_always_heard),
    };

    return cmocka_run_group_tests_name("job_fsm", tests, NULL, NULL);
}
