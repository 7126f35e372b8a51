#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "launcher/agent/io/pipewriter.h"
#include "launcher/agent/io/quiet.h"
#include "launcher/agent/ranks/pty.h"
#include "tests/unit/unit.h"

enum { LONG_LINE = 1 << 20 };

struct fixture {
    int ends[2];
    struct dt_quiet quiet;
    pid_t writer;
};

static int set_up_with(void **state, int (*open_ends)(int ends[2]))
{
    static struct fixture f;

    memset(&f, 0, sizeof f);
    assert_int_equal(open_ends(f.ends), 0);
    fcntl(f.ends[0], F_SETFL, O_NONBLOCK);
    alarm(300); /* a watchdog */
    *state = &f;
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, pipe);
}

static int set_up_terminal(void **state)
{
    return set_up_with(state, dt_pty_open);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    if (f->writer > 0) {
        kill(f->writer, SIGKILL);
        waitpid(f->writer, NULL, 0);
    }
    close(f->ends[0]);
    close(f->ends[1]);
    return 0;
}

static void put(struct fixture *f, const char *text)
{
    assert_int_equal(write(f->ends[1], text, strlen(text)), (ssize_t)strlen(text));
}

/* Reads once and returns the number of bytes. */
static size_t take(struct fixture *f)
{
    char buffer[16 * 1024];
    ssize_t n = read(f->ends[0], buffer, sizeof buffer);

    if (n <= 0)
        return 0;
    dt_quiet_read(&f->quiet, buffer, (size_t)n, dt_quiet_is_empty(f->ends[0]));
    return (size_t)n;
}

static void take_all(struct fixture *f)
{
    while (take(f) > 0)
        continue;
}

static bool has_awake_writer(const struct fixture *f)
{
    char pipe[DT_PIPE_NAME];

    dt_pipewriter_name(pipe, f->ends[0]);
    return dt_pipewriter_is_awake(pipe, getpid());
}

/* Asks until it is decided, or put off, whether the pipe is quiet. */
static bool becomes_quiet(struct fixture *f)
{
    uint64_t wait_ns = f->quiet.wait_ns;

    while (f->quiet.undecided && f->quiet.wait_ns == wait_ns) {
        enum dt_quiet_state state = dt_quiet_ask(&f->quiet, f->ends[0]);

        if (state == DT_QUIET_NEEDS_LOOK)
            state = dt_quiet_looked(&f->quiet, f->ends[0], has_awake_writer(f));
        if (state == DT_QUIET_BEGINS)
            return true;
        poll(NULL, 0, 10);
    }
    return false;
}

static void d11_a_prompt_is_quiet_once(void **state)
{
    struct fixture *f = *state;

    put(f, "what it is\nready? ");
    take_all(f);
    assert_true(becomes_quiet(f));
    assert_false(f->quiet.undecided);
    assert_false(becomes_quiet(f));
    put(f, "? ");
    take_all(f);
    assert_true(becomes_quiet(f));
}

static void a_line_that_has_ended_is_no_prompt(void **state)
{
    struct fixture *f = *state;

    put(f, "line\n");
    take_all(f);
    assert_false(f->quiet.undecided);
    put(f, "50%\r");
    take_all(f);
    assert_false(f->quiet.undecided);
}

static void d11_a_pipe_with_data_on_its_way_is_not_quiet(void **state)
{
    struct fixture *f = *state;

    put(f, "half ");
    take_all(f);
    put(f, "of a line");
    assert_false(becomes_quiet(f));
    take_all(f);
    assert_true(becomes_quiet(f));
}

static void text_cut_by_an_output_buffer_is_no_prompt(void **state)
{
    struct fixture *f = *state;
    char block[4096 + 1] = "";

    put(f, "first, ");
    take_all(f);
    memset(block, 'x', 4096);
    put(f, block);
    take_all(f);
    assert_false(becomes_quiet(f));
    put(f, "rest");
    take_all(f);
    assert_true(becomes_quiet(f));
}

