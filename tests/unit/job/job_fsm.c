#include <string.h>

#include "launcher/job/core/job_fsm.h"
#include "tests/unit/unit.h"

/* The whole table, one letter for each cell, so that a change of it is easy to see. Rows are
 * states. Columns: idle, started, spawn failed, rank failed, host lost, settled, stop, kill,
 * closed; usable, unusable, unreachable, restart, failed, harmless, harmless early. */
static const char *const want[DT_JOB_STATES] = {
    [DT_JOB_CONNECTING] = "L.....AA.BF.....", /**/
    [DT_JOB_STARTING] = "FRXCC.SK...kk...",   /**/
    [DT_JOB_RUNNING] = "F..CC.SK....k...",    /**/
    [DT_JOB_FAILING] = "D.X..DSK....kfgg",    /**/
    [DT_JOB_RECOVERING] = "r...o.SK.B...f..", /**/
    [DT_JOB_STOPPING] = "F......K........",   /**/
    [DT_JOB_ENDING] = "......ccE.......",     /**/
    [DT_JOB_OVER] = "................",       /**/
};

static const char letters[] = {
    [DT_ACT_NONE] = '.',     [DT_ACT_CHECK_HOSTS] = 'L', [DT_ACT_START] = 'B',
    [DT_ACT_RUN] = 'R',      [DT_ACT_REFUSE] = 'X',      [DT_ACT_COLLECT] = 'C',
    [DT_ACT_DECIDE] = 'D',   [DT_ACT_CONTINUE] = 'g',    [DT_ACT_RECOVER] = 'k',
    [DT_ACT_RELAUNCH] = 'r', [DT_ACT_RECONNECT] = 'o',   [DT_ACT_FAIL] = 'f',
    [DT_ACT_ABANDON] = 'A',  [DT_ACT_STOP] = 'S',        [DT_ACT_KILL] = 'K',
    [DT_ACT_FINISH] = 'F',   [DT_ACT_CUT] = 'c',         [DT_ACT_LEAVE] = 'E',
};

/* The next state, by its letter below; '.': the same. */
static const char *const want_next[DT_JOB_STATES] = {
    [DT_JOB_CONNECTING] = "......ee.se.....", /**/
    [DT_JOB_STARTING] = "erpff.pp...vv...",   /**/
    [DT_JOB_RUNNING] = "e..ff.pp....v...",    /**/
    [DT_JOB_FAILING] = "..p...pp....vprs",    /**/
    [DT_JOB_RECOVERING] = "......pp.s...p..", /**/
    [DT_JOB_STOPPING] = "e...............",   /**/
    [DT_JOB_ENDING] = "........o.......",     /**/
    [DT_JOB_OVER] = "................",       /**/
};

static const char states[] = "csrfvpeo";

static void every_event_has_the_wanted_step_in_every_state(void **state)
{
    (void)state;
    for (int s = 0; s < DT_JOB_STATES; s++) {
        assert_int_equal(strlen(want[s]), DT_JOB_EVENTS);
        assert_int_equal(strlen(want_next[s]), DT_JOB_EVENTS);
        for (int e = 0; e < DT_JOB_EVENTS; e++) {
            struct dt_job_step step = dt_job_fsm((enum dt_job_state)s, (enum dt_job_event)e);
            char next = want_next[s][e] == '.' ? states[s] : want_next[s][e];

            if ((size_t)step.action >= sizeof letters || letters[step.action] != want[s][e])
                fail_msg("state %d, event %d: action %d", s, e, step.action);
            if (states[step.next] != next)
                fail_msg("state %d, event %d: next state %d", s, e, step.next);
        }
    }
}

/* Whatever the job is doing, the user can end it, and a second request ends it at once. */
static void the_user_can_always_end_the_job(void **state)
{
    (void)state;
    for (int s = 0; s < DT_JOB_OVER; s++) {
        assert_int_not_equal(dt_job_fsm((enum dt_job_state)s, DT_EV_KILL).action, DT_ACT_NONE);
        if (s != DT_JOB_STOPPING)
            assert_int_not_equal(dt_job_fsm((enum dt_job_state)s, DT_EV_STOP).action, DT_ACT_NONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_has_the_wanted_step_in_every_state),
        cmocka_unit_test(the_user_can_always_end_the_job),
    };

    return cmocka_run_group_tests_name("job_fsm", tests, NULL, NULL);
}
