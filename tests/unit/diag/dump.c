/* Dumps of the flight recorder: their format, where they are written, and what dtrun learns of the
 * last calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/diag/dump.h"
#include "tests/unit/faults.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

/* ---- the format ---- */

static const struct dt_dump_about about = {
    .rank = 3,
    .size = 8,
    .generation = 2,
    .host = "a\"b",
    .why = "rank 3: it \\ failed",
    .now = 2000000000,
    .wall = 1700000002123456789, /* 2023-11-14T22:13:22Z */
};

static const struct dt_record records[] = {
    { .call = { .number = 6, .count = 5, .kind = DT_CALL_ALL_REDUCE, .dtype = DT_F32, .root = -1 },
      .begun = 1000000000,
      .ended = 1000250000,
      .within = "shm-blocks",
      .between = "tcp-ring" },
    { .call = { .number = 7, .count = 5, .kind = DT_CALL_BROADCAST, .dtype = DT_I8, .root = 1 },
      .comm = 4ULL << 32 | 2,
      .begun = 1500000000,
      .ended = 2000000000,
      .result = DT_ERR_MISMATCH,
      .within = "shm" },
    { .call = { .number = 9, .kind = DT_CALL_ISAVE, .root = -1 },
      .comm = 1,
      .begun = 1500000000,
      .ended = 1600000000,
      .within = "shm" },
    { .call = { .number = 8, .kind = DT_CALL_BARRIER, .device = 1, .root = -1 },
      .begun = 1500000000 },
};

static char *print(void (*dump)(FILE *, const struct dt_dump_about *, const struct dt_record *,
                                size_t))
{
    size_t size;
    char *text;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    dump(out, &about, records, sizeof records / sizeof *records);
    fclose(out);
    return text;
}

static void a_dump_is_readable_text(void **state)
{
    char *text = print(dt_dump_text), *lines = strstr(text, "failure");

    (void)state;
    assert_non_null(strstr(text, "dtrun flight recorder: rank 3 of 8 (a\"b), process "));
    assert_non_null(strstr(text, ", generation 2, 2023-11-14T22:13:22Z\nfailure"));
    assert_string_equal(lines, "failure: rank 3: it \\ failed\n\n"
                               "comm            call  begun (UTC)         seconds  result          "
                               " algorithm                   what\n"
                               "world              6  22:13:21.123456    0.000250  ok              "
                               " shm-blocks+tcp-ring         all-reduce of 5 f32 (sum)\n"
                               "3.2                7  22:13:21.623456    0.500000  DT_ERR_MISMATCH "
                               " shm                         broadcast of 5 i8 from rank 1\n"
                               "checkpoints        9  22:13:21.623456    0.100000  ok              "
                               " shm                         dt_checkpoint_isave\n"
                               "world              8  22:13:21.623456    0.500000  inside          "
                               " -                           barrier in device memory\n");
    free(text);
}

static void a_dump_is_also_json_lines(void **state)
{
    char *text = print(dt_dump_json), *lines = strstr(text, "\n");

    (void)state;
    assert_int_equal(
        strncmp(text,
                "{\"dtrun_recorder\":1,\"rank\":3,\"size\":8,\"host\":\"a\\\"b\",\"pid\":", 58),
        0);
    assert_non_null(strstr(text, ",\"generation\":2,\"written\":1700000002.123456789,"
                                 "\"failure\":\"rank 3: it \\\\ failed\"}\n"));
    assert_string_equal(
        lines,
        "\n{\"comm\":\"world\",\"call\":6,\"kind\":\"all-reduce\",\"type\":\"f32\",\"count\":5,"
        "\"bytes\":20,\"op\":\"sum\",\"device\":false,\"begun\":1700000001.123456789,"
        "\"ended\":1700000001.123706789,\"result\":\"DT_OK\",\"algorithm\":\"shm-blocks+tcp-ring\"}"
        "\n"
        "{\"comm\":\"3.2\",\"call\":7,\"kind\":\"broadcast\",\"type\":\"i8\",\"count\":5,"
        "\"bytes\":5,\"root\":1,\"device\":false,\"begun\":1700000001.623456789,"
        "\"ended\":1700000002.123456789,\"result\":\"DT_ERR_MISMATCH\",\"algorithm\":\"shm\"}\n"
        "{\"comm\":\"checkpoints\",\"call\":9,\"kind\":\"dt_checkpoint_isave\",\"device\":false,"
        "\"begun\":1700000001.623456789,\"ended\":1700000001.723456789,\"result\":\"DT_OK\","
        "\"algorithm\":\"shm\"}\n"
        "{\"comm\":\"world\",\"call\":8,\"kind\":\"barrier\",\"device\":true,"
        "\"begun\":1700000001.623456789}\n");
    free(text);
}

