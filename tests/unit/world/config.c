/* What a program requests at its start, and how the environment changes that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/reduceoptions.h"
#include "runtime/kernels/reduce.h"
#include "runtime/world/config.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

static const dt_config_t none = DT_CONFIG_INIT;

static const char *const names[] = { "DTRUN_DETERMINISTIC", "DTRUN_WIRE",           "DTRUN_ISA",
                                     "DTRUN_RECORDER",      "DTRUN_RECORDER_CALLS", "DTRUN_CMA",
                                     "DTRUN_OUTPUT_DIR",    "DTRUN_PROGRAM_ORDER" };

static int clear_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    return 0;
}

static dt_wire_t wire_of_sums(void)
{
    const dt_all_reduce_options_t *o = dt_reduceoptions_default(4096, DT_F32, DT_SUM);

    return o ? o->wire : DT_WIRE_EXACT;
}

/* A program's configuration, an environment variable, and the settings that result. */
static const struct {
    const char *name; /* the environment variable that is set to text; or NULL */
    const char *text;
    dt_config_t config; /* without size and version */
    bool deterministic;
    dt_wire_t wire;
    const char *isa; /* or NULL: any */
    uint32_t calls;
    const char *recorder;
} rows[] = {
    { NULL, NULL, DT_CONFIG_INIT, false, DT_WIRE_EXACT, NULL, 64, "" },
    { NULL,
      NULL,
      { 0, 0, 1, DT_WIRE_F16, "plain", 9, "/x", 0 },
      true,
      DT_WIRE_F16,
      "plain",
      9,
      "/x" },
    { "DTRUN_DETERMINISTIC", "1", DT_CONFIG_INIT, true, DT_WIRE_EXACT, NULL, 64, "" },
    { "DTRUN_DETERMINISTIC", "0", { .deterministic = 1 }, false, DT_WIRE_EXACT, NULL, 0, "" },
    { "DTRUN_DETERMINISTIC", "", { .deterministic = 1 }, true, DT_WIRE_EXACT, NULL, 0, "" },
    { "DTRUN_WIRE", "int8", { .wire = DT_WIRE_F16 }, false, DT_WIRE_INT8, NULL, 0, "" },
    { "DTRUN_WIRE", "exact", { .wire = DT_WIRE_F16 }, false, DT_WIRE_EXACT, NULL, 0, "" },
    { "DTRUN_WIRE", "", { .wire = DT_WIRE_BF16 }, false, DT_WIRE_BF16, NULL, 0, "" },
    { "DTRUN_ISA", "plain", { .isa = "none at all" }, false, DT_WIRE_EXACT, "plain", 0, "" },
    { "DTRUN_RECORDER_CALLS", "0", { .recorder_calls = 7 }, false, DT_WIRE_EXACT, NULL, 0, "" },
    { "DTRUN_RECORDER_CALLS", "65536", DT_CONFIG_INIT, false, DT_WIRE_EXACT, NULL, 65536, "" },
    { "DTRUN_RECORDER", "/there", { .recorder = "/x" }, false, DT_WIRE_EXACT, NULL, 0, "/there" },
    { "DTRUN_OUTPUT_DIR", "/o", { .recorder = "/x" }, false, DT_WIRE_EXACT, NULL, 0, "/x" },
    { "DTRUN_OUTPUT_DIR", "/o", { .recorder = "" }, false, DT_WIRE_EXACT, NULL, 0, "/o" },
    { "DTRUN_OUTPUT_DIR", "/o", { .recorder = "off" }, false, DT_WIRE_EXACT, NULL, 0, "" },
    { "DTRUN_OUTPUT_DIR", "/o", DT_CONFIG_INIT, false, DT_WIRE_EXACT, NULL, 64, "/o" },
};

