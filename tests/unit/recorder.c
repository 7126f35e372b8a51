/* The flight recorder: its rings, what is dumped of them, and what a rank can say of a failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/context.h"
#include "runtime/dump.h"
#include "runtime/error.h"
#include "runtime/recorder.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

enum { CALLS = 4, COMM = 7 };

/* ---- rings ---- */

static void make_call(struct dt_ring *r, uint64_t number, dt_result_t result)
{
    struct dt_call call = { .number = number,
                            .count = number * 10,
                            .kind = DT_CALL_ALL_REDUCE,
                            .dtype = DT_F32,
                            .root = -1 };

    dt_ring_begin(r, &call);
    dt_ring_end(r, result, "shm", NULL);
}

static int start(void **state)
{
    (void)state;
    dt_recorder_start(CALLS);
    return 0;
}

static void the_last_calls_are_kept(void **state)
{
    static const struct {
        uint64_t made;
        size_t kept;
    } cases[] = { { 0, 0 }, { 1, 1 }, { 3, 3 }, { 4, 4 }, { 5, 4 }, { 8, 4 }, { 403, 4 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_ring *r = dt_ring_open(COMM + i);
        struct dt_record *records;
        size_t n = 0, read;

        for (uint64_t call = 1; call <= cases[i].made; call++)
            make_call(r, call, DT_OK);
        read = dt_recorder_read(&records);
        for (size_t k = 0; k < read && n < cases[i].kept; k++) {
            if (records[k].comm != COMM + i)
                continue;
            assert_int_equal(records[k].call.number, cases[i].made - cases[i].kept + 1 + n);
            assert_int_equal(records[k].call.count, records[k].call.number * 10);
            assert_true(records[k].ended >= records[k].begun && records[k].begun > 0);
            assert_string_equal(records[k].within, "shm");
            assert_null(records[k].between);
            n++;
        }
        assert_int_equal(n, cases[i].kept);
        free(records);
        dt_ring_close(r);
    }
}

static size_t count_of(uint64_t comm)
{
    struct dt_record *records;
    size_t n = dt_recorder_read(&records), found = 0;

    for (size_t i = 0; i < n; i++)
        found += records[i].comm == comm;
    free(records);
    return found;
}

/* What was closed longest ago gives way to what is new, bit by bit. */
static void calls_on_a_freed_communicator_stay_for_a_while(void **state)
{
    struct dt_ring *a = dt_ring_open(100), *b = dt_ring_open(101), *c;

    (void)state;
    make_call(a, 1, DT_OK);
    make_call(a, 2, DT_OK);
    make_call(b, 1, DT_OK);
    dt_ring_close(b);
    dt_ring_close(a);
    assert_int_equal(count_of(100), 2);
    assert_int_equal(count_of(101), 1);
    while ((c = dt_ring_open(102)) != a) /* the other tests have closed some, before b */
        ;
    make_call(c, 1, DT_OK);
    assert_int_equal(count_of(100), 2);
    for (int i = 2; i <= CALLS; i++)
        make_call(c, (uint64_t)i, DT_OK);
    assert_int_equal(count_of(100), 0);
    assert_int_equal(count_of(101), 1);
    assert_int_equal(count_of(102), CALLS);
}

static void a_call_that_lasts_is_shown_and_timed(void **state)
{
    struct dt_ring *r = dt_ring_open(200);
    struct dt_call call = { .number = 1, .kind = DT_CALL_BARRIER, .root = -1 };
    struct dt_record *records;
    size_t n;

    (void)state;
    dt_ring_begin(r, &call);
    assert_int_equal(count_of(200), 0); /* nobody knows of it before it waits */
    dt_ring_show(r);
    dt_ring_lasts(r);
    assert_int_equal(count_of(200), 1);
    usleep(2000);
    assert_true(dt_ring_seconds(r) >= 0.002);
    n = dt_recorder_read(&records);
    assert_int_equal(records[n - 1].comm, 200); /* it began last */
    assert_int_equal(records[n - 1].ended, 0);
    free(records);
    dt_ring_end(r, DT_ERR_PEER, NULL, "tcp");
    n = dt_recorder_read(&records);
    assert_int_equal(records[n - 1].result, DT_ERR_PEER);
    assert_true(records[n - 1].ended - records[n - 1].begun >= 2000000);
    free(records);
    make_call(r, 2, DT_OK); /* brief, and not before the one before */
    n = dt_recorder_read(&records);
    assert_int_equal(records[n - 1].call.number, 2);
    assert_true(records[n - 1].begun >= records[n - 2].ended);
    free(records);
}

/* Whatever the program did since the clock was read. */
static void a_brief_call_that_fails_is_timed(void **state)
{
    struct dt_ring *r = dt_ring_open(201);
    struct dt_call call = { .number = 2, .kind = DT_CALL_BARRIER, .root = -1 };
    struct dt_record *records;
    uint64_t before;
    size_t n;

    (void)state;
    make_call(r, 1, DT_OK);
    usleep(20000);
    before = dt_clock_ns();
    dt_ring_begin(r, &call);
    dt_ring_show(r);
    assert_true(dt_ring_seconds(r) == 0);
    dt_ring_end(r, DT_ERR_TIMEOUT, "shm", NULL);
    n = dt_recorder_read(&records);
    assert_int_equal(records[n - 1].comm, 201); /* it began last */
    assert_int_equal(records[n - 1].call.number, 2);
    assert_true(records[n - 1].begun >= before);
    assert_true(records[n - 1].ended == records[n - 1].begun);
    free(records);
    dt_ring_close(r);
}

static void nothing_is_recorded_without_room(void **state)
{
    (void)state;
    dt_recorder_start(0);
    assert_null(dt_ring_open(300));
    make_call(NULL, 1, DT_OK);
    dt_ring_lasts(NULL);
    dt_ring_close(NULL);
    assert_true(dt_ring_seconds(NULL) == 0);
    dt_recorder_start(CALLS);
}

static _Atomic int writing;

/* By a number that does not divide that of the ring's entries: what an entry had before differs. */
static dt_result_t result_of(uint64_t call)
{
    return call % 3 ? DT_OK : DT_ERR_PEER;
}

static void *write_on(void *ring)
{
    for (uint64_t call = 1; call <= 200000; call++) {
        struct dt_call c = { .number = call, .count = call, .options = ~call };

        dt_ring_begin(ring, &c);
        if (call % 1000 == 0)
            dt_ring_lasts(ring);
        dt_ring_end(ring, result_of(call), "shm", call % 3 ? NULL : "tcp");
    }
    writing = 0;
    return NULL;
}

/* Whatever is overwritten while it is read is left out. */
static void reading_disturbs_nobody_and_sees_whole_calls(void **state)
{
    struct dt_ring *r = dt_ring_open(400);
    pthread_t thread;

    (void)state;
    writing = 1;
    assert_int_equal(pthread_create(&thread, NULL, write_on, r), 0);
    do {
        struct dt_record *records;
        size_t n = dt_recorder_read(&records);
        uint64_t last = 0;

        for (size_t i = 0; i < n; i++) {
            const struct dt_call *c = &records[i].call;

            if (records[i].comm != 400)
                continue;
            assert_true(c->number > last && c->count == c->number && c->options == ~c->number);
            assert_true(!records[i].ended || (records[i].result == result_of(c->number) &&
                                              !records[i].between == (c->number % 3 != 0)));
            last = c->number;
        }
        free(records);
    } while (writing);
    pthread_join(thread, NULL);
}

/* ---- dumps ---- */

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
      .within = "shm-slices",
      .between = "tcp-ring" },
    { .call = { .number = 7, .count = 5, .kind = DT_CALL_BROADCAST, .dtype = DT_I8, .root = 1 },
      .comm = 4ULL << 32 | 2,
      .begun = 1500000000,
      .ended = 2000000000,
      .result = DT_ERR_MISMATCH,
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
    dump(out, &about, records, 3);
    fclose(out);
    return text;
}

