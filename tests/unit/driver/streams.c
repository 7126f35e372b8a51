/* The user's streams without an engine. The test plays the engine and checks when it is called. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "launcher/driver/streams.h"
#include "launcher/job/job.h"
#include "launcher/session/loop.h"
#include "tests/unit/unit.h"

static struct {
    bool in_action; /* the engine is in an action: it must not be called */
    size_t shown;
    bool drained;
    int failed;     /* errno of the last failure */
    bool forgotten; /* nothing was pending although the engine had not been told yet */
    struct dt_streams *to_close;
} engine;

void dt_job_shown(struct dt_job *job, uint32_t number, int fd, size_t n)
{
    (void)job;
    (void)number;
    (void)fd;
    assert_false(engine.in_action);
    engine.shown += n;
}

void dt_job_output_moved(struct dt_job *job)
{
    (void)job;
    assert_false(engine.in_action);
    engine.drained = true;
}

void dt_job_output_failed(struct dt_job *job, const char *what, int error)
{
    (void)job;
    (void)what;
    assert_false(engine.in_action);
    engine.failed = error;
    if (engine.to_close)
        dt_streams_close(engine.to_close);
    engine.to_close = NULL;
}

void dt_job_stdin(struct dt_job *job, const void *data, size_t n)
{
    (void)job;
    (void)data;
    (void)n;
}

void dt_job_stdin_eof(struct dt_job *job)
{
    (void)job;
}

void dt_job_stdin_failed(struct dt_job *job, int error)
{
    (void)job;
    (void)error;
}

static const struct dt_plan plan = { .np = 2, .nprocs = 2 };

/* Redirects standard output to the file. Returns a copy of the old descriptor. */
static int redirect(const char *path)
{
    int before = dup(STDOUT_FILENO), fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_true(before >= 0 && fd >= 0);
    dup2(fd, STDOUT_FILENO);
    close(fd);
    return before;
}

static void restore(int before)
{
    dup2(before, STDOUT_FILENO);
    close(before);
}

/* Prints as if the engine passed on a rank's output, until the engine is told something. */
static void print(const char *path, const struct dt_streams_config *config)
{
    int before = redirect(path);
    struct dt_streams *s;
    uv_loop_t loop;

    engine = (typeof(engine)){ 0 };
    dt_loop_open(&loop);
    s = dt_streams_open(&loop, config, &plan, NULL);
    engine.in_action = true;
    dt_streams_add(s, 0, STDOUT_FILENO, "a line\n", 7);
    dt_streams_eof(s, 0, STDOUT_FILENO);
    engine.in_action = false;
    while (!engine.drained && !engine.failed) {
        engine.forgotten |= !dt_streams_awaits(s, STDOUT_FILENO, 0);
        uv_run(&loop, UV_RUN_ONCE);
    }
    dt_streams_close(s);
    restore(before);
    while (uv_run(&loop, UV_RUN_DEFAULT))
        ;
    assert_int_equal(uv_loop_close(&loop), 0);
    dt_streams_free(s);
}

static void output_that_is_written_at_once_is_reported_later(void **state)
{
    const struct dt_streams_config config = { .labels = true };

    (void)state;
    print("/dev/null", &config);
    assert_int_equal(engine.shown, 7);
}

static void output_that_cannot_be_written_is_reported_later(void **state)
{
    const struct dt_streams_config config = { .labels = true };

    (void)state;
    print("/dev/full", &config);
    assert_int_equal(engine.failed, ENOSPC);
    assert_false(engine.forgotten); /* otherwise the job could end before, with exit code 0 */
}

/* The job may end in the same event in which it learns of a failed file. */
static void streams_are_closed_by_the_failure_of_a_file(void **state)
{
    static const char *const hosts[] = { "a", "a" };
    char dir[] = "/tmp/dtrun-streams-XXXXXX", pattern[64], file[80];
    const struct dt_outfiles_config where = {
        .pattern = pattern, .np = 2, .nprocs = 2, .hosts = hosts, .merged = true
    };
    const struct rlimit none = { 0, RLIM_INFINITY };
    struct dt_streams_config config = { 0 };
    struct dt_error err = { 0 };
    char *unfinished = NULL;
    struct dt_streams *s;
    struct rlimit before;
    uv_loop_t loop;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(pattern, sizeof pattern, "%s/%%r", dir);
    config.files = dt_outfiles_open(&where, &err);
    assert_string_equal(err.text, "");
    engine = (typeof(engine)){ 0 };
    dt_loop_open(&loop);
    s = engine.to_close = dt_streams_open(&loop, &config, &plan, NULL);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &none);
    dt_streams_add(s, 0, STDOUT_FILENO, "a line\n", 7);
    while (uv_run(&loop, UV_RUN_DEFAULT))
        ;
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(engine.failed, EFBIG);
    assert_int_equal(uv_loop_close(&loop), 0);
    dt_streams_free(s);
    dt_outfiles_close(config.files, &unfinished);
    free(unfinished);
    for (int rank = 0; rank < 2; rank++) {
        snprintf(file, sizeof file, "%s/%05d.out", dir, rank);
        unlink(file);
    }
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_that_is_written_at_once_is_reported_later),
        cmocka_unit_test(output_that_cannot_be_written_is_reported_later),
        cmocka_unit_test(streams_are_closed_by_the_failure_of_a_file),
    };

    return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
