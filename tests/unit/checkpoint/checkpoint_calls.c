/* The public checkpoint calls: what their errors say, and which directory they use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/wire/env.h"
#include "tests/unit/checkpoint/scratch.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

enum { SMALL = 100, LARGE = 100000 };

static char kept[LARGE];

static const char *below(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", base, name);
    return path;
}

static int start(const char *dir, size_t bytes)
{
    NEED(setenv(DT_ENV_CHECKPOINT_DIR, dir, 1) == 0);
    NEED(setenv(DT_ENV_JOB_ID, "calls-1", 1) == 0);
    NEED(dt_init() == DT_OK);
    NEED(dt_checkpoint_register("kept", kept, bytes) == DT_OK);
    return 0;
}

/* ---- failures ---- */

struct expected_error {
    dt_result_t code;
    const char *operation;
    int rank;
    const char *host;
    int error;
};

static int check_error(const struct expected_error *want)
{
    dt_error_info_t info = { .size = sizeof info };

    NEED(dt_last_error_info(&info) == DT_OK);
    NEED(info.code == want->code);
    NEED(strcmp(info.operation, want->operation) == 0);
    NEED(info.rank == want->rank && strcmp(info.host, want->host) == 0);
    NEED(info.error == want->error);
    NEED(strcmp(info.comm, "world") == 0);
    NEED(info.call > 0 && info.seconds > 0 && info.seconds < 1000);
    NEED(strcmp(info.message, dt_last_error()) == 0);
    return 0;
}

/* Rank 0 cannot make the directory. */
static int saves_nowhere(int rank, void *arg)
{
    static const struct expected_error expected = { DT_ERR_IO, "dt_checkpoint_save", 0, "host0",
                                                    ENOTDIR };
    int fd;

    (void)arg;
    if (rank == 0) {
        fd = open(below("file"), O_CREAT | O_WRONLY, 0666);
        NEED(fd >= 0 && close(fd) == 0);
    }
    NEED(start(below("file/c"), SMALL) == 0);
    NEED(dt_checkpoint_save(1) == DT_ERR_IO);
    return check_error(&expected);
}

