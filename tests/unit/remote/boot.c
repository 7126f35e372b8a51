#include "tests/unit/unit.h"

#include <stdbool.h>
#include <string.h>

#include "launcher/remote/boot.h"

static void kinds_of_lines_are_recognised(void **state)
{
    static const struct {
        const char *in;
        enum dt_boot_line kind;
        const char *line;
        const char *rest;
    } cases[] = {
        { "", DT_BOOT_INCOMPLETE, NULL, "" },
        { "DTRUN-AGENT 1", DT_BOOT_INCOMPLETE, NULL, "DTRUN-AGENT 1" },
        { "DTRUN-AGENT 1\nxyz", DT_BOOT_AGENT, "1", "xyz" },
        { "Welcome to host3\r\nDTRUN-", DT_BOOT_NOISE, "Welcome to host3", "DTRUN-" },
        { "no newlineDTRUN-AGENT 1\n", DT_BOOT_NOISE, "no newline", "DTRUN-AGENT 1\n" },
        { "\033[1mbold\n", DT_BOOT_NOISE, "?[1mbold", "" },
        { "\n", DT_BOOT_NOISE, "", "" },
        { "DTRUN-NEED aarch64\n", DT_BOOT_NEED, "aarch64", "" },
        { "DTRUN-FAIL it is full: /tmp\n", DT_BOOT_FAIL, "it is full: /tmp", "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_bytequeue in = { 0 };
        struct dt_strbuf line = { 0 };

        dt_bytequeue_add(&in, cases[i].in, strlen(cases[i].in));
        assert_int_equal(dt_boot_next(&in, &line), cases[i].kind);
        if (cases[i].line)
            assert_string_equal(dt_strbuf_text(&line), cases[i].line);
        assert_int_equal(in.len, strlen(cases[i].rest));
        assert_memory_equal(dt_bytequeue_head(&in), cases[i].rest, in.len);
        dt_bytequeue_free(&in);
        dt_strbuf_free(&line);
    }
}

static void an_unfinished_line_waits_unless_it_is_the_last(void **state)
{
    struct dt_bytequeue in = { 0 };
    struct dt_strbuf line = { 0 };

    (void)state;
    dt_bytequeue_add(&in, "one\ntw", 6);
    assert_true(dt_boot_text_line(&in, &line, false));
    assert_string_equal(dt_strbuf_text(&line), "one");
    assert_false(dt_boot_text_line(&in, &line, false));
    assert_true(dt_boot_text_line(&in, &line, true));
    assert_string_equal(dt_strbuf_text(&line), "tw");
    assert_false(dt_boot_text_line(&in, &line, true));
    dt_bytequeue_free(&in);
    dt_strbuf_free(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_of_lines_are_recognised),
        cmocka_unit_test(an_unfinished_line_waits_unless_it_is_the_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
