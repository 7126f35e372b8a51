/* Every public call as a careless or hostile program makes it: at the wrong time, without a valid
 * communicator, and with impossible arguments. Each call must fail in its own name and leave the
 * job as it was. The collectives and other calls with the usual parameters are in calls.h, which
 * calls.awk makes from dtrun.h. library.bats checks that no call is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/dtrun.h"
#include "runtime/dtrun_tune.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

enum { RANKS = 2, COUNT = 4, ROOM = COUNT * RANKS };

/* Everything a call may need. Each call takes what it needs. */
struct given {
    dt_comm_t *comm;
    const void *in;
    void *out;
    size_t size;
    const size_t *counts;
    dt_dtype_t type;
    dt_op_t op;
    int root;
    dt_request_t *request;
};

/* Which of these must be valid. */
enum needs {
    COMM = 1 << 0,
    IN = 1 << 1,  /* DT_IN_PLACE means something else, or nothing */
    OUT = 1 << 2, /* where the rank is root, or if there is no root */
    SIZE = 1 << 3,
    COUNTS = 1 << 4,
    TYPE = 1 << 5,
    OP = 1 << 6,
    ROOT = 1 << 7,
    REQUEST = 1 << 8,
    ALWAYS = 1 << 9, /* may be called at any time */
};

#define CALL(name, needs, ...)                                                                     \
    static dt_result_t make_##name(const struct given *g)                                          \
    {                                                                                              \
        return name(__VA_ARGS__);                                                                  \
    }
#include "tests/unit/api/calls.h"
#undef CALL

#define ALONE(name, expression)                                                                    \
    static dt_result_t name(const struct given *g)                                                 \
    {                                                                                              \
        (void)g;                                                                                   \
        return expression;                                                                         \
    }

static dt_comm_t *made;
static dt_bucket_t *bucket;
static void *memory;
static int64_t step;
static dt_request_t stray = { 77 };

ALONE(comm_split, dt_comm_split(g->comm, 0, 0, &made))
ALONE(comm_dup, dt_comm_dup(g->comm, &made))
ALONE(comm_set_timeout, dt_comm_set_timeout(g->comm, 1))
ALONE(comm_on_stream, dt_comm_on_stream(g->comm, NULL, &made))
ALONE(stream_wait, dt_stream_wait(g->comm)) /* never succeeds without a view */
ALONE(comm_tune, dt_comm_tune(g->comm, NULL))
ALONE(mem_alloc, dt_mem_alloc(g->comm, 64, &memory))
ALONE(join, dt_join(g->comm, NULL))
ALONE(bucket_create, dt_bucket_create(g->comm, 0, g->type, g->op, &bucket))
ALONE(checkpoint_register, dt_checkpoint_register("x", g->out, g->size))
ALONE(checkpoint_save, dt_checkpoint_save(7))
ALONE(checkpoint_isave, dt_checkpoint_isave(7, g->request))
ALONE(checkpoint_restore, dt_checkpoint_restore(&step))
ALONE(recorder_dump, dt_recorder_dump("/dev/null"))
ALONE(finalize, dt_finalize())

static const struct row {
    const char *name;
    dt_result_t (*make)(const struct given *g);
    unsigned needs;
} rows[] = {
#define CALL(name, needs, ...) { #name, make_##name, needs },
#include "tests/unit/api/calls.h"
#undef CALL
    { "dt_comm_split", comm_split, COMM },
    { "dt_comm_dup", comm_dup, COMM },
    { "dt_comm_set_timeout", comm_set_timeout, COMM },
    { "dt_comm_on_stream", comm_on_stream, COMM },
    { "dt_stream_wait", stream_wait, COMM },
    { "dt_comm_tune", comm_tune, COMM },
    { "dt_mem_alloc", mem_alloc, COMM },
    { "dt_join", join, COMM },
    { "dt_bucket_create", bucket_create, COMM | TYPE | OP },
    { "dt_checkpoint_register", checkpoint_register, OUT | SIZE },
    { "dt_checkpoint_save", checkpoint_save, 0 },
    { "dt_checkpoint_isave", checkpoint_isave, REQUEST },
    { "dt_checkpoint_restore", checkpoint_restore, 0 },
    { "dt_recorder_dump", recorder_dump, ALWAYS },
    { "dt_finalize", finalize, 0 },
};

