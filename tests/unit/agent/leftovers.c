#include "tests/unit/unit.h"

#include "launcher/agent/sweep/leftovers.h"

/* An array of char with its terminating NUL is an environ whose last entry is complete. */
#define PARSE(text) dt_leftovers_parse(text, sizeof(text), "train-0badcafe", &generation)

static void environ_names_job_and_generation(void **state)
{
    uint32_t generation = 0;

    (void)state;
    assert_true(PARSE("PATH=/bin\0DTRUN_JOB_ID=train-0badcafe\0DTRUN_GENERATION=3\0A=b"));
    assert_int_equal(generation, 3);
    assert_true(PARSE("DTRUN_GENERATION=12\0DTRUN_JOB_ID=train-0badcafe"));
    assert_int_equal(generation, 12);
}

static void another_process_is_no_leftover(void **state)
{
    uint32_t generation = 7;

    (void)state;
    assert_false(PARSE(""));
    assert_false(PARSE("PATH=/bin"));
    assert_false(PARSE("DTRUN_JOB_ID=train-0badcafe")); /* set by hand */
    assert_false(PARSE("DTRUN_JOB_ID=train-0badcaff\0DTRUN_GENERATION=1"));
    assert_false(PARSE("DTRUN_JOB_ID=train-0badcafe2\0DTRUN_GENERATION=1"));
    assert_false(PARSE("XDTRUN_JOB_ID=train-0badcafe\0DTRUN_GENERATION=1"));
    assert_false(PARSE("X=DTRUN_JOB_ID=train-0badcafe\0DTRUN_GENERATION=1"));
    assert_int_equal(generation, 7);
}

static void a_truncated_environ_is_read_as_far_as_it_goes(void **state)
{
    static const char whole[] = "DTRUN_JOB_ID=train-0badcafe\0DTRUN_GENERATION=1";
    uint32_t generation = 7;

    (void)state;
    for (size_t n = 0; n < sizeof whole; n++)
        assert_false(dt_leftovers_parse(whole, n, "train-0badcafe", &generation));
    assert_true(dt_leftovers_parse(whole, sizeof whole, "train-0badcafe", &generation));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(environ_names_job_and_generation),
        cmocka_unit_test(another_process_is_no_leftover),
        cmocka_unit_test(a_truncated_environ_is_read_as_far_as_it_goes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