static void as_text(void **state)
{
    char *text = print(dt_dump_text), *lines = strstr(text, "failure");

    (void)state;
    assert_non_null(strstr(text, "dtrun flight recorder: rank 3 of 8 (a\"b), process "));
    assert_non_null(strstr(text, ", generation 2, 2023-11-14T22:13:22Z\nfailure"));
    assert_string_equal(
        lines,
        "failure: rank 3: it \\ failed\n\n"
        "comm           call  begun (UTC)         seconds  result           way               "
        "      what\n"
        "world             6  22:13:21.123456    0.000250  ok               shm-slices+tcp-ring"
        "     all-reduce of 5 f32 (sum)\n"
        "3.2               7  22:13:21.623456    0.500000  DT_ERR_MISMATCH  shm               "
        "      broadcast of 5 i8 from rank 1\n"
        "world             8  22:13:21.623456    0.500000  inside           -                 "
        "      barrier in device memory\n");
    free(text);
}

static void as_json_lines(void **state)
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
        "\"ended\":1700000001.123706789,\"result\":\"DT_OK\",\"way\":\"shm-slices+tcp-ring\"}\n"
        "{\"comm\":\"3.2\",\"call\":7,\"kind\":\"broadcast\",\"type\":\"i8\",\"count\":5,"
        "\"bytes\":5,\"root\":1,\"device\":false,\"begun\":1700000001.623456789,"
        "\"ended\":1700000002.123456789,\"result\":\"DT_ERR_MISMATCH\",\"way\":\"shm\"}\n"
        "{\"comm\":\"world\",\"call\":8,\"kind\":\"barrier\",\"device\":true,"
        "\"begun\":1700000001.623456789}\n");
    free(text);
}