static int limit_files(rlim_t bytes)
{
    struct rlimit limit;

    NEED(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    NEED(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes == RLIM_INFINITY ? limit.rlim_max : bytes;
    NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    return 0;
}

/* Rank 1 cannot write its shard, and rank 0 has to remove what the others have written. A later
 * success is no failure. */
static int saves_too_much(int rank, void *arg)
{
    static const struct expected_error expected = { DT_ERR_IO, "dt_checkpoint_save", 1, "host1",
                                                    EFBIG };

    (void)arg;
    NEED(start(below("c"), rank == 1 ? LARGE : SMALL) == 0);
    NEED(rank != 1 || limit_files(LARGE / 2) == 0);
    NEED(dt_checkpoint_save(1) == DT_ERR_IO);
    NEED(check_error(&expected) == 0);
    NEED(rank != 1 || limit_files(RLIM_INFINITY) == 0);
    NEED(dt_checkpoint_save(2) == DT_OK && dt_checkpoint_save(2) == DT_OK);
    NEED(check_error(&expected) == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

/* The newer of two checkpoints has a damaged shard, the older one has no shard. */
static int restores_no_sound_one(int rank, void *arg)
{
    static const struct expected_error expected = { DT_ERR_IO, "dt_checkpoint_restore", 1, "host1",
                                                    ENOENT };
    int64_t step;

    (void)arg;
    NEED(start(below("c"), SMALL) == 0);
    NEED(dt_checkpoint_save(1) == DT_OK && dt_checkpoint_save(2) == DT_OK);
    if (rank == 1) {
        NEED(truncate(below("c/step_000000000002/rank_00001.shard"), 5) == 0);
        NEED(unlink(below("c/step_000000000001/rank_00001.shard")) == 0);
    }
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    NEED(dt_checkpoint_restore(&step) == DT_ERR_IO);
    return check_error(&expected);
}

/* The last rank saves no step, and no rank may ask it for a place for it. */
static int gives_wrong_arguments(int rank, void *arg)
{
    static const struct expected_error expected = { DT_ERR_ARG, "dt_checkpoint_save", 2, "host1",
                                                    0 };
    dt_error_info_t info = { .size = sizeof info };

    (void)arg;
    NEED(start(below("c"), SMALL) == 0);
    NEED(dt_checkpoint_save(rank == 2 ? -1 : 1) == DT_ERR_ARG);
    NEED(check_error(&expected) == 0);
    NEED(dt_checkpoint_restore(NULL) == DT_ERR_ARG);
    NEED(dt_last_error_info(&info) == DT_OK && info.code == DT_ERR_ARG);
    NEED(strcmp(info.operation, "dt_checkpoint_restore") == 0);
    NEED(dt_finalize() == DT_OK);
    NEED(dt_checkpoint_save(1) == DT_ERR_STATE);
    NEED(dt_last_error_info(&info) == DT_OK && info.code == DT_ERR_STATE);
    NEED(strcmp(info.operation, "dt_checkpoint_save") == 0);
    return 0;
}

static void a_failure_names_call_rank_host_and_errno(void **state)
{
    static int (*const bodies[])(int, void *) = { saves_nowhere, saves_too_much,
                                                  gives_wrong_arguments };

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        testjob_must_pass(bodies[i] == gives_wrong_arguments ? "2 1" : "1 1", bodies[i], NULL);
        assert_int_equal(remove_base(state), 0);
        assert_int_equal(make_base(state), 0);
    }
}

static void a_restore_without_a_sound_checkpoint_names_call_rank_and_host(void **state)
{
    const struct testjob_plan plan = { .hosts = "1 1", .body = restores_no_sound_one };
    struct testjob_result result;

    (void)state;
    assert_int_equal(testjob_run(&plan, &result), 0);
    for (int rank = 0; rank < 2; rank++)
        assert_int_equal(result.ranks[rank].status, 0);
    assert_non_null(strstr(result.log, "the checkpoint of step 2 cannot be used: rank 1: "));
}

/* A program learns this at once, and not when it first saves. */
static int registers_too_many_names(int rank, void *arg)
{
    char name[256];
    int64_t step;
    int n = 0;

    (void)rank;
    (void)arg;
    NEED(start(below("c"), SMALL) == 0);
    do
        snprintf(name, sizeof name, "%0255d", n++);
    while (dt_checkpoint_register(name, NULL, 0) == DT_OK && n < 100000);
    NEED(strstr(dt_last_error(), "would be longer than 16 MiB"));
    NEED(n == ((16 << 20) - 20 - 12 - 4) / (12 + 255) + 1);
    NEED(dt_checkpoint_register(name, NULL, 0) == DT_ERR_ARG);
    NEED(dt_checkpoint_save(1) == DT_OK && dt_checkpoint_restore(&step) == DT_OK && step == 1);
    return dt_finalize();
}

static void all_names_together_are_limited(void **state)
{
    (void)state;
    testjob_must_pass("1", registers_too_many_names, NULL);
}

/* ---- the directory ---- */

/* The working directory is gone, so checkpoints below it could not be found again. */
static int saves_below_nothing(int rank, void *arg)
{
    static const struct expected_error expected = { DT_ERR_IO, "dt_checkpoint_save", 1, "host1",
                                                    ENOENT };
    int64_t step;

    (void)arg;
    if (rank == 1) {
        NEED(mkdir(below("gone"), 0777) == 0 && chdir(below("gone")) == 0);
        NEED(rmdir(below("gone")) == 0);
    } else {
        NEED(chdir(base) == 0);
    }
    NEED(start("c", SMALL) == 0);
    NEED(dt_checkpoint_save(1) == DT_ERR_IO);
    NEED(check_error(&expected) == 0);
    NEED(strstr(dt_last_error(), "DTRUN_CHECKPOINT_DIR (--checkpoint-dir) to an absolute path"));
    NEED(chdir(base) == 0); /* the call may be made again */
    NEED(dt_checkpoint_save(1) == DT_OK);
    NEED(chdir("/") == 0 && dt_checkpoint_restore(&step) == DT_OK && step == 1);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_directory_below_a_removed_one_is_an_error(void **state)
{
    (void)state;
    testjob_must_pass("1 1", saves_below_nothing, NULL);
}

/* ---- descriptors ---- */

static void a_directory_and_a_file_take_no_standard_descriptor(void **state)
{
    static struct dt_dir d;
    struct dt_file f = { .fd = -1 };
    int input = dup(STDIN_FILENO);

    (void)state;
    close(STDIN_FILENO); /* so that the next descriptor would be 0 */
    assert_int_equal(dt_dir_open(&d, base), DT_OK);
    assert_true(d.fd > STDERR_FILENO);
    assert_int_equal(dt_file_create(&f, &d, "shard"), DT_OK);
    assert_true(f.fd > STDERR_FILENO);
    assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
    dt_file_close(&f);
    dt_dir_close(&d);
    if (input >= 0) {
        dup2(input, STDIN_FILENO);
        close(input);
    }
}

#define ON_DISK(f) cmocka_unit_test_setup_teardown(f, make_base, remove_base)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_DISK(a_failure_names_call_rank_host_and_errno),
        ON_DISK(a_restore_without_a_sound_checkpoint_names_call_rank_and_host),
        ON_DISK(all_names_together_are_limited),
        ON_DISK(a_directory_below_a_removed_one_is_an_error),
        ON_DISK(a_directory_and_a_file_take_no_standard_descriptor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
