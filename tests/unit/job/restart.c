#include <string.h>

#include "launcher/job/state/restart.h"
#include "tests/unit/unit.h"

/* The letters of "life" are what happens to a job: "b" it restores nothing and starts from the
 * beginning, "c" it commits a newer step, "f" it fails, and is restarted if the verdict is yes.
 * "want" has a verdict for each failure: "y" yes, "n" no checkpoint, "l" limit, "p" no progress. */
static const struct {
    int max_restarts;
    bool linked;
    const char *life;
    const char *want;
} cases[] = {
    { -1, true, "f", "n" },
    { -1, false, "f", "n" },
    { -1, true, "cf", "y" },
    { -1, true, "cfcfcfcfcfcf", "yyyyyy" },
    { -1, true, "cffff", "yyyp" },
    { -1, true, "cffcffff", "yyyyyp" },
    { 0, true, "f", "l" },
    { 0, true, "cf", "l" },
    { 1, true, "ff", "yl" },
    { 1, true, "cff", "yl" },
    { 2, true, "cfcfcf", "yyl" },
    { 10, true, "ffff", "yyyy" }, /* an explicit --max-restarts counts */
    { 5, true, "ffffff", "yyyyyl" },
    { -1, true, "bf", "y" }, /* it can start from the beginning again */
    { -1, true, "bfbfbfbf", "yyyp" },
    { 0, true, "bf", "l" },
    { 5, false, "ffffff", "yyyyyl" }, /* without the library progress is unknown */
};

static char letter(enum dt_restart_verdict v)
{
    return v == DT_RESTART_YES             ? 'y'
           : v == DT_RESTART_NO_CHECKPOINT ? 'n'
           : v == DT_RESTART_LIMIT         ? 'l'
                                           : 'p';
}

static void live(struct dt_restart *r, const char *life, char *got)
{
    int64_t step = 0;

    for (; *life; life++) {
        enum dt_restart_verdict v = dt_restart_verdict(r, false);

        if (*life == 'b') {
            dt_restart_restored(r, -1);
            continue;
        }
        if (*life == 'c') {
            dt_restart_committed(r, step += 10);
            continue;
        }
        *got++ = letter(v);
        if (v == DT_RESTART_YES)
            dt_restart_count(r, 0);
    }
    *got = '\0';
}

static void each_failure_gets_the_right_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_restart r = dt_restart_init(cases[i].max_restarts);
        char got[32];

        r.linked = cases[i].linked;
        live(&r, cases[i].life, got);
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("max %d, %s: %s instead of %s", cases[i].max_restarts, cases[i].life, got,
                     cases[i].want);
    }
}

static void fail_again(struct dt_restart *r, unsigned want_s)
{
    dt_restart_count(r, 0);
    assert_int_equal(dt_restart_delay_s(r), want_s);
}

static void restarts_without_progress_back_off(void **state)
{
    static const unsigned want[] = { 0, 1, 2, 4, 8, 16, 30, 30 };
    struct dt_restart r = dt_restart_init(100);

    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        fail_again(&r, want[i]);
    dt_restart_committed(&r, 10);
    fail_again(&r, 0);
    fail_again(&r, 1);
    for (int i = 0; i < 1000; i++)
        fail_again(&r, dt_restart_delay_s(&r) * 2 < 30 ? dt_restart_delay_s(&r) * 2 : 30);
}

/* Such programs save by themselves, and dtrun does not see it. */
static void a_run_of_a_minute_is_progress_without_checkpoints(void **state)
{
    struct dt_restart r = dt_restart_init(100);

    (void)state;
    fail_again(&r, 0);
    fail_again(&r, 1);
    dt_restart_count(&r, DT_RESTART_RUN_S);
    assert_int_equal(dt_restart_delay_s(&r), 0);
    dt_restart_count(&r, DT_RESTART_RUN_S - 1);
    assert_int_equal(dt_restart_delay_s(&r), 1);
    dt_restart_committed(&r, 10);
    fail_again(&r, 0);
    dt_restart_count(&r, DT_RESTART_RUN_S);
    assert_int_equal(dt_restart_delay_s(&r), 1);
}

/* A job that has begun to restore goes on after a death. A rank that exits would do so again. */
static void a_restore_that_has_begun_counts_for_deaths(void **state)
{
    struct dt_restart r = dt_restart_init(-1);

    (void)state;
    r.linked = r.restoring = true;
    assert_int_equal(dt_restart_verdict(&r, false), DT_RESTART_YES);
    assert_int_equal(dt_restart_verdict(&r, true), DT_RESTART_NO_CHECKPOINT);
    dt_restart_restored(&r, -1);
    assert_int_equal(dt_restart_verdict(&r, true), DT_RESTART_YES);
}

