#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "launcher/base/inject.h"

static void faults_are_read(void **state)
{
    static const struct {
        const char *text;
        struct dt_inject want;
    } cases[] = {
        { "kill:rank=1,step=50", { DT_INJECT_KILL, 1, -1, 50, -1, -1, 1 } },
        { "kill:step=0,rank=0", { DT_INJECT_KILL, 0, -1, 0, -1, -1, 1 } },
        { "kill:rank=999999", { DT_INJECT_KILL, 999999, -1, -1, -1, -1, 1 } },
        { "stop:rank=2,after=1.5", { DT_INJECT_STOP, 2, -1, -1, 1500, -1, 1 } },
        { "exit:rank=3,step=9,code=7", { DT_INJECT_EXIT, 3, -1, 9, -1, -1, 7 } },
        { "exit:rank=3,step=9,code=0", { DT_INJECT_EXIT, 3, -1, 9, -1, -1, 0 } },
        { "exit:rank=3,step=9", { DT_INJECT_EXIT, 3, -1, 9, -1, -1, 1 } },
        { "host:node=1,step=4,restart=2", { DT_INJECT_HOST, -1, 1, 4, -1, 2, 1 } },
        { "agent:node=1,step=4", { DT_INJECT_AGENT, -1, 1, 4, -1, -1, 1 } },
        { "host:rank=5,after=0", { DT_INJECT_HOST, 5, -1, -1, 0, -1, 1 } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_inject got;
        struct dt_error err = { 0 };

        if (dt_inject_parse(&got, cases[i].text, &err) < 0)
            fail_msg("%s: %s", cases[i].text, err.text);
        assert_int_equal(got.kind, cases[i].want.kind);
        assert_int_equal(got.rank, cases[i].want.rank);
        assert_int_equal(got.node, cases[i].want.node);
        assert_int_equal(got.step, cases[i].want.step);
        assert_int_equal(got.after_ms, cases[i].want.after_ms);
        assert_int_equal(got.restart, cases[i].want.restart);
        assert_int_equal(got.code, cases[i].want.code);
    }
}

static void mistakes_are_named(void **state)
{
    static const struct {
        const char *text;
        const char *part; /* of the message */
    } cases[] = {
        { "", "unknown fault" },
        { "kil:rank=1", "unknown fault" },
        { "killer:rank=1", "unknown fault" },
        { "kill", "needs rank=R" },
        { "kill:", "\"\" is not rank=R" },
        { "kill:rank=", "\"rank=\"" },
        { "kill:rank=1,", "\"\" is not rank=R" },
        { "kill:rank=1,,step=2", "\"\" is not rank=R" },
        { "kill:rank=-1", "\"rank=-1\"" },
        { "kill:rank=1x,step=2", "\"rank=1x\"" },
        { "kill:rank=1000000", "\"rank=1000000\"" },
        { "kill:rank=1,rank=2", "twice" },
        { "kill:rank=1,step=9223372036854775807", "step=9223" },
        { "kill:rank=1,step=99999999999999999999", "step=9999" },
        { "kill:rank=1,after=x", "after=x" },
        { "kill:rank=1,after=", "after=" },
        { "kill:rank=1,after=-1", "after=-1" },
        { "kill:rank=1,after=1e300", "after=1e300" },
        { "kill:rank=1,after=nan", "after=nan" },
        { "kill:rank=1,step=1,after=1", "exclude" },
        { "kill:rank=1,code=3", "exit only" },
        { "kill:rank=1,node=3", "host and agent only" },
        { "kill:step=3", "needs rank=R" },
        { "exit:rank=1,code=3", "needs step=N" },
        { "exit:rank=1,step=3,code=256", "code=256" },
        { "host:step=3", "needs node=K" },
        { "agent:step=3", "needs node=K" },
        { "host:rank=1,node=0", "needs node=K" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_inject got;
        struct dt_error err = { 0 };

        if (dt_inject_parse(&got, cases[i].text, &err) == 0)
            fail_msg("%s: was accepted", cases[i].text);
        if (!strstr(err.text, cases[i].part))
            fail_msg("%s: says \"%s\", not \"%s\"", cases[i].text, err.text, cases[i].part);
        assert_int_equal(err.exit_code, DT_EXIT_USAGE);
    }
}

static void a_fault_belongs_to_one_host(void **state)
{
    static uint32_t ranks[] = { 3, 5 };
    static const struct dt_u32s list = { ranks, 2 };
    static const struct {
        const char *text;
        bool on_node_1; /* it has ranks 3 and 5 */
    } cases[] = {
        { "kill:rank=2", false }, { "kill:rank=3", true },  { "kill:rank=4", false },
        { "kill:rank=5", true },  { "host:rank=5", true },  { "host:rank=6", false },
        { "host:node=1", true },  { "host:node=3", false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_inject fault;

        assert_int_equal(dt_inject_parse(&fault, cases[i].text, NULL), 0);
        assert_int_equal(dt_inject_concerns(&fault, 1, &list), cases[i].on_node_1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_read),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(a_fault_belongs_to_one_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