/* ---- in a job ---- */

static const char template[] = "/tmp/dtrun-recorder-XXXXXX";
static char dir[sizeof template];
static _Atomic int *met; /* ranks */

static int make_dir(void **state)
{
    (void)state;
    memcpy(dir, template, sizeof dir);
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

/* Whether the file of this rank has all these words, up to NULL. */
static bool file_has_all(int rank, const char *suffix, const char *const *words)
{
    char path[256], text[16384];
    FILE *f;
    size_t n;

    snprintf(path, sizeof path, "%s/below/rank.%05d.3.%s", dir, rank, suffix);
    f = fopen(path, "r");
    if (!f)
        return false;
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    for (; *words; words++) {
        if (!strstr(text, *words)) {
            fprintf(stderr, "%s lacks: %s\n%s", path, *words, text);
            return false;
        }
    }
    return true;
}

static int disagree(int rank, void *arg)
{
    const char *const expected_words[] = { "failure: rank ", "ok               ", "DT_ERR_MISMATCH",
                                           rank == 1 ? "barrier" : "(sum)", NULL };
    dt_config_t config = DT_CONFIG_INIT;
    dt_error_info_t info = { .size = sizeof info };
    char path[64], line[256] = "";
    float x[3] = { 1 };
    FILE *f;

    (void)arg;
    snprintf(path, sizeof path, "%s/below", dir);
    config.recorder = path;
    NEED(dt_init_with(&config) == DT_OK);
    NEED(dt_last_error_info(&info) == DT_OK && info.code == DT_OK && info.rank == -1);
    NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, x, 3, DT_F32, DT_SUM) == DT_OK);
    NEED((rank == 1
              ? dt_barrier(DT_WORLD)
              : dt_all_reduce(DT_WORLD, DT_IN_PLACE, x, 2, DT_F32, DT_SUM)) == DT_ERR_MISMATCH);
    for (int again = 0; again < 2; again++) {
        NEED(dt_last_error_info(&info) == DT_OK && info.code == DT_ERR_MISMATCH);
        NEED(info.call == 3 && strcmp(info.comm, "world") == 0);
        NEED(strcmp(info.operation, rank == 1 ? "barrier" : "all-reduce") == 0);
        NEED(info.seconds >= 0 && info.seconds < 300 && strncmp(info.host, "host", 4) == 0);
        NEED(strcmp(info.message, dt_last_error()) == 0);
        NEED(rank == 1 || info.rank == 1);
        NEED(dt_barrier(DT_WORLD) == DT_ERR_MISMATCH); /* reports the same */
    }
    NEED(file_has_all(rank, "txt", expected_words));
    NEED(file_has_all(rank, "jsonl",
                      (const char *const[]){ "\"result\":\"DT_ERR_MISMATCH\"", NULL }));

    snprintf(path, sizeof path, "%s/%d.txt", dir, rank);
    NEED(dt_recorder_dump(path) == DT_OK);
    f = fopen(path, "r");
    NEED(f && fgets(line, sizeof line, f) && strstr(line, "flight recorder: rank "));
    fclose(f);
    NEED(dt_finalize() == DT_ERR_MISMATCH);
    NEED(dt_recorder_dump(path) == DT_OK);
    NEED(dt_recorder_dump("/nowhere/at/all") == DT_ERR_IO && strstr(dt_last_error(), "/nowhere"));
    NEED(dt_last_error_info(&info) == DT_OK && info.error == ENOENT);
    return 0;
}

static void a_failure_is_dumped_and_reported(void **state)
{
    static const char *const placements[] = { "2", "1 1" };

    (void)state;
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++) {
        testjob_must_pass(placements[i], disagree, NULL);
        assert_int_equal(remove_dir(NULL), 0);
        assert_int_equal(mkdir(dir, 0700), 0);
    }
}

/* By default no file is written, and the last calls are reported to dtrun. */
static int disagree_late(int rank, void *place)
{
    int64_t x = rank;

    if (place)
        setenv("DTRUN_RECORDER", place, 1);
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < 5; i++)
        NEED(dt_barrier(DT_WORLD) == DT_OK);
    testjob_meet(met, 3);
    NEED((rank == 1
              ? dt_barrier(DT_WORLD)
              : dt_all_reduce(DT_WORLD, DT_IN_PLACE, &x, 1, DT_I64, DT_MAX)) == DT_ERR_MISMATCH);
    NEED(dt_barrier(DT_WORLD) == DT_ERR_MISMATCH); /* not reported again */
    NEED(strstr(dt_last_error(), "called"));
    return 0;
}