/* Committing a step that was committed before the restart is no progress. */
static void the_same_step_is_no_progress(void **state)
{
    struct dt_restart r = dt_restart_init(-1);

    (void)state;
    r.linked = true;
    for (int i = 0; i < 3; i++) {
        dt_restart_committed(&r, 50);
        assert_int_equal(dt_restart_verdict(&r, false), DT_RESTART_YES);
        dt_restart_count(&r, 0);
    }
    dt_restart_committed(&r, 50);
    assert_int_equal(dt_restart_verdict(&r, false), DT_RESTART_NO_PROGRESS);
    dt_restart_committed(&r, 51);
    assert_int_equal(dt_restart_verdict(&r, false), DT_RESTART_YES);
}

/* If the newest checkpoint is lost, the next failure starts from the one that was found, and from
 * those committed since. */
static void no_restart_begins_with_a_lost_checkpoint(void **state)
{
    struct dt_restart r = dt_restart_init(-1);

    (void)state;
    dt_restart_committed(&r, 40);
    dt_restart_committed(&r, 50);
    assert_int_equal(r.newest, 50);
    dt_restart_restored(&r, 40);
    assert_int_equal(r.newest, 40);
    dt_restart_committed(&r, 45);
    assert_int_equal(r.newest, 45);
    dt_restart_restored(&r, -1);
    assert_int_equal(r.newest, -1);
    assert_int_equal(dt_restart_verdict(&r, false), DT_RESTART_YES);
}

/* A program that goes back and saves an earlier step restores that one. */
static void the_newest_checkpoint_is_the_one_saved_last(void **state)
{
    struct dt_restart r = dt_restart_init(-1);

    (void)state;
    dt_restart_committed(&r, 9);
    dt_restart_committed(&r, 3);
    assert_int_equal(r.newest, 3);
}

/* A checkpoint that is committed and lost again and again is no progress. A checkpoint that is
 * newer than the one from which the last restart began is progress, even if one was lost that was
 * newer still. */
static void progress_below_a_lost_checkpoint_counts(void **state)
{
    struct dt_restart r = dt_restart_init(-1);

    (void)state;
    r.linked = true;
    dt_restart_committed(&r, 50);
    for (int i = 0; i < DT_RESTARTS_WITHOUT_PROGRESS; i++) {
        assert_int_equal(dt_restart_verdict(&r, false), DT_RESTART_YES);
        dt_restart_count(&r, 0);
        dt_restart_restored(&r, 20);
        dt_restart_committed(&r, 50);
    }
    assert_int_equal(dt_restart_verdict(&r, false), DT_RESTART_NO_PROGRESS);
    dt_restart_restored(&r, 20);
    dt_restart_count(&r, 0);
    for (int64_t step = 21; step < 40; step++) {
        dt_restart_committed(&r, step);
        assert_int_equal(dt_restart_verdict(&r, false), DT_RESTART_YES);
        dt_restart_count(&r, 0);
        dt_restart_restored(&r, step);
    }
}

static void lost_steps_are_never_negative_and_do_not_overflow(void **state)
{
    (void)state;
    assert_int_equal(dt_restart_lost_steps(153, 150), 3);
    assert_int_equal(dt_restart_lost_steps(150, 150), 0);
    assert_int_equal(dt_restart_lost_steps(12, -1), 12);
    assert_int_equal(dt_restart_lost_steps(-1, -1), 0);
    assert_int_equal(dt_restart_lost_steps(149, 150), 0);
    assert_true(dt_restart_add_lost(3, -1) == 3);
    assert_true(dt_restart_add_lost(3, 4) == 7);
    assert_true(dt_restart_add_lost(INT64_MAX - 4, 4) == INT64_MAX);
    assert_true(dt_restart_add_lost(4, dt_restart_lost_steps(INT64_MAX, -1)) == INT64_MAX);
}

static void lost_steps_are_known_only_from_exits(void **state)
{
    struct dt_restart r = dt_restart_init(-1);

    (void)state;
    dt_restart_reached(&r, 12, false);
    assert_int_equal(dt_restart_go_on(&r, 10), -1);
    dt_restart_reached(&r, 12, false);
    dt_restart_reached(&r, 11, true); /* another rank was further */
    assert_int_equal(dt_restart_go_on(&r, 10), 2);
    dt_restart_reached(&r, -1, true); /* it ended before its first step */
    assert_int_equal(dt_restart_go_on(&r, 10), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_failure_gets_the_right_verdict),
        cmocka_unit_test(restarts_without_progress_back_off),
        cmocka_unit_test(a_run_of_a_minute_is_progress_without_checkpoints),
        cmocka_unit_test(a_restore_that_has_begun_counts_for_deaths),
        cmocka_unit_test(the_same_step_is_no_progress),
        cmocka_unit_test(no_restart_begins_with_a_lost_checkpoint),
        cmocka_unit_test(the_newest_checkpoint_is_the_one_saved_last),
        cmocka_unit_test(progress_below_a_lost_checkpoint_counts),
        cmocka_unit_test(lost_steps_are_never_negative_and_do_not_overflow),
        cmocka_unit_test(lost_steps_are_known_only_from_exits),
    };

    return cmocka_run_group_tests_name("restart", tests, NULL, NULL);
}