/* ---- in a job ---- */

static const char template[] = "/tmp/dtrun-recorder-XXXXXX";
static char dir[sizeof template];

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

/* Whether the file of this rank has all these words, which are up to NULL. */
static bool has(int rank, const char *suffix, const char *const *words)
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
    const char *const told[] = { "failure: rank ", "ok               ", "DT_ERR_MISMATCH",
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
        NEED(dt_barrier(DT_WORLD) == DT_ERR_MISMATCH); /* tells the same */
    }
    NEED(has(rank, "txt", told));
    NEED(has(rank, "jsonl", (const char *const[]){ "\"result\":\"DT_ERR_MISMATCH\"", NULL }));

    snprintf(path, sizeof path, "%s/%d.txt", dir, rank);
    NEED(dt_recorder_dump(path) == DT_OK);
    f = fopen(path, "r");
    NEED(f && fgets(line, sizeof line, f) && strstr(line, "flight recorder: rank "));
    fclose(f);
    NEED(dt_finalize() == DT_ERR_MISMATCH);
    NEED(dt_recorder_dump(path) == DT_OK);
    NEED(dt_recorder_dump("/nowhere/at/all") == DT_ERR_IO && strstr(dt_last_error(), "/nowhere"));
    return 0;
}

static void a_failure_is_dumped_and_told(void **state)
{
    static const char *const placements[] = { "2", "1 1" };

    (void)state;
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++) {
        assert_int_equal(
            testjob_pass(&(struct testjob_plan){ .hosts = placements[i], .body = disagree }), 0);
        assert_int_equal(remove_dir(NULL), 0);
        assert_int_equal(mkdir(dir, 0700), 0);
    }
}

/* ---- what a rank can say of each kind of failure ---- */

struct blame {
    dt_result_t code;
    int rank; /* -1: not known */
    uint64_t call;
    const char *operation, *comm;
};

