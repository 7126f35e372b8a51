#include "launcher/agent/ranklink/ratelimit.h"
#include "tests/unit/unit.h"

#define S UINT64_C(1000000000)

enum { BURST = DT_RATELIMIT_BURST, REFILL = DT_RATELIMIT_REFILL_S };

static uint32_t take_all(struct dt_ratelimit *a, uint64_t now_ns)
{
    uint32_t n = 0;

    while (n <= BURST && dt_ratelimit_take(a, now_ns))
        n++;
    return n;
}

static void tokens_are_refilled(void **state)
{
    struct dt_ratelimit a = { 0 };
    uint64_t now = 1000000 * S;

    (void)state;
    assert_int_equal(take_all(&a, now), BURST);
    assert_int_equal(take_all(&a, now + REFILL * S - 1), 0);
    assert_int_equal(take_all(&a, now + REFILL * S), 1);
    assert_int_equal(take_all(&a, now + 2 * REFILL * S - 1), 0);
    assert_int_equal(take_all(&a, now + 5 * REFILL * S), 4);
    assert_int_equal(take_all(&a, now + 10000000 * S), BURST);
}

/* Time without lines saves up no more than one burst. */
static void a_slow_sender_is_never_refused(void **state)
{
    struct dt_ratelimit a = { 0 };
    uint64_t now = 7 * S;

    (void)state;
    for (int i = 0; i < 5 * BURST; i++, now += REFILL * S)
        assert_true(dt_ratelimit_take(&a, now));
    assert_int_equal(take_all(&a, now), BURST);
    assert_int_equal(take_all(&a, now), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_refilled),
        cmocka_unit_test(a_slow_sender_is_never_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