static void run_disagree_late(const char *place, struct testjob_result *result)
{
    struct testjob_plan plan = { .hosts = "2 1", .body = disagree_late };

    plan.arg = (void *)(uintptr_t)place;
    met = testjob_shared(sizeof *met);
    assert_int_equal(testjob_run(&plan, result), 0);
    for (int rank = 0; rank < 3; rank++)
        assert_int_equal(result->ranks[rank].status, 0);
}

static void the_last_four_calls_are_reported(void **state)
{
    struct testjob_result result;
    const char *line;

    (void)state;
    run_disagree_late(NULL, &result);
    line = strstr(result.last_calls, "rank 1, comm 0, code -3, : 4 barrier: ok, ");
    assert_non_null(line);
    assert_null(strstr(line + 1, "rank 1, ")); /* once */
    line = strstr(line, " 7 barrier: DT_ERR_MISMATCH, ");
    assert_non_null(line);
    assert_int_equal(strchr(line, ';')[1], '\n');
    for (int rank = 0; rank < 3; rank += 2) {
        char want[64];

        snprintf(want, sizeof want, "rank %d, comm 0, code -3, : 4 barrier: ok, ", rank);
        line = strstr(result.last_calls, want);
        assert_non_null(line);
        assert_non_null(strstr(line, " 7 all-reduce of 1 i64 (max): DT_ERR_MISMATCH, "));
    }
}

static void dtrun_learns_where_dumps_are_or_why_there_are_none(void **state)
{
    static struct testjob_result result;
    char want[128];

    (void)state;
    run_disagree_late("off", &result);
    assert_string_equal(result.last_calls, "");
    run_disagree_late("/proc/none/x", &result);
    assert_non_null(
        strstr(result.last_calls,
               "code -3, /proc/none: cannot be created: No such file or directory: 4 "));
    run_disagree_late(dir, &result);
    snprintf(want, sizeof want, "code -3, %s: 4 barrier: ok, ", dir);
    assert_non_null(strstr(result.last_calls, want));
}

/* Two ranks make blocking and nonblocking calls. The last one fails, because the peer has ended. */
static int exchange_and_die(int rank, void *arg)
{
    int64_t x = 5, y[2];
    dt_request_t q;
    char path[64];

    (void)arg;
    NEED(dt_init() == DT_OK);
    if (rank == 0) {
        NEED(dt_send(DT_WORLD, &x, 1, DT_I64, 1) == DT_OK);
        NEED(dt_irecv(DT_WORLD, y, 2, DT_I64, 1, &q) == DT_OK && dt_wait(&q) == DT_OK);
        testjob_meet(met, 2);
        NEED(dt_irecv(DT_WORLD, y, 2, DT_I64, 1, &q) == DT_OK && dt_wait(&q) == DT_ERR_PEER);
        snprintf(path, sizeof path, "%s/pairs.jsonl", dir);
        NEED(dt_recorder_dump(path) == DT_OK);
        return 0;
    }
    NEED(dt_irecv(DT_WORLD, &x, 1, DT_I64, 0, &q) == DT_OK && dt_wait(&q) == DT_OK);
    NEED(dt_isend(DT_WORLD, y, 2, DT_I64, 0, &q) == DT_OK && dt_wait(&q) == DT_OK);
    testjob_meet(met, 2);
    raise(SIGKILL);
    return 1;
}

static void calls_of_a_pair_are_recorded_completely(void **state)
{
    static const struct {
        const char *hosts, *algorithm;
    } cases[] = { { "2", "shm" }, { "1 1", "tcp" } };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct testjob_plan plan = { .hosts = cases[i].hosts, .body = exchange_and_die };
        struct testjob_result result;
        char want[256];

        met = testjob_shared(sizeof *met);
        assert_int_equal(testjob_run(&plan, &result), 0);
        assert_int_equal(result.ranks[0].status, 0);
        snprintf(want, sizeof want,
                 " 1 send of 1 i64 to rank 1: ok, %s; 1 recv of 2 i64 from rank 1: ok, %s; "
                 "2 recv of 2 i64 from rank 1: DT_ERR_PEER, %s;\n",
                 cases[i].algorithm, cases[i].algorithm, cases[i].algorithm);
        assert_non_null(strstr(result.last_calls, want));
    }
}