static bool blames(const struct blame *b)
{
    dt_error_info_t i = { .size = sizeof i };
    char host[16];

    snprintf(host, sizeof host, "host%d", b->rank);
    if (dt_last_error_info(&i) == DT_OK && i.code == b->code && i.rank == b->rank &&
        i.call == b->call && strcmp(i.operation, b->operation) == 0 &&
        strcmp(i.comm, b->comm) == 0 && strcmp(i.host, b->rank < 0 ? "" : host) == 0 &&
        strcmp(i.message, dt_last_error()) == 0 && *i.message)
        return true;
    fprintf(stderr, "%s is told as code %d, rank %d, host '%s', call %llu, '%s' on '%s'\n",
            i.message, i.code, i.rank, i.host, (unsigned long long)i.call, i.operation, i.comm);
    return false;
}

#define BLAMES(...) NEED(blames(&(struct blame){ __VA_ARGS__ }))

/* As the agents do when dtrun has waited for long enough. */
static void time_out(struct dt_comm *c, void *arg)
{
    (void)arg;
    dt_comm_stop(c, DT_ERR_TIMEOUT, 1, "rank 0 has waited for rank 1");
}

/* Rank 1 is to blame for what all ranks have; each has a host of its own. */
static int fail_in_every_way(int rank, void *arg)
{
    dt_all_reduce_options_t options = { .size = 1 };
    dt_comm_t *comm;
    dt_request_t q;
    float x[4] = { 0 };
    void *p;

    (void)arg;
    NEED(dt_barrier(DT_WORLD) == DT_ERR_STATE);
    BLAMES(DT_ERR_STATE, -1, 0, "barrier", "");
    NEED(dt_init() == DT_OK);
    NEED(dt_broadcast(DT_WORLD, x, 1, DT_F32, 9) == DT_ERR_ARG);
    BLAMES(DT_ERR_ARG, rank, 0, "broadcast", "world");
    NEED(dt_isend(DT_WORLD, x, 1, DT_F32, rank, &q) == DT_ERR_ARG);
    BLAMES(DT_ERR_ARG, rank, 0, "send", "world");
    NEED(dt_all_reduce_with(DT_WORLD, x, x, 1, DT_F32, DT_SUM, &options) == DT_ERR_VERSION);
    BLAMES(DT_ERR_VERSION, rank, 0, "all-reduce", "world");
    NEED(dt_mem_alloc(DT_WORLD, SIZE_MAX / 2, &p) == DT_ERR_NOMEM);
    BLAMES(DT_ERR_NOMEM, 0, 3, "dt_mem_alloc", "world");
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    NEED(dt_join_begin(comm) == DT_OK);
    NEED(dt_broadcast(comm, x, 1, DT_F32, 0) == DT_ERR_UNSUPPORTED);
    BLAMES(DT_ERR_UNSUPPORTED, rank, 0, "broadcast", "0.1");
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    if (rank == 1)
        NEED(dt_comm_abort(comm) == DT_OK);
    NEED(dt_barrier(comm) == DT_ERR_ABORTED);
    BLAMES(DT_ERR_ABORTED, 1, 2, "barrier", "0.2");
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    NEED((rank == 1 ? dt_barrier(comm) : dt_broadcast(comm, x, 2, DT_F32, 0)) == DT_ERR_MISMATCH);
    BLAMES(DT_ERR_MISMATCH, !rank, 2, rank == 1 ? "barrier" : "broadcast", "0.3");
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    if (rank == 1)
        NEED(dt_context_see("test", comm, time_out, NULL) == DT_OK);
    NEED(dt_barrier(comm) == DT_ERR_TIMEOUT);
    BLAMES(DT_ERR_TIMEOUT, 1, 2, "barrier", "0.4");
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    if (rank == 1)
        raise(SIGKILL);
    NEED(dt_reduce(DT_WORLD, x, x + 2, 2, DT_F32, DT_SUM, 0) == DT_ERR_PEER);
    BLAMES(DT_ERR_PEER, 1, 9, "reduce", "world");
    return 0;
}