/* Starts a process that writes as much of a long line as fits, and then sleeps. */
static void start_writer(struct fixture *f)
{
    f->writer = fork();
    assert_true(f->writer >= 0);
    if (f->writer == 0) {
        char *line = malloc(LONG_LINE);
        size_t done = 0;

        memset(line, 'x', LONG_LINE);
        while (done < LONG_LINE) {
            ssize_t n = write(f->ends[1], line + done, LONG_LINE - done);

            done += n > 0 ? (size_t)n : 0;
        }
        while (write(f->ends[1], "? ", 2) < 0)
            continue;
        for (;;)
            pause();
    }
}

static void a_long_line_that_is_cut_on_a_terminal_is_no_prompt(void **state)
{
    struct fixture *f = *state;
    char block[1024 + 1] = "";

    memset(block, 'x', 1024);
    put(f, block);
    take_all(f);
    assert_false(becomes_quiet(f));
    put(f, "rest");
    take_all(f);
    assert_true(becomes_quiet(f));
}

static void d11_a_line_whose_writer_is_stopped_in_the_middle_is_not_quiet(void **state)
{
    struct fixture *f = *state;
    size_t got = 0;
    siginfo_t info;

    start_writer(f);
    while ((got += take(f)) == 0)
        continue;
    assert_int_equal(kill(f->writer, SIGSTOP), 0);
    assert_int_equal(waitid(P_PID, (id_t)f->writer, &info, WSTOPPED), 0);
    for (size_t n; (n = take(f)) > 0;)
        got += n;
    assert_in_range(got, 1, LONG_LINE - 1);
    assert_false(becomes_quiet(f));
    assert_true(f->quiet.undecided);
    kill(f->writer, SIGCONT);
    while (got < LONG_LINE + 2)
        got += take(f);
    /* The line has been read completely and the writer sleeps, though perhaps not at the first
     * look. */
    while (f->quiet.undecided && !becomes_quiet(f))
        continue;
    assert_false(f->quiet.undecided);
}

static void only_what_fills_a_pipe_needs_a_look_at_all_processes(void **state)
{
    struct fixture *f = *state;
    int long_line = fcntl(f->ends[0], F_GETPIPE_SZ) - 5000; /* not whole blocks */
    char *line = calloc(1, (size_t)long_line + 1);

    put(f, "? ");
    take_all(f);
    f->quiet.due_ns = 0;
    assert_int_equal(dt_quiet_ask(&f->quiet, f->ends[0]), DT_QUIET_BEGINS);
    memset(line, 'x', (size_t)long_line);
    put(f, line);
    free(line);
    take_all(f);
    assert_int_equal(dt_quiet_ask(&f->quiet, f->ends[0]), DT_QUIET_OPEN);
    f->quiet.due_ns = 0;
    assert_int_equal(dt_quiet_ask(&f->quiet, f->ends[0]), DT_QUIET_NEEDS_LOOK);
    assert_true(f->quiet.undecided);
    assert_true(becomes_quiet(f));
}

#define QUIET_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TERMINAL_TEST(name)                                                                        \
    {                                                                                              \
#name " (terminal)", name, set_up_terminal, tear_down, NULL                                \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUIET_TEST(d11_a_prompt_is_quiet_once),
        QUIET_TEST(a_line_that_has_ended_is_no_prompt),
        QUIET_TEST(d11_a_pipe_with_data_on_its_way_is_not_quiet),
        QUIET_TEST(text_cut_by_an_output_buffer_is_no_prompt),
        QUIET_TEST(d11_a_line_whose_writer_is_stopped_in_the_middle_is_not_quiet),
        QUIET_TEST(only_what_fills_a_pipe_needs_a_look_at_all_processes),
        TERMINAL_TEST(d11_a_prompt_is_quiet_once),
        TERMINAL_TEST(d11_a_pipe_with_data_on_its_way_is_not_quiet),
        TERMINAL_TEST(a_long_line_that_is_cut_on_a_terminal_is_no_prompt),
        TERMINAL_TEST(d11_a_line_whose_writer_is_stopped_in_the_middle_is_not_quiet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
