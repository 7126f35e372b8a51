#include "launcher/agent/ranklink/allowance.h"
#include "tests/unit/unit.h"

#define S UINT64_C(1000000000)

enum { MOST = DT_ALLOWANCE_MOST, EVERY = DT_ALLOWANCE_EVERY_S };

static uint32_t take_all(struct dt_allowance *a, uint64_t now_ns)
{
    uint32_t n = 0;

    while (n <= MOST && dt_allowance_take(a, now_ns))
        n++;
    return n;
}

static void what_is_used_up_grows_again(void **state)
{
    struct dt_allowance a = { 0 };
    uint64_t now = 1000000 * S;

    (void)state;
    assert_int_equal(take_all(&a, now), MOST);
    assert_int_equal(take_all(&a, now + EVERY * S - 1), 0);
    assert_int_equal(take_all(&a, now + EVERY * S), 1);
    assert_int_equal(take_all(&a, now + 2 * EVERY * S - 1), 0);
    assert_int_equal(take_all(&a, now + 5 * EVERY * S), 4);
    assert_int_equal(take_all(&a, now + 10000000 * S), MOST);
}

/* Who says little may say it always; and does not save up more than all. */
static void who_says_little_is_never_refused(void **state)
{
    struct dt_allowance a = { 0 };
    uint64_t now = 7 * S;

    (void)state;
    for (int i = 0; i < 5 * MOST; i++, now += EVERY * S)
        assert_true(dt_allowance_take(&a, now));
    assert_int_equal(take_all(&a, now), MOST);
    assert_int_equal(take_all(&a, now), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_used_up_grows_again),
        cmocka_unit_test(who_says_little_is_never_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