static void every_kind_of_failure_names_rank_host_call_and_operation(void **state)
{
    static struct testjob_result result;

    (void)state;
    assert_int_equal(
        testjob_run(&(struct testjob_plan){ .hosts = "1 1", .body = fail_in_every_way }, &result),
        0);
    assert_int_equal(result.ranks[0].status, 0);
    assert_true(WIFSIGNALED(result.ranks[1].status));
}

/* By default nothing is written, and what was called last is told to dtrun. */
static int disagree_late(int rank, void *place)
{
    int64_t x = rank;

    if (place)
        setenv("DTRUN_RECORDER", place, 1);
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < 5; i++)
        NEED(dt_barrier(DT_WORLD) == DT_OK);
    NEED((rank == 1
              ? dt_barrier(DT_WORLD)
              : dt_all_reduce(DT_WORLD, DT_IN_PLACE, &x, 1, DT_I64, DT_MAX)) == DT_ERR_MISMATCH);
    NEED(dt_barrier(DT_WORLD) == DT_ERR_MISMATCH); /* is told no more */
    NEED(strstr(dt_last_error(), "called"));
    return 0;
}

static void run_disagree_late(const char *place, struct testjob_result *result)
{
    struct testjob_plan plan = { .hosts = "2 1", .body = disagree_late };

    plan.arg = (void *)(uintptr_t)place;
    assert_int_equal(testjob_run(&plan, result), 0);
    for (int rank = 0; rank < 3; rank++)
        assert_int_equal(result->ranks[rank].status, 0);
}

static void the_last_four_calls_are_told(void **state)
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

static void where_dumps_are_or_why_not_is_told(void **state)
{
    static struct testjob_result result;
    char want[128];

    (void)state;
    run_disagree_late("off", &result);
    assert_string_equal(result.last_calls, "");
    run_disagree_late("/proc/none/x", &result);
    assert_non_null(strstr(result.last_calls,
                           "code -3, /proc/none: cannot be made: No such file or directory: 4 "));
    run_disagree_late(dir, &result);
    snprintf(want, sizeof want, "code -3, %s: 4 barrier: ok, ", dir);
    assert_non_null(strstr(result.last_calls, want));
}

/* The last calls of a pair, made at once and in the background, which fail with the peer's end. */
static int pass_and_die(int rank, void *arg)
{
    int64_t x = 5, y[2];
    dt_request_t q;
    char path[64];

    (void)arg;
    NEED(dt_init() == DT_OK);
    if (rank == 0) {
        NEED(dt_send(DT_WORLD, &x, 1, DT_I64, 1) == DT_OK);
        NEED(dt_irecv(DT_WORLD, y, 2, DT_I64, 1, &q) == DT_OK && dt_wait(&q) == DT_OK);
        NEED(dt_irecv(DT_WORLD, y, 2, DT_I64, 1, &q) == DT_OK && dt_wait(&q) == DT_ERR_PEER);
        snprintf(path, sizeof path, "%s/pairs.jsonl", dir);
        NEED(dt_recorder_dump(path) == DT_OK);
        return 0;
    }
    NEED(dt_irecv(DT_WORLD, &x, 1, DT_I64, 0, &q) == DT_OK && dt_wait(&q) == DT_OK);
    NEED(dt_isend(DT_WORLD, y, 2, DT_I64, 0, &q) == DT_OK && dt_wait(&q) == DT_OK);
    raise(SIGKILL);
    return 1;
}

static void calls_between_two_are_recorded_whole(void **state)
{
    static const struct {
        const char *hosts, *way;
    } cases[] = { { "2", "shm" }, { "1 1", "tcp" } };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct testjob_plan plan = { .hosts = cases[i].hosts, .body = pass_and_die };
        struct testjob_result result;
        char want[256];

        assert_int_equal(testjob_run(&plan, &result), 0);
        assert_int_equal(result.ranks[0].status, 0);
        snprintf(want, sizeof want,
                 " 1 send of 1 i64 to rank 1: ok, %s; 1 recv of 2 i64 from rank 1: ok, %s; "
                 "2 recv of 2 i64 from rank 1: DT_ERR_PEER, %s;\n",
                 cases[i].way, cases[i].way, cases[i].way);
        assert_non_null(strstr(result.last_calls, want));
    }
}