static void the_environment_overrides_the_program(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dt_config_t c = rows[i].config;
        struct dt_settings s;

        clear_environment(NULL);
        if (rows[i].name)
            setenv(rows[i].name, rows[i].text, 1);
        c.size = sizeof c;
        c.version = DT_VERSION;
        if (dt_config_read(&c, &s) != DT_OK)
            fail_msg("row %zu: %s", i, dt_last_error());
        assert_int_equal(s.deterministic, rows[i].deterministic);
        assert_int_equal(wire_of_sums(), rows[i].wire);
        assert_int_equal(s.recorder_calls, rows[i].calls);
        assert_string_equal(s.recorder, rows[i].recorder);
        if (rows[i].isa)
            assert_string_equal(dt_reduce_isa(), rows[i].isa);
    }
    clear_environment(NULL);
}

static void the_program_may_promise_an_order_of_its_calls(void **state)
{
    static const struct {
        int given;
        const char *text; /* of the variable; NULL: not set */
        bool promised;
    } cases[] = {
        { -1, NULL, false }, { 0, NULL, false }, { 1, NULL, true },
        { -1, "1", true },   { 1, "0", false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dt_config_t c = DT_CONFIG_INIT;
        struct dt_settings s;

        clear_environment(NULL);
        if (cases[i].text)
            setenv("DTRUN_PROGRAM_ORDER", cases[i].text, 1);
        c.program_order = cases[i].given;
        assert_int_equal(dt_config_read(&c, &s), DT_OK);
        assert_int_equal(s.program_order, cases[i].promised);
    }
    clear_environment(NULL);
}

/* Such a program has no field for the order. Behind its structure may be anything. */
static void a_program_that_was_built_with_an_older_header_promises_no_order(void **state)
{
    dt_config_t c = DT_CONFIG_INIT;
    struct dt_settings s;

    (void)state;
    c.size = offsetof(dt_config_t, program_order);
    c.program_order = 1;
    assert_int_equal(dt_config_read(&c, &s), DT_OK);
    assert_false(s.program_order);
}

static void impossible_settings_are_reported(void **state)
{
    static const struct {
        const char *name; /* as above */
        const char *text;
        dt_config_t config; /* size and version are right unless they are set */
        dt_result_t result;
        const char *why;
    } cases[] = {
        { NULL, NULL, { .size = 8 }, DT_ERR_VERSION, "config->size is 8" },
        { NULL, NULL, { .size = 1 << 20 }, DT_ERR_VERSION, "with DT_CONFIG_INIT" },
        { NULL, NULL, { .version = 200 }, DT_ERR_VERSION, "dtrun.h 0.2.0, this libdtrun" },
        { NULL, NULL, { .version = 10100 }, DT_ERR_VERSION, "dtrun.h 1.1.0, this libdtrun" },
        { NULL, NULL, { .deterministic = 2 }, DT_ERR_ARG, "config->deterministic is 2" },
        { NULL, NULL, { .program_order = 3 }, DT_ERR_ARG, "config->program_order is 3" },
        { "DTRUN_DETERMINISTIC", "yes", DT_CONFIG_INIT, DT_ERR_ARG,
          "DTRUN_DETERMINISTIC=yes is neither 0 nor 1" },
        { NULL, NULL, { .wire = DT_WIRE_2BIT }, DT_ERR_ARG, "config->wire=2bit" },
        { NULL, NULL, { .wire = (dt_wire_t)9 }, DT_ERR_ARG, "9 is not a dt_wire_t" },
        { NULL, NULL, { .isa = "mmx" }, DT_ERR_ARG, "config->isa=mmx is not an instruction set" },
        { NULL, NULL, { .recorder_calls = -2 }, DT_ERR_ARG, "recorder_calls is -2" },
        { "DTRUN_RECORDER_CALLS", "many", { .isa = NULL }, DT_ERR_ARG, "=many is not a number" },
        { "DTRUN_RECORDER_CALLS", "65537", { .isa = NULL }, DT_ERR_ARG, "=65537 is not a number" },
        { "DTRUN_RECORDER_CALLS", "-1", { .isa = NULL }, DT_ERR_ARG, "=-1 is not a number" },
        { "DTRUN_CMA", "auto", DT_CONFIG_INIT, DT_ERR_ARG, "DTRUN_CMA=auto is neither 0 nor 1" },
        { "DTRUN_ISA",
          "mmx",
          { .isa = NULL },
          DT_ERR_ARG,
          "DTRUN_ISA=mmx is not an instruction set" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dt_config_t c = cases[i].config;
        struct dt_settings s;

        clear_environment(NULL);
        if (cases[i].name)
            setenv(cases[i].name, cases[i].text, 1);
        c.size = c.size ? c.size : sizeof c;
        c.version = c.version ? c.version : DT_VERSION;
        assert_int_equal(dt_config_read(&c, &s), cases[i].result);
        if (!strstr(dt_last_error(), cases[i].why))
            fail_msg("case %zu: %s", i, dt_last_error());
    }
    clear_environment(NULL);
}

/* Newer headers make the structure longer. */
static void unknown_fields_must_be_zero(void **state)
{
    struct {
        dt_config_t config;
        uint8_t more[16];
    } newer = { .config = DT_CONFIG_INIT };
    struct dt_settings s;

    (void)state;
    newer.config.size = sizeof newer;
    assert_int_equal(dt_config_read(&newer.config, &s), DT_OK);
    newer.more[15] = 1;
    assert_int_equal(dt_config_read(&newer.config, &s), DT_ERR_VERSION);
    assert_non_null(strstr(dt_last_error(), "older than the program's dtrun.h"));
}

static void a_relative_path_starts_at_the_current_directory(void **state)
{
    dt_config_t c = none;
    struct dt_settings s;
    char here[PATH_MAX], expected[2 * PATH_MAX];

    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    snprintf(expected, sizeof expected, "%s/dumps", here);
    c.recorder = "dumps";
    assert_int_equal(dt_config_read(&c, &s), DT_OK);
    assert_string_equal(s.recorder, expected);
}

static void the_library_has_the_version_of_its_header(void **state)
{
    int major, minor, patch;

    (void)state;
    dt_version(&major, &minor, &patch);
    assert_int_equal(major * 10000 + minor * 100 + patch, DT_VERSION);
    dt_version(NULL, NULL, NULL);
}

/* ---- in a job ---- */

static int init_twice(int rank, void *arg)
{
    dt_config_t c = none;
    float x = 1;

    (void)arg;
    c.version = rank;
    NEED(dt_init_with(&c) == DT_ERR_VERSION); /* after which it may be called again */
    NEED(dt_rank() == -1);
    c = none;
    c.deterministic = 1;
    NEED(dt_init_with(&c) == DT_OK);
    NEED(dt_init() == DT_ERR_STATE);
    NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &x, 1, DT_F32, DT_SUM) == DT_OK && x > 2);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_job_starts_with_the_requested_settings(void **state)
{
    (void)state;
    testjob_must_pass("2 1", init_twice, NULL);
}

static int init_differently(int rank, void *arg)
{
    dt_config_t c = none;

    (void)arg;
    c.deterministic = rank;
    NEED(dt_init_with(&c) == DT_ERR_MISMATCH);
    NEED(strstr(dt_last_error(), "DTRUN_DETERMINISTIC") || strstr(dt_last_error(), "elsewhere"));
    return 0;
}

static void ranks_with_different_settings_do_not_start(void **state)
{
    static const char *const placements[] = { "2", "1 1" };

    (void)state;
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++) {
        struct testjob_result result;

        assert_int_equal(
            testjob_run(&(struct testjob_plan){ .hosts = placements[i], .body = init_differently },
                        &result),
            0);
        assert_int_equal(result.ranks[0].status, 0);
        assert_int_equal(result.ranks[1].status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_overrides_the_program),
        cmocka_unit_test(the_program_may_promise_an_order_of_its_calls),
        cmocka_unit_test(a_program_that_was_built_with_an_older_header_promises_no_order),
        cmocka_unit_test(impossible_settings_are_reported),
        cmocka_unit_test(unknown_fields_must_be_zero),
        cmocka_unit_test(a_relative_path_starts_at_the_current_directory),
        cmocka_unit_test(the_library_has_the_version_of_its_header),
        cmocka_unit_test(a_job_starts_with_the_requested_settings),
        cmocka_unit_test(ranks_with_different_settings_do_not_start),
    };

    return cmocka_run_group_tests(tests, clear_environment, NULL);
}
