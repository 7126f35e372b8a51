#include "launcher/hosts/hostrange.h"

#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"
#include "launcher/hosts/hostlist.h"
#include "tests/unit/unit.h"

static const struct {
    const char *text;
    const char *names;
} cases[] = {
    { "", "" },
    { "node7", "node7" },
    { "n[7]", "n7" },
    { "n[8-11].x", "n8.x n9.x n10.x n11.x" },
    { "n[08-11]", "n08 n09 n10 n11" },
    { "n[8-0011]", "n8 n9 n10 n11" },
    { "n[01-02,7,3-4]", "n01 n02 n7 n3 n4" },
    { "n[1,1]", "n1 n1" },
    { "[0-1][0-1]", "00 01 10 11" },
    { "r[1-2,9]n[1-2]x", "r1n1x r1n2x r2n1x r2n2x r9n1x r9n2x" },
    { "a[0-1]b[0-1]c[5]", "a0b0c5 a0b1c5 a1b0c5 a1b1c5" },
};

static void ranges_are_expanded_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_strs names = { 0 };
        struct dt_strbuf b = { 0 };

        assert_int_equal(dt_hostrange_expand(&names, cases[i].text, NULL), 0);
        for (uint32_t n = 0; n < names.n; n++)
            dt_strbuf_printf(&b, "%s%s", n ? " " : "", names.v[n]);
        assert_string_equal(dt_strbuf_text(&b), cases[i].names);
        dt_strbuf_free(&b);
        dt_strs_free(&names);
    }
}

/* Checks the error, and that nothing is expanded. */
static void refuse(const char *text, const char *want)
{
    struct dt_strs names = { 0 };
    struct dt_error err = { 0 };

    assert_int_equal(dt_hostrange_expand(&names, text, &err), -1);
    if (strcmp(err.text, want) != 0)
        fail_msg("%.100s: said: %s", text, err.text);
    assert_int_equal(err.exit_code, 2);
    assert_int_equal(names.n, 0);
}

static void malformed_ranges_are_refused(void **state)
{
    (void)state;
    refuse("n[", "a bracket is not matched");
    refuse("n]", "a bracket is not matched");
    refuse("n[1[2]]", "a bracket is not matched");
    refuse("n[]", "[] is not a number");
    refuse("n[1,]", "[] is not a number");
    refuse("n[x]", "[x] is not a number");
    refuse("n[1-x]", "[1-x] is not a range of numbers");
    refuse("n[1-1234567890]", "[1-1234567890] is not a range of numbers");
    refuse("n[3-1]", "[3-1] runs backwards");
}

static void a_range_has_at_most_65536_names(void **state)
{
    struct dt_strs names = { 0 };

    (void)state;
    refuse("n[0-65536]", "more than 65536 hosts");
    refuse("n[0-65535,7]", "more than 65536 hosts");
    refuse("a[0-255]b[0-256]", "more than 65536 hosts");
    refuse("a[0-999999999]b[0-999999999]c[0-999999999]", "more than 65536 hosts");
    assert_int_equal(dt_hostrange_expand(&names, "a[0-255]b[0-255]", NULL), 0);
    assert_int_equal(names.n, DT_HOSTS_MAX);
    assert_string_equal(names.v[DT_HOSTS_MAX - 1], "a255b255");
    dt_strs_free(&names);
}

/* Each range takes at least one byte of a name, so the length bounds the number of ranges. */
static void names_are_measured_before_they_are_expanded(void **state)
{
    static const char long_name[] = "the name is longer than 255 bytes";
    struct dt_strbuf text = { 0 };
    struct dt_strs names = { 0 };

    (void)state;
    for (int i = 0; i < 255; i++)
        dt_strbuf_puts(&text, "[0]");
    assert_int_equal(dt_hostrange_expand(&names, dt_strbuf_text(&text), NULL), 0);
    assert_int_equal(strlen(names.v[0]), DT_HOST_NAME_MAX);
    dt_strbuf_puts(&text, "[0-1]");
    refuse(dt_strbuf_text(&text), long_name);
    dt_strbuf_consume(&text, text.len);
    dt_strbuf_printf(&text, "%0251d[00008-65543]", 0);
    refuse(dt_strbuf_text(&text), long_name);
    dt_strbuf_consume(&text, text.len);
    dt_strbuf_printf(&text, "%0253d[8-128]", 0);
    refuse(dt_strbuf_text(&text), long_name);
    dt_strs_free(&names);
    dt_strbuf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_expanded_in_order),
        cmocka_unit_test(malformed_ranges_are_refused),
        cmocka_unit_test(a_range_has_at_most_65536_names),
        cmocka_unit_test(names_are_measured_before_they_are_expanded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