/* Dumps until the call is seen in which the other thread waits; then the rank may die for which it
 * does. */
static void *look_on(void *seen)
{
    char path[64], text[8192];

    snprintf(path, sizeof path, "%s.meanwhile.jsonl", dir);
    while (!*(_Atomic int *)seen && dt_recorder_dump(path) == DT_OK) {
        FILE *f = fopen(path, "r");
        size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
        const char *call;

        text[n] = '\0';
        if (f)
            fclose(f);
        call = strstr(text, "\"kind\":\"barrier\"");
        if (call && !strstr(call, "result"))
            *(_Atomic int *)seen = 1;
    }
    unlink(path);
    return NULL;
}

static int die_in_a_call(int rank, void *arg)
{
    dt_error_info_t info = { .size = sizeof info };
    pthread_t thread;

    NEED(dt_init() == DT_OK);
    if (rank == 2) {
        while (!*(_Atomic int *)arg)
            usleep(1000);
        raise(SIGKILL);
    }
    if (rank == 0)
        NEED(pthread_create(&thread, NULL, look_on, arg) == 0);
    NEED(dt_barrier(DT_WORLD) == DT_ERR_PEER);
    if (rank == 0)
        pthread_join(thread, NULL);
    NEED(dt_barrier(DT_WORLD) == DT_ERR_PEER);
    NEED(dt_last_error_info(&info) == DT_OK && info.code == DT_ERR_PEER && info.rank == 2);
    NEED(strcmp(info.host, "host1") == 0 && strcmp(info.operation, "barrier") == 0);
    NEED(info.call == 2 && info.signal == SIGKILL && info.status == -1);
    NEED(strstr(info.message, "barrier, call 2: rank 2 (host1) died or left (killed by signal 9)"));
    return 0;
}

static void a_death_is_told_with_its_host(void **state)
{
    struct testjob_result result;
    _Atomic int *waiting = testjob_shared(sizeof *waiting);

    (void)state;
    assert_int_equal(
        testjob_run(
            &(struct testjob_plan){ .hosts = "2 1", .body = die_in_a_call, .arg = (void *)waiting },
            &result),
        0);
    assert_int_equal(result.ranks[0].status, 0);
    assert_int_equal(result.ranks[1].status, 0);
}

static int ask_early(int rank, void *arg)
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

static void what_cannot_be_dumped_is_told(void **state)
{
    (void)state;
    assert_int_equal(testjob_pass(&(struct testjob_plan){ .hosts = "1", .body = ask_early }), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* first, so that the ranks, which are forked from here, have no calls yet */
        cmocka_unit_test_setup_teardown(a_failure_is_dumped_and_told, make_dir, remove_dir),
        cmocka_unit_test(the_last_four_calls_are_told),
        cmocka_unit_test_setup_teardown(where_dumps_are_or_why_not_is_told, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(calls_between_two_are_recorded_whole, make_dir, remove_dir),
        cmocka_unit_test(every_kind_of_failure_names_rank_host_call_and_operation),
        cmocka_unit_test(a_death_is_told_with_its_host),
        cmocka_unit_test(what_cannot_be_dumped_is_told),
        cmocka_unit_test(the_last_calls_are_kept),
        cmocka_unit_test(calls_on_a_freed_communicator_stay_for_a_while),
        cmocka_unit_test(a_call_that_lasts_is_shown_and_timed),
        cmocka_unit_test(a_brief_call_that_fails_is_timed),
        cmocka_unit_test(nothing_is_recorded_without_room),
        cmocka_unit_test(reading_disturbs_nobody_and_sees_whole_calls),
        cmocka_unit_test(as_text),
        cmocka_unit_test(as_json_lines),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