enum { N_ROWS = sizeof rows / sizeof *rows };

static int32_t buffers[2 * ROOM + 1];
static dt_request_t pending;

/* With these arguments rank 0 of two could make every call. */
static struct given sane(const struct row *row)
{
    static const size_t counts[RANKS] = { COUNT, COUNT };
    int root = strstr(row->name, "send") || strstr(row->name, "recv") ? !dt_rank() : dt_rank();

    pending = (dt_request_t){ 99 };
    return (struct given){ .comm = DT_WORLD,
                           .in = buffers,
                           .out = buffers + ROOM,
                           .size = COUNT,
                           .counts = counts,
                           .type = DT_I32,
                           .op = DT_SUM,
                           .root = root,
                           .request = &pending };
}

/* The message must start with the whole name and say exactly what is wrong. There is no request. */
static int refuses(const struct row *row, const struct given *g, dt_result_t expected)
{
    dt_error_info_t info = { .size = sizeof info };
    dt_result_t r = row->make(g);
    size_t n = strlen(row->name);

    if (r != expected || strncmp(dt_last_error(), row->name, n) != 0 ||
        !strchr(": ", dt_last_error()[n]) || !dt_last_error()[n]) {
        fprintf(stderr, "%s: %d, not %d: %s\n", row->name, r, expected, dt_last_error());
        return 1;
    }
    NEED(dt_last_error_info(&info) == DT_OK && info.code == expected && *info.operation);
    NEED(strncmp(info.operation, "dt_", 3) != 0 || strcmp(info.operation, row->name) == 0);
    NEED(!(row->needs & REQUEST) || !g->request || g->request->id == 0);
    return 0;
}

/* ---- at the wrong time ---- */

static int all_refuse(dt_result_t expected)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        struct given g = sane(&rows[i]);
        dt_result_t r = rows[i].make == make_dt_comm_free ? DT_ERR_ARG : expected;

        if (!(rows[i].needs & ALWAYS) || dt_rank() < 0)
            NEED(refuses(&rows[i], &g, r) == 0);
    }
    NEED(made == DT_COMM_NULL && !bucket && !memory);
    return 0;
}

/* Calls that report no error, or nothing at all. */
static int is_harmless(void)
{
    dt_request_t none = { 0 };
    size_t index = 7;
    int done = 0;

    dt_step(INT64_MIN);
    dt_step(-1);
    NEED(dt_mem_free(NULL) == DT_OK && dt_bucket_free(NULL) == DT_OK);
    NEED(dt_wait(&none) == DT_OK && dt_wait_all(NULL, 0) == DT_OK);
    NEED(dt_wait_any(NULL, 0, &index) == DT_OK && index == 0);
    NEED(dt_wait_any(&none, 1, &index) == DT_OK && index == 1);
    NEED(dt_test(&none, &done) == DT_OK && done);
    NEED(dt_dtype_size(DT_I8) == 1 && dt_dtype_size(DT_BF16) == 2 && dt_dtype_size(DT_F64) == 8);
    NEED(dt_dtype_size((dt_dtype_t)-1) == 0 && dt_dtype_size((dt_dtype_t)(DT_F64 + 1)) == 0);
    NEED(dt_wait_for(&none, 0, &done) == DT_OK && done);
    NEED(strcmp(dt_strerror((dt_result_t)INT_MIN), "unknown result") == 0);
    NEED(strcmp(dt_strerror((dt_result_t)INT_MAX), "unknown result") == 0);
    dt_version(NULL, NULL, NULL);
    return 0;
}

