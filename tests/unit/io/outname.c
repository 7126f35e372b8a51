/* Names of the files of --output-dir. */
#include "launcher/io/outname.h"

#include <stdlib.h>

#include "tests/unit/unit.h"

static void names_contain_rank_and_host(void **state)
{
    static const struct {
        const char *pattern;
        uint32_t rank;
        uint32_t np;
        const char *name;
    } cases[] = {
        { "logs", 12, 64, "logs/rank.00012.out" },
        { "logs/", 0, 1, "logs//rank.00000.out" },
        { "/var/%h", 3, 4, "/var/host-1/rank.00003.out" },
        { "%r", 99999, 100000, "99999.out" },
        { "%r", 7, 100001, "000007.out" },
        { "logs/%h/%h-%r.log", 1, 2, "logs/host-1/host-1-00001.log.out" },
        { "100%%", 1, 2, "100%/rank.00001.out" },
        { "%%r", 1, 2, "%r/rank.00001.out" },
        { "%%%r", 1, 2, "%00001.out" },
        { "logs", 2, 2, "logs/scheduler.out" },
        { "logs", 3, 2, "logs/server.00000.out" },
        { "%h", 7, 1, "host-1/server.00005.out" },
        { "%h/%r.log", 1, 1, "host-1/scheduler.log.out" },
        { "a%r", 100003, 100001, "aserver.000001.out" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_error err = { 0 };
        char *name =
            dt_outname_make(cases[i].pattern, cases[i].rank, cases[i].np, "host-1", ".out");

        assert_int_equal(dt_outname_check(cases[i].pattern, &err), 0);
        assert_string_equal(name, cases[i].name);
        free(name);
    }
}

static void unknown_placeholders_are_refused(void **state)
{
    static const char *const patterns[] = { "%", "logs/%", "%d", "%r%H", "%%%", "%r/", "logs/%r/" };

    (void)state;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct dt_error err = { 0 };

        assert_int_equal(dt_outname_check(patterns[i], &err), -1);
        assert_int_equal(err.exit_code, DT_EXIT_USAGE);
    }
}

static void the_base_is_the_common_directory_of_all_ranks(void **state)
{
    static const struct {
        const char *pattern;
        size_t base;
    } cases[] = {
        { "logs", 4 },    { "a/b/c", 5 }, { "logs/%h", 4 }, { "a/b/x%r", 3 },
        { "a/%h/%r", 1 }, { "%r", 0 },    { "/%h", 1 },     { "/a%h/b", 1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(dt_outname_base(cases[i].pattern), cases[i].base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_contain_rank_and_host),
        cmocka_unit_test(unknown_placeholders_are_refused),
        cmocka_unit_test(the_base_is_the_common_directory_of_all_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
