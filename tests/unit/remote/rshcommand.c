/* The command of --rsh as the words that are executed. */
#include <stdlib.h>
#include <string.h>

#include "launcher/base/strbuf.h"
#include "launcher/remote/rshcommand.h"
#include "tests/unit/unit.h"

static const struct {
    const char *text;
    const char *want; /* the words for host "h1" and command "echo x", with "|" between them */
} cases[] = {
    { "kubectl exec -i %h --", "kubectl|exec|-i|h1|--|sh|-c|echo x" },
    { "rsh %h %c", "rsh|h1|echo x" },
    { "rsh %h 'exec %c'", "rsh|h1|exec echo x" },
    { "on node-%h.example", "on|node-h1.example|sh|-c|echo x" },
    { "a '%h b' \"c d\"", "a|h1 b|c d|sh|-c|echo x" },
    { "a %h 100%%", "a|h1|100%|sh|-c|echo x" },
    { "a %h %%h", "a|h1|%h|sh|-c|echo x" },
    { "a %h %h", "a|h1|h1|sh|-c|echo x" },
    { "a %h \"$RSH_TEST\"", "a|h1|two words|sh|-c|echo x" },
};

static void commands_are_split_into_words(void **state)
{
    (void)state;
    setenv("RSH_TEST", "two words", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_strs words, argv = { 0 };
        struct dt_strbuf got = { 0 };

        assert_int_equal(dt_rsh_parse(&words, cases[i].text, NULL), 0);
        dt_rsh_argv(&argv, &words, "h1", "echo x");
        for (uint32_t k = 0; k < argv.n; k++)
            dt_strbuf_printf(&got, "%s%s", k ? "|" : "", argv.v[k]);
        assert_string_equal(dt_strbuf_text(&got), cases[i].want);
        dt_strbuf_free(&got);
        dt_strs_free(&argv);
        dt_strs_free(&words);
    }
}

static const struct {
    const char *text, *why;
} wrong[] = {
    { "", "it does not say which host" },
    { "ssh host1", "it does not say which host" },
    { "ssh %%h", "it does not say which host" },
    { "ssh %h %x", "only %h, %c and %% are known" },
    { "ssh %h %", "only %h, %c and %% are known" },
    { "ssh '%h", "a quote is not closed" },
    { "ssh %h; date", "stands outside of quotes" },
    { "ssh %h | cat", "stands outside of quotes" },
    { "ssh $(date) %h", "a command substitution in it is not run" },
};

static void invalid_commands_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct dt_error err = { 0 };
        struct dt_strs words;

        assert_int_equal(dt_rsh_parse(&words, wrong[i].text, &err), -1);
        assert_int_equal(err.exit_code, DT_EXIT_USAGE);
        if (!strstr(err.text, wrong[i].why))
            fail_msg("%s: %s", wrong[i].text, err.text);
        assert_null(words.v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_are_split_into_words),
        cmocka_unit_test(invalid_commands_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