static int in_child(void)
{
    pid_t child = fork();
    int status = -1;

    if (child == 0)
        _exit(all_refuse(DT_ERR_STATE) == 0 && dt_init() == DT_ERR_STATE ? 0 : 1);
    NEED(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}

static int at_all_times(int rank, void *arg)
{
    (void)arg;
    NEED(dt_rank() == -1 && dt_size() == -1 && dt_local_rank() == -1 && dt_local_size() == -1);
    NEED(dt_node() == -1 && dt_nodes() == -1);
    NEED(dt_generation() == -1 && dt_comm_rank(DT_WORLD) == -1 && dt_comm_size(DT_WORLD) == -1);
    NEED(all_refuse(DT_ERR_STATE) == 0 && is_harmless() == 0);
    NEED(dt_init() == DT_OK);
    NEED(in_child() == 0 && is_harmless() == 0);
    NEED(dt_finalize() == DT_OK);
    NEED(all_refuse(DT_ERR_STATE) == 0 && is_harmless() == 0);
    NEED(dt_rank() == rank && dt_size() == RANKS && dt_comm_rank(DT_WORLD) == -1);
    NEED(dt_nodes() * dt_local_size() == RANKS && dt_node() == rank / dt_local_size());
    return 0;
}

/* ---- with impossible arguments ---- */

static int wrong_comms(const struct row *row)
{
    dt_comm_t *wrong[] = { DT_COMM_NULL, (dt_comm_t *)buffers, (dt_comm_t *)1,
                           (dt_comm_t *)INTPTR_MIN, (dt_comm_t *)INTPTR_MAX };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct given g = sane(row);

        g.comm = wrong[i];
        NEED(refuses(row, &g, DT_ERR_ARG) == 0);
    }
    return 0;
}

static int wrong_types(const struct row *row)
{
    static const int wrong[] = { -1, DT_F64 + 1, 256, INT_MAX, INT_MIN };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct given g = sane(row);

        g.type = (dt_dtype_t)wrong[i];
        NEED(refuses(row, &g, DT_ERR_ARG) == 0 && strstr(dt_last_error(), "is not a dt_dtype_t"));
    }
    return 0;
}

static int wrong_ops(const struct row *row)
{
    static const int wrong[] = { -1, DT_ADASUM + 1, 256, INT_MAX, INT_MIN, DT_BAND, DT_BXOR };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct given g = sane(row);

        g.op = (dt_op_t)wrong[i];
        g.type = DT_BF16;
        NEED(refuses(row, &g, DT_ERR_ARG) == 0);
    }
    return 0;
}

static int wrong_sizes(const struct row *row)
{
    static const size_t wrong[] = { SIZE_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX / 4 + 2 };
    size_t n = row->needs & TYPE ? 3 : 2; /* the last, times 4, wraps to few bytes */

    for (size_t i = 0; i < n; i++) {
        size_t counts[RANKS] = { wrong[i], wrong[i] };
        struct given g = sane(row);

        if (row->needs & SIZE)
            g.size = wrong[i];
        if (row->needs & COUNTS)
            g.counts = counts;
        NEED(refuses(row, &g, DT_ERR_ARG) == 0);
        NEED(strstr(dt_last_error(), "memory"));
    }
    return 0;
}

static int wrong_roots(const struct row *row)
{
    static const int wrong[] = { -1, RANKS, INT_MAX, INT_MIN };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct given g = sane(row);

        g.root = wrong[i];
        NEED(refuses(row, &g, DT_ERR_ARG) == 0);
    }
    return 0;
}

static int lacking(const struct row *row)
{
    struct given g;

    if (row->needs & IN) {
        g = sane(row);
        g.in = NULL;
        NEED(refuses(row, &g, DT_ERR_ARG) == 0);
    }
    if (row->needs & OUT) {
        g = sane(row);
        g.out = NULL;
        NEED(refuses(row, &g, DT_ERR_ARG) == 0);
        g.out = (void *)(uintptr_t)DT_IN_PLACE;
        NEED(refuses(row, &g, DT_ERR_ARG) == 0);
    }
    if (row->needs & COUNTS) {
        g = sane(row);
        g.counts = NULL;
        NEED(refuses(row, &g, DT_ERR_ARG) == 0);
    }
    if (row->needs & REQUEST) {
        g = sane(row);
        g.request = NULL;
        NEED(refuses(row, &g, DT_ERR_ARG) == 0);
    }
    return 0;
}

/* Buffers that overlap by a byte, or by all but one. */
static int overlapping(const struct row *row)
{
    static const ptrdiff_t by[] = { 1, COUNT * (int)sizeof *buffers - 1 };

    for (size_t i = 0; i < 2; i++) {
        struct given g = sane(row);

        g.in = (const uint8_t *)g.out + by[i];
        NEED(refuses(row, &g, DT_ERR_ARG) == 0 && strstr(dt_last_error(), "overlap"));
    }
    return 0;
}

