#include "launcher/job/state/comeback.h"
#include "tests/unit/unit.h"

enum { S = 1000000000 };

/* A host is lost, and each attempt to reach it fails at once. want: the waits, in seconds; 0 ends
 * them. */
static const struct {
    uint64_t first_s;
    uint64_t want[12];
} cases[] = {
    { 60, { 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600 } },
    { 1, { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024 } },
    { 1000, { 1000, 2000, 3600, 3600 } },
    { 1800, { 1800, 3600, 3600 } },
    { 1801, { 1801, 3600, 3600 } },
    { 3600, { 3600, 3600 } },
    { 7200, { 7200, 7200, 7200 } }, /* as the user wants it */
};

static void waits_double_up_to_an_hour(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_comeback c = { 0 };
        uint64_t now_ns = 5;

        for (size_t k = 0; k < 12 && cases[i].want[k]; k++) {
            dt_comeback_wait(&c, cases[i].first_s, now_ns);
            assert_int_equal(c.due_ns, now_ns + cases[i].want[k] * S);
            now_ns = c.due_ns + 7;
            dt_comeback_end(&c);
            assert_int_equal(c.due_ns, 0);
        }
    }
}

static void a_wait_that_goes_on_is_not_prolonged(void **state)
{
    struct dt_comeback c = { 0 };

    (void)state;
    dt_comeback_wait(&c, 60, 5);
    dt_comeback_wait(&c, 60, 40ull * S);
    assert_int_equal(c.due_ns, 5 + 60ull * S);
}

static void what_was_put_off_is_due_and_costs_no_wait(void **state)
{
    struct dt_comeback c = { 0 };

    (void)state;
    dt_comeback_wait(&c, 60, 5);
    dt_comeback_end(&c);
    dt_comeback_put_off(&c, 61ull * S);
    dt_comeback_wait(&c, 60, 62ull * S);
    assert_int_equal(c.due_ns, 61ull * S);
    dt_comeback_end(&c);
    dt_comeback_wait(&c, 60, 70ull * S);
    assert_int_equal(c.due_ns, 190ull * S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_double_up_to_an_hour),
        cmocka_unit_test(a_wait_that_goes_on_is_not_prolonged),
        cmocka_unit_test(what_was_put_off_is_due_and_costs_no_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
