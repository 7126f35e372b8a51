#include "launcher/session/heartbeat.h"
#include "tests/unit/unit.h"

#define S  UINT64_C(1000000000)
#define MS UINT64_C(1000000)

/* The agent's clock is ahead by this much (its host was booted earlier), or behind. */
static void follow_clock(int64_t offset)
{
    struct dt_heartbeat h;
    uint64_t now = 100000 * S;

    dt_heartbeat_hello(&h, now + (uint64_t)offset, now + 3 * MS);
    assert_in_range(dt_heartbeat_local(&h, now + (uint64_t)offset), now, now + 3 * MS);
    /* quick travel: the error is at most half of the round trip */
    dt_heartbeat_pong(&h, now + 10 * MS, now + 11 * MS + (uint64_t)offset, now + 12 * MS);
    assert_int_equal(dt_heartbeat_local(&h, now + (uint64_t)offset), now);
    /* slow and very uneven travel: it changes nothing */
    dt_heartbeat_pong(&h, now + 20 * MS, now + 90 * MS + (uint64_t)offset, now + 91 * MS);
    assert_int_equal(dt_heartbeat_local(&h, now + (uint64_t)offset), now);
    assert_int_equal(h.heard_ns, now + 91 * MS);
    /* an answer to a question from the future is a lie */
    dt_heartbeat_pong(&h, now + 900 * MS, now, now + 100 * MS);
    assert_int_equal(dt_heartbeat_local(&h, now + (uint64_t)offset), now);
}

static void the_clock_of_an_agent_is_followed(void **state)
{
    (void)state;
    follow_clock(0);
    follow_clock(50000 * (int64_t)S);
    follow_clock(-50000 * (int64_t)S);
}

/* The agent's clock gains 20 ppm. One answer on the first day was quicker than all later ones. */
static void drift_is_followed(void **state)
{
    struct dt_heartbeat h;
    uint64_t start = 100000 * S, now = start, agent;

    (void)state;
    dt_heartbeat_hello(&h, start, start);
    dt_heartbeat_pong(&h, start, start, start + MS / 10);
    for (; now < start + 86400 * S; now += 5 * S / 2) {
        agent = now + (now - start) / 50000;
        dt_heartbeat_pong(&h, now, agent + MS, now + 2 * MS);
    }
    agent = now + (now - start) / 50000;
    assert_in_range(dt_heartbeat_local(&h, agent), now - 5 * MS, now + 5 * MS);
}

/* On a busy network a slow answer still says less than a recent quick one. */
static void a_slow_answer_does_not_replace_a_recent_quick_one(void **state)
{
    struct dt_heartbeat h;
    uint64_t now = 100000 * S;

    (void)state;
    dt_heartbeat_hello(&h, now, now);
    dt_heartbeat_pong(&h, now, now + MS, now + 2 * MS);
    dt_heartbeat_pong(&h, now + 10 * S, now + 10 * S + 99 * MS, now + 10 * S + 100 * MS);
    assert_int_equal(dt_heartbeat_local(&h, now + 20 * S), now + 20 * S);
}

static void a_silent_host_is_lost_after_the_heartbeat(void **state)
{
    struct dt_heartbeat h = { .heard_ns = 100 * S };

    (void)state;
    assert_false(dt_heartbeat_is_lost(&h, 105 * S, 104 * S, 10 * S));
    assert_false(dt_heartbeat_is_lost(&h, 110 * S - 1, 109 * S, 10 * S));
    assert_false(dt_heartbeat_is_lost(&h, 110 * S, 109 * S, 10 * S));
    assert_true(h.overdue);
    assert_true(dt_heartbeat_is_lost(&h, 110 * S + MS, 110 * S, 10 * S));
    /* heard slightly in the future: the clocks of two processors differ */
    h.heard_ns = 111 * S;
    assert_false(dt_heartbeat_is_lost(&h, 110 * S, 109 * S, 10 * S));
}

/* dtrun was busy, and so looked before it read what had arrived. */
static void what_is_read_between_two_looks_ends_the_silence(void **state)
{
    struct dt_heartbeat h = { .heard_ns = 100 * S };

    (void)state;
    assert_false(dt_heartbeat_is_lost(&h, 110 * S, 107 * S, 10 * S));
    h.heard_ns = 110 * S;
    assert_false(dt_heartbeat_is_lost(&h, 110 * S + MS, 110 * S, 10 * S));
    assert_false(h.overdue);
    assert_false(dt_heartbeat_is_lost(&h, 121 * S, 118 * S, 10 * S));
    assert_true(h.overdue);
}

/* dtrun was stopped for an hour. The agents were not silent, but dtrun did not listen. */
static void time_in_which_dtrun_was_stopped_is_no_silence(void **state)
{
    struct dt_heartbeat h = { .heard_ns = 100 * S };

    (void)state;
    assert_false(dt_heartbeat_is_lost(&h, 3700 * S, 101 * S, 10 * S));
    assert_false(dt_heartbeat_is_lost(&h, 3702 * S, 3700 * S, 10 * S));
    assert_false(dt_heartbeat_is_lost(&h, 3710 * S, 3708 * S, 10 * S));
    assert_false(dt_heartbeat_is_lost(&h, 3717 * S, 3710 * S, 10 * S));
    assert_false(dt_heartbeat_is_lost(&h, 3727 * S, 3726 * S, 10 * S));
    assert_true(dt_heartbeat_is_lost(&h, 3727 * S + MS, 3727 * S, 10 * S));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clock_of_an_agent_is_followed),
        cmocka_unit_test(drift_is_followed),
        cmocka_unit_test(a_slow_answer_does_not_replace_a_recent_quick_one),
        cmocka_unit_test(a_silent_host_is_lost_after_the_heartbeat),
        cmocka_unit_test(what_is_read_between_two_looks_ends_the_silence),
        cmocka_unit_test(time_in_which_dtrun_was_stopped_is_no_silence),
    };

    return cmocka_run_group_tests_name("heartbeat", tests, NULL, NULL);
}