static int every_argument(const struct row *row)
{
    static int (*const ways[])(const struct row *row) = { wrong_comms, wrong_types, wrong_ops,
                                                          wrong_sizes, wrong_roots, overlapping };
    static const unsigned needed[] = { COMM, TYPE, OP, SIZE | COUNTS, ROOT, IN | OUT };

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        bool applies = row->needs & needed[i];

        if (needed[i] == (IN | OUT))
            applies = (row->needs & needed[i]) == needed[i];
        NEED(!applies || ways[i](row) == 0);
    }
    return lacking(row);
}

/* Arguments that the table above has no column for. */
static int other_arguments(void)
{
    char longer[300];
    int done;
    dt_request_t none = { 0 };
    size_t index;
    double never[] = { -1, NAN, INFINITY, 1e10 };

    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    NEED(dt_init_with(NULL) == DT_ERR_STATE);
    NEED(dt_wait(NULL) == DT_ERR_ARG && dt_wait(&stray) == DT_ERR_ARG);
    NEED(dt_wait_all(NULL, 1) == DT_ERR_ARG && dt_wait_all(&stray, 1) == DT_ERR_ARG);
    NEED(dt_wait_any(NULL, 1, &index) == DT_ERR_ARG && dt_wait_any(&none, 1, NULL) == DT_ERR_ARG);
    NEED(dt_wait_any(&stray, 1, &index) == DT_ERR_ARG);
    NEED(dt_test(NULL, &done) == DT_ERR_ARG && dt_test(&none, NULL) == DT_ERR_ARG);
    NEED(dt_wait_for(NULL, 0, &done) == DT_ERR_ARG && dt_wait_for(&none, 0, NULL) == DT_ERR_ARG);
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        NEED(dt_wait_for(&none, never[i], &done) == DT_ERR_ARG);
        NEED(never[i] == -1 || dt_comm_set_timeout(DT_WORLD, never[i]) == DT_ERR_ARG);
    }
    NEED(dt_comm_set_timeout(DT_WORLD, 0.09) == DT_ERR_ARG);
    NEED(dt_comm_set_timeout(DT_WORLD, 1000001) == DT_ERR_ARG);
    NEED(strstr(dt_last_error(), "1000001 is not a number of seconds from 0.1 to 1000000"));
    NEED(dt_comm_split(DT_WORLD, 0, 0, NULL) == DT_ERR_ARG);
    NEED(dt_comm_dup(DT_WORLD, NULL) == DT_ERR_ARG && dt_comm_free(DT_WORLD) == DT_ERR_ARG);
    NEED(dt_mem_alloc(DT_WORLD, 1, NULL) == DT_ERR_ARG && dt_mem_free(longer) == DT_ERR_ARG);
    NEED(dt_checkpoint_register(NULL, buffers, 1) == DT_ERR_ARG);
    NEED(dt_checkpoint_register("", buffers, 1) == DT_ERR_ARG);
    NEED(dt_checkpoint_register(longer, buffers, 1) == DT_ERR_ARG);
    NEED(dt_checkpoint_save(-1) == DT_ERR_ARG && dt_checkpoint_restore(NULL) == DT_ERR_ARG);
    NEED(dt_recorder_dump("/") == DT_ERR_IO && dt_recorder_dump("") == DT_ERR_IO);
    NEED(dt_recorder_dump("/dev/full") == DT_ERR_IO && dt_recorder_dump(NULL) == DT_ERR_ARG);
    NEED(dt_last_error_info(NULL) == DT_ERR_ARG);
    NEED(dt_last_error_info(&(dt_error_info_t){ .size = 0 }) == DT_ERR_VERSION);
    NEED(dt_last_error_info(&(dt_error_info_t){ .size = SIZE_MAX }) == DT_ERR_VERSION);
    return 0;
}