static int dump_without_records(int rank, void *arg)
{
    dt_error_info_t info = { .size = 8 };
    dt_error_info_t older = { .size = offsetof(dt_error_info_t, status), .status = 77 };

    (void)rank;
    (void)arg;
    NEED(dt_recorder_dump(NULL) == DT_ERR_STATE && strstr(dt_last_error(), "before dt_init"));
    NEED(dt_last_error_info(NULL) == DT_ERR_ARG);
    NEED(dt_last_error_info(&info) == DT_ERR_VERSION);
    NEED(dt_last_error_info(&older) == DT_OK && older.code == DT_ERR_STATE && older.status == 77);
    NEED(older.size == offsetof(dt_error_info_t, status) && strstr(older.message, "dt_init"));
    NEED(strstr(dt_last_error(), "before dt_init")); /* asking changes nothing */
    setenv("DTRUN_RECORDER_CALLS", "0", 1);
    NEED(dt_init() == DT_OK);
    NEED(dt_recorder_dump("/dev/null") == DT_ERR_STATE && strstr(dt_last_error(), "recorded"));
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void without_records_a_dump_is_an_error(void **state)
{
    (void)state;
    testjob_must_pass("1", dump_without_records, NULL);
}

static int dump_without_memory(int rank, void *arg)
{
    static const struct fault fault = { "calloc", ENOMEM, false };
    char path[64];

    (void)rank;
    (void)arg;
    snprintf(path, sizeof path, "%s/empty.txt", dir);
    NEED(dt_init() == DT_OK);
    faults_arm(&fault, 1);
    NEED(dt_recorder_dump(path) == DT_ERR_NOMEM);
    faults_disarm();
    NEED(access(path, F_OK) != 0 && dt_recorder_dump(path) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void without_memory_no_empty_dump_is_written(void **state)
{
    (void)state;
    testjob_must_pass("1", dump_without_memory, NULL);
}

static int dump_disturbed(int rank, void *arg)
{
    static const struct fault disturbed[] = {
        { "write", 0, true },
        { "write", EINTR, true },
        { "close", EINTR, true },
    };
    char path[64], line[512];
    FILE *f;

    (void)rank;
    (void)arg;
    snprintf(path, sizeof path, "%s/calls.txt", dir);
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < 3; i++) {
        faults_arm(&disturbed[i], 1);
        NEED(dt_recorder_dump(path) == DT_OK);
        NEED(faults_triggered());
        faults_disarm();
        NEED((f = fopen(path, "r")) && fgets(line, sizeof line, f));
        NEED(strncmp(line, "dtrun flight recorder", 21) == 0 && strchr(line, '\n'));
        fclose(f);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_disturbed_dump_goes_on(void **state)
{
    (void)state;
    testjob_must_pass("1", dump_disturbed, NULL);
}

/* ---- beside calls ---- */

enum { LONG = 100 * 1000 /* elements, more than in a brief call */, DUMPS = 1000 };

static _Atomic bool over;

static void *make_long_calls(void *arg)
{
    static float x[LONG];

    while (!over)
        dt_all_reduce(DT_WORLD, DT_IN_PLACE, x, LONG, DT_F32, DT_SUM);
    return arg;
}

/* How long the call of this line has lasted, in seconds; 0: it is over. */
static double age_of_call(const char *line)
{
    const char *inside = strstr(line, "  inside "), *seconds = inside;

    while (seconds && seconds > line && seconds[-1] != ' ')
        seconds--;
    return seconds ? strtod(seconds, NULL) : 0;
}

static int dump_beside_calls(int rank, void *arg)
{
    char path[64], line[256];
    double oldest = 0;
    pthread_t caller;

    (void)rank;
    (void)arg;
    snprintf(path, sizeof path, "%s/beside.txt", dir);
    NEED(dt_init() == DT_OK);
    NEED(pthread_create(&caller, NULL, make_long_calls, NULL) == 0);
    for (int i = 0; i < DUMPS; i++) {
        FILE *f;

        NEED(dt_recorder_dump(path) == DT_OK && (f = fopen(path, "r")));
        while (fgets(line, sizeof line, f))
            oldest = age_of_call(line) > oldest ? age_of_call(line) : oldest;
        fclose(f);
    }
    over = true;
    NEED(pthread_join(caller, NULL) == 0);
    NEED(oldest > 0 && oldest < 3600);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_call_that_begins_during_a_dump_is_not_old(void **state)
{
    (void)state;
    testjob_must_pass("1", dump_beside_calls, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dump_is_readable_text),
        cmocka_unit_test(a_dump_is_also_json_lines),
        cmocka_unit_test_setup_teardown(a_failure_is_dumped_and_reported, make_dir, remove_dir),
        cmocka_unit_test(the_last_four_calls_are_reported),
        cmocka_unit_test_setup_teardown(dtrun_learns_where_dumps_are_or_why_there_are_none,
                                        make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(calls_of_a_pair_are_recorded_completely, make_dir,
                                        remove_dir),
        cmocka_unit_test(without_records_a_dump_is_an_error),
        cmocka_unit_test_setup_teardown(without_memory_no_empty_dump_is_written, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(a_disturbed_dump_goes_on, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_call_that_begins_during_a_dump_is_not_old, make_dir,
                                        remove_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
