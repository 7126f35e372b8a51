/* Children whose last output is read however late the loop gets to it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <uv.h>

#include "launcher/remote/child.h"
#include "tests/unit/unit.h"

struct tested {
    struct dt_child *child;
    struct tested *other; /* told to go on, and waited for, when this one prints anything */
    char said[64];
    bool ended;
};

static uv_loop_t loop;

/* Does not reap the child: the loop does. */
static void wait_for(const struct tested *t)
{
    pid_t pid = (pid_t)strtol(t->said, NULL, 10);
    siginfo_t info;

    dt_child_write(t->child, "\n", 1);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void on_data(void *arg, const void *bytes, size_t n)
{
    struct tested *t = arg;
    size_t len = strlen(t->said);

    snprintf(t->said + len, sizeof t->said - len, "%.*s", (int)n, (const char *)bytes);
    if (t->other)
        wait_for(t->other);
}

static void ignore(void *arg)
{
    (void)arg;
}

static void on_ended(void *arg, const struct dt_child_end *end)
{
    struct tested *t = arg;

    assert_int_equal(end->code, 0);
    t->ended = true;
}

static void begin(struct tested *t)
{
    static const struct dt_child_events events = { on_data, on_data, ignore, on_ended };
    static const char *const argv[] = { "sh", "-c", "echo $$; read go; echo the end", NULL };

    *t = (struct tested){ 0 };
    t->child = dt_child_open(&loop, argv, NULL, 0, &events, t);
    while (!strchr(t->said, '\n'))
        uv_run(&loop, UV_RUN_ONCE);
}

/* The loop wakes for the end of one child. What the other one printed before is delivered without a
 * look at its streams. */
static void end_unread(struct tested *one, struct tested *other)
{
    begin(one);
    begin(other);
    one->other = other;
    wait_for(one);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_null(strstr(other->said, "end"));
}

static int setup(void **state)
{
    (void)state;
    return uv_loop_init(&loop);
}

static int teardown(void **state)
{
    (void)state;
    return uv_loop_close(&loop);
}

static void last_output_is_read_after_its_time_limit(void **state)
{
    struct tested one, other;

    (void)state;
    end_unread(&one, &other);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(one.ended && other.ended);
    assert_non_null(strstr(one.said, "\nthe end\n"));
    assert_non_null(strstr(other.said, "\nthe end\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(last_output_is_read_after_its_time_limit, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