static int bucket_arguments(void)
{
    float x[4] = { 1, 2, 3, 4 };
    dt_bucket_t *b;

    NEED(dt_bucket_create(DT_WORLD, 0, DT_F32, DT_SUM, NULL) == DT_ERR_ARG);
    NEED(dt_bucket_wait(NULL) == DT_ERR_ARG && dt_bucket_push(NULL, x, 4) == DT_ERR_ARG);
    NEED(dt_bucket_create(DT_WORLD, 8, DT_F32, DT_SUM, &b) == DT_OK);
    NEED(dt_bucket_push(b, NULL, 1) == DT_ERR_ARG);
    NEED(dt_bucket_push(b, (void *)(uintptr_t)DT_IN_PLACE, 1) == DT_ERR_ARG);
    NEED(dt_bucket_push(b, x, SIZE_MAX) == DT_ERR_ARG && dt_bucket_push(b, NULL, 0) == DT_OK);
    NEED(dt_bucket_push(b, x, 1) == DT_OK && dt_bucket_push(b, x + 1, 3) == DT_OK);
    NEED(dt_bucket_free(b) == DT_OK && x[0] == RANKS && x[3] == 4 * RANKS);
    return 0;
}

/* After all this the ranks still work together, on a communicator that is made last. */
static int with_anything(int rank, void *arg)
{
    int32_t sum = rank + 1;
    dt_comm_t *comm;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_rank(DT_COMM_NULL) == -1 && dt_comm_size((dt_comm_t *)buffers) == -1);
    for (size_t i = 0; i < N_ROWS; i++)
        NEED(every_argument(&rows[i]) == 0);
    NEED(other_arguments() == 0 && bucket_arguments() == 0);
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    NEED(dt_all_reduce(comm, DT_IN_PLACE, &sum, 1, DT_I32, DT_SUM) == DT_OK && sum == 3);
    NEED(dt_comm_free(comm) == DT_OK);
    for (size_t i = 0; i < N_ROWS; i++) {
        struct given g = sane(&rows[i]);

        g.comm = comm;
        NEED(!(rows[i].needs & COMM) || refuses(&rows[i], &g, DT_ERR_STATE) == 0);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void calls_at_the_wrong_time_are_refused(void **state)
{
    (void)state;
    testjob_must_pass("2", at_all_times, NULL);
    testjob_must_pass("1 1", at_all_times, NULL);
}

static void wrong_arguments_are_refused_and_leave_the_job_as_it_was(void **state)
{
    (void)state;
    testjob_must_pass("2", with_anything, NULL);
    testjob_must_pass("1 1", with_anything, NULL);
}

/* ---- checkpoints ---- */

static int saves_and_registers_late(int rank, void *arg)
{
    int64_t at = rank;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_checkpoint_register("step", &at, sizeof at) == DT_OK);
    NEED(dt_checkpoint_save(1) == DT_OK);
    NEED(dt_checkpoint_register("late", &at, sizeof at) == DT_ERR_STATE);
    NEED(strcmp(dt_last_error(), "dt_checkpoint_register: \"late\" is registered too late: "
                                 "register all buffers before the first save or restore") == 0);
    NEED(chdir("/") == 0);
    NEED(dt_checkpoint_save(2) == DT_OK);
    NEED(dt_checkpoint_restore(&at) == DT_OK && at == 2);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void d39_d32_a_late_buffer_is_refused_and_chdir_loses_nothing(void **state)
{
    struct testjob_plan plan = { .hosts = "2", .body = saves_and_registers_late };
    char dir[] = "/tmp/dtrun-misuse-XXXXXX", command[64];
    int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    setenv("DTRUN_CHECKPOINT_DIR", "saved/here", 1);
    setenv("DTRUN_JOB_ID", "misuse-1", 1);
    assert_int_equal(testjob_pass(&plan), 0);
    unsetenv("DTRUN_CHECKPOINT_DIR");
    unsetenv("DTRUN_JOB_ID");
    assert_int_equal(access("saved/here/step_000000000002/MANIFEST", F_OK), 0);
    assert_int_equal(fchdir(here), 0);
    close(here);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_at_the_wrong_time_are_refused),
        cmocka_unit_test(wrong_arguments_are_refused_and_leave_the_job_as_it_was),
        cmocka_unit_test(d39_d32_a_late_buffer_is_refused_and_chdir_loses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
