/* Memory that all ranks of a host share (dt_mem_alloc): how calls use it, and its life cycle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/api/context.h"
#include "runtime/base/checksum.h"
#include "runtime/dtrun_tune.h"
#include "runtime/shm/segment.h"
#include "runtime/wire/env.h"
#include "runtime/wire/page.h"
#include "runtime/wire/sealed.h"
#include "tests/unit/algorithm.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/testjob.h"

/* ---- every call, with buffers of every kind ---- */

enum {
    COUNT = 150003,      /* floats of a block: several chunks of staging memory */
    MOST = 5,            /* ranks */
    ROOM = MOST * COUNT, /* floats of a buffer */
    SPARE = 256,         /* bytes, for buffers that start elsewhere on every rank */
    TRIES = 64,          /* calls in a round of all collectives */
};

enum mode { PLAIN, SHARED, MIXED, MODES };

struct tried { /* what a call did */
    const char *name;
    struct dt_checksum in, out; /* of its buffers after the call */
    uint64_t rounds;
};

struct bench {
    dt_comm_t *comm;
    int me;
    int n;
    float *in;
    float *out;
    const float *filled_in, *filled_out; /* what they contain before each call */
    struct tried *tried;
    int calls;
};

static void see_round(struct dt_comm *c, void *arg)
{
    *(uint64_t *)arg = c->shm.round;
}

static uint64_t rounds(dt_comm_t *comm)
{
    uint64_t round = 0;

    dt_context_visit("test", comm, see_round, &round);
    return round;
}

/* Makes numbers whose sums are rounded. */
static void make(int rank, float *in, float *out)
{
    uint32_t x = 12345U + (uint32_t)rank;

    for (size_t i = 0; i < ROOM; i++) {
        x = x * 1664525U + 1013904223U;
        in[i] = (float)(int32_t)x * 1e-7F;
        out[i] = -(float)i;
    }
}

static void fill(const struct bench *b)
{
    memcpy(b->in, b->filled_in, ROOM * sizeof *b->in);
    memcpy(b->out, b->filled_out, ROOM * sizeof *b->out);
}

#define TRY(b, call)                                                                               \
    do {                                                                                           \
        uint64_t before;                                                                           \
        fill(b);                                                                                   \
        before = rounds((b)->comm);                                                                \
        NEED((call) == DT_OK);                                                                     \
        (b)->tried[(b)->calls++] =                                                                 \
            (struct tried){ #call, dt_checksum((b)->in, ROOM * sizeof *(b)->in),                   \
                            dt_checksum((b)->out, ROOM * sizeof *(b)->out),                        \
                            rounds((b)->comm) - before };                                          \
    } while (0)

/* Only the block with the result is defined in out. */
static dt_result_t reduce_scatter_in_place(const struct bench *b)
{
    dt_result_t r = dt_reduce_scatter(b->comm, DT_IN_PLACE, b->in, COUNT, DT_F32, DT_SUM);

    memset((uint8_t *)b->in + COUNT * sizeof *b->in, 0, (ROOM - COUNT) * sizeof *b->in);
    return r;
}

static int fold_all(struct bench *b)
{
    float *in = b->in, *out = b->out;
    dt_comm_t *comm = b->comm;
    int last = b->n - 1;

    TRY(b, dt_all_reduce(comm, in, out, ROOM, DT_F32, DT_SUM));
    TRY(b, dt_all_reduce(comm, DT_IN_PLACE, in, COUNT, DT_F32, DT_AVG));
    TRY(b, dt_all_reduce(comm, in, out, 4 * COUNT, DT_F16, DT_MAX));
    TRY(b, dt_all_reduce(comm, in, out, 10, DT_F32, DT_SUM));
    TRY(b, dt_reduce(comm, in, b->me == last ? out : NULL, COUNT, DT_F32, DT_SUM, last));
    TRY(b, dt_reduce(comm, b->me == 0 ? DT_IN_PLACE : in, in, COUNT, DT_F32, DT_SUM, 0));
    TRY(b, dt_reduce_scatter(comm, in, out, COUNT, DT_F32, DT_AVG));
    TRY(b, reduce_scatter_in_place(b));
    return 0;
}

static int move_all(struct bench *b)
{
    float *in = b->in, *out = b->out;
    dt_comm_t *comm = b->comm;
    int me = b->me, last = b->n - 1;
    size_t gives[MOST], takes[MOST], counts[MOST];

    for (int i = 0; i < b->n; i++) {
        gives[i] = (size_t)((me + 2 * i) % 3) * COUNT / 2;
        takes[i] = (size_t)((i + 2 * me) % 3) * COUNT / 2;
        counts[i] = i == 1 ? 0 : COUNT - (size_t)i * 1000;
    }
    TRY(b, dt_broadcast(comm, in, ROOM, DT_F32, 0));
    TRY(b, dt_broadcast(comm, in, COUNT, DT_F32, last));
    TRY(b, dt_all_gather(comm, in, out, COUNT, DT_F32));
    TRY(b, dt_all_gather(comm, DT_IN_PLACE, out, COUNT, DT_F32));
    TRY(b, dt_all_gatherv(comm, in, out, counts, DT_F32));
    TRY(b, dt_all_to_all(comm, in, out, COUNT, DT_F32));
    TRY(b, dt_all_to_allv(comm, in, gives, out, takes, DT_F32));
    TRY(b, dt_gather(comm, in, out, COUNT, DT_F32, last));
    TRY(b, dt_gather(comm, me == 0 ? DT_IN_PLACE : in, out, COUNT, DT_F32, 0));
    TRY(b, dt_scatter(comm, in, out, COUNT, DT_F32, last));
    TRY(b, dt_scatter(comm, in, me == 0 ? in : out, COUNT, DT_F32, 0));
    if (b->n > 1 && me < 2) {
        TRY(b, me == 0 ? dt_send(comm, in, ROOM, DT_F32, 1) : dt_recv(comm, out, ROOM, DT_F32, 0));
        TRY(b, me == 1 ? dt_send(comm, in, 7, DT_F32, 0) : dt_recv(comm, out, 7, DT_F32, 1));
    }
    return 0;
}

static int every_call(dt_comm_t *comm, uint8_t *in, uint8_t *out, struct tried *tried, int *calls)
{
    static float filled_in[ROOM], filled_out[ROOM];
    struct bench b = { .comm = comm,
                       .me = dt_comm_rank(comm),
                       .n = dt_comm_size(comm),
                       .in = (float *)(void *)in,
                       .out = (float *)(void *)out,
                       .filled_in = filled_in,
                       .filled_out = filled_out,
                       .tried = tried };

    make(b.me, filled_in, filled_out);
    NEED(fold_all(&b) == 0 && move_all(&b) == 0);
    *calls = b.calls;
    return 0;
}

static int compare(const struct tried *plain, const struct tried *now, int calls, enum mode mode,
                   bool one_host)
{
    for (int i = 0; i < calls; i++) {
        if (memcmp(&plain[i].in, &now[i].in, sizeof now[i].in) != 0 ||
            memcmp(&plain[i].out, &now[i].out, sizeof now[i].out) != 0) {
            fprintf(stderr, "rank %d, mode %d: %s: other bytes than of plain memory\n", dt_rank(),
                    (int)mode, plain[i].name);
            return 1;
        }
        /* A round in which all ranks publish where their data are, and an earlier one in some
         * calls. */
        if (one_host && mode == SHARED && now[i].rounds > 2) {
            fprintf(stderr, "rank %d: %s took %d rounds\n", dt_rank(), plain[i].name,
                    (int)now[i].rounds);
            return 1;
        }
    }
    return 0;
}

static int tries_everything(int rank, void *arg)
{
    static struct tried tried[MODES][TRIES];
    bool one_host = !strchr(arg, ' ') && !strchr(arg, '@');
    size_t bytes = ROOM * sizeof(float) + SPARE;
    uint8_t *plain = calloc(2, bytes);
    void *in, *out;
    int calls;

    NEED(dt_init() == DT_OK);
    NEED(dt_mem_alloc(DT_WORLD, bytes, &in) == DT_OK);
    NEED(dt_mem_alloc(DT_WORLD, bytes, &out) == DT_OK);
    for (int mode = PLAIN; mode < MODES; mode++) {
        bool shared = mode == SHARED || (mode == MIXED && rank % 2 == 0);
        size_t at = (size_t)rank * 7 + 1;

        NEED(every_call(DT_WORLD, (shared ? (uint8_t *)in : plain) + at,
                        (shared ? (uint8_t *)out : plain + bytes) + at, tried[mode], &calls) == 0);
        NEED(compare(tried[PLAIN], tried[mode], calls, (enum mode)mode, one_host) == 0);
    }
    NEED(dt_mem_free(rank % 2 ? in : out) == DT_OK);
    NEED(dt_mem_free(rank % 2 ? out : in) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    free(plain);
    return 0;
}

static void calls_have_the_same_bytes_as_with_plain_memory(void **state)
{
    static const char *const placements[] = { "1", "2", "5", "3 2", "@0101" };

    (void)state;
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i += 1 + SANITIZED)
        testjob_must_pass(placements[i], tries_everything, placements[i]);
}

/* ---- which memory serves which calls ---- */

enum { WORDS = 400000 }; /* more than two chunks of staging memory */

static int sums(dt_comm_t *comm, int64_t *buf)
{
    int n = dt_comm_size(comm);

    for (int i = 0; i < WORDS; i++)
        buf[i] = dt_comm_rank(comm) + i;
    NEED(dt_all_reduce(comm, DT_IN_PLACE, buf, WORDS, DT_I64, DT_SUM) == DT_OK);
    for (int i = 0; i < WORDS; i++)
        NEED(buf[i] == (int64_t)n * i + n * (n - 1) / 2);
    return 0;
}

/* Whether no data was staged, also where the kernel refuses copies between processes. */
static int sums_in_rounds(dt_comm_t *comm, int64_t *buf, bool open)
{
    uint64_t before;

    NEED(dt_comm_tune(comm, "shm_direct_reduce = 1G") == DT_OK);
    before = rounds(comm);
    NEED(sums(comm, buf) == 0);
    NEED((rounds(comm) - before == 1) == open);
    return 0;
}

static int owner(int rank, void *arg)
{
    void *all, *more, *own, *other, *plain = calloc(WORDS, 8);
    dt_comm_t *part, *copy;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_split(DT_WORLD, rank % 2, 0, &part) == DT_OK);
    NEED(dt_comm_dup(part, &copy) == DT_OK);
    NEED(dt_mem_alloc(DT_WORLD, WORDS * 8, &all) == DT_OK);
    NEED(dt_mem_alloc(DT_WORLD, WORDS * 8 + 1, &more) == DT_OK);
    NEED(dt_mem_alloc(part, WORDS * 8, &own) == DT_OK);
    NEED(sums_in_rounds(DT_WORLD, all, true) == 0);
    NEED(sums_in_rounds(part, all, true) == 0);
    NEED(sums_in_rounds(part, own, true) == 0);
    NEED(sums_in_rounds(copy, own, false) == 0);
    NEED(sums_in_rounds(DT_WORLD, own, false) == 0);
    /* Ranks may use different allocations, and also those that remain when a rank has freed its
     * part. */
    NEED(sums_in_rounds(DT_WORLD, rank == 1 ? more : all, true) == 0);
    if (rank == 1)
        NEED(dt_mem_free(all) == DT_OK);
    NEED(sums_in_rounds(DT_WORLD, rank == 1 ? more : all, true) == 0);
    NEED(dt_mem_alloc(DT_WORLD, WORDS * 8, &other) == DT_OK);
    NEED(sums_in_rounds(DT_WORLD, rank == 2 ? other : rank == 1 ? more : all, true) == 0);
    NEED(sums_in_rounds(DT_WORLD, rank == 1 ? plain : all, false) == 0);
    /* The memory outlives its communicator. */
    NEED(dt_comm_free(part) == DT_OK);
    NEED(sums_in_rounds(copy, own, false) == 0);
    NEED(dt_finalize() == DT_OK);
    NEED(((int64_t *)more)[1] == dt_size() * 1 + dt_size() * (dt_size() - 1) / 2 || rank != 1);
    NEED(rank == 1 || dt_mem_free(all) == DT_OK);
    NEED(dt_mem_free(own) == DT_OK);
    free(plain);
    return 0;
}

/* Rank 1 keeps all its data, which is in plain memory. */
static int keeps_all(int rank, void *arg)
{
    size_t given[3], taken[3];
    int32_t *in, *out = calloc(3 * COUNT, sizeof *out), *plain = calloc(COUNT, sizeof *plain);
    void *memory;
    uint64_t before;

    (void)arg;
    NEED(out && plain && dt_init() == DT_OK);
    NEED(dt_mem_alloc(DT_WORLD, 3 * COUNT * sizeof *in, &memory) == DT_OK);
    in = rank == 1 ? plain : memory;
    for (int i = 0; i < 3; i++) {
        given[i] = rank == 1 && i != 1 ? 0 : COUNT;
        taken[i] = i == 1 && rank != 1 ? 0 : COUNT;
    }
    for (size_t i = 0; i < (rank == 1 ? COUNT : 3 * COUNT); i++)
        in[i] = (int32_t)(1000000 * rank + (int)i);
    before = rounds(DT_WORLD);
    NEED(dt_all_to_allv(DT_WORLD, in, given, out, taken, DT_I32) == DT_OK);
    NEED(rounds(DT_WORLD) - before == 1);
    for (size_t i = 0; i < COUNT; i++) {
        NEED(out[i] == rank * COUNT + (int)i);
        NEED(rank != 1 || out[COUNT + i] == 1000000 + (int)i);
        NEED(out[(rank == 1 ? 2 : 1) * COUNT + i] == 2000000 + rank * COUNT + (int)i);
    }
    NEED(dt_mem_free(memory) == DT_OK && dt_finalize() == DT_OK);
    free(out);
    free(plain);
    return 0;
}

static void a_rank_that_sends_nothing_needs_no_shared_memory(void **state)
{
    (void)state;
    testjob_must_pass("3", keeps_all, NULL);
}

static void any_shared_allocation_serves(void **state)
{
    (void)state;
    testjob_must_pass("4", owner, NULL);
}

/* ---- misuse ---- */

static int in_a_child(void *p)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        void *q;
        bool refused =
            dt_mem_free(p) == DT_ERR_STATE && dt_mem_alloc(DT_WORLD, 1, &q) == DT_ERR_STATE;

        *(int *)p += 1; /* shared by all ranks */
        _exit(refused ? 0 : 1);
    }
    NEED(waitpid(pid, &status, 0) == pid && status == 0);
    return 0;
}

static int misuser(int rank, void *arg)
{
    static const size_t too_much[] = { SIZE_MAX, PTRDIFF_MAX, (size_t)1 << 60, (size_t)1 << 46 };
    dt_error_info_t info = { .size = sizeof info };
    void *p, *q = &p;

    (void)arg;
    NEED(dt_mem_alloc(DT_WORLD, 1, &q) == DT_ERR_STATE && q == NULL);
    NEED(dt_mem_free(&q) == DT_ERR_ARG);
    NEED(dt_init() == DT_OK);
    NEED(dt_mem_alloc(DT_WORLD, 1, NULL) == DT_ERR_ARG);
    NEED(dt_mem_alloc(DT_COMM_NULL, 1, &q) == DT_ERR_ARG);
    NEED(dt_mem_alloc(DT_WORLD, 0, &p) == DT_OK && p == NULL);
    NEED(dt_mem_free(NULL) == DT_OK);
    for (size_t i = 0; i < sizeof too_much / sizeof *too_much; i++) {
        char text[32];

        NEED(dt_mem_alloc(DT_WORLD, too_much[i], &p) == DT_ERR_NOMEM && p == NULL);
        snprintf(text, sizeof text, " %zu bytes", too_much[i]);
        NEED(strstr(dt_last_error(), text) && strstr(dt_last_error(), "rank 0 ("));
        NEED(dt_last_error_info(&info) == DT_OK && info.rank == 0 && *info.host);
    }
    NEED(dt_mem_alloc(DT_WORLD, 100000, &p) == DT_OK);
    NEED(dt_mem_free((uint8_t *)p + 64) == DT_ERR_ARG && dt_mem_free(&q) == DT_ERR_ARG);
    NEED(strstr(dt_last_error(), "dt_mem_alloc"));
    *(int *)p = 0;
    NEED(in_a_child(p) == 0 && *(int *)p == 1);
    NEED(dt_mem_free(p) == DT_OK && dt_mem_free(p) == DT_ERR_ARG);
    NEED(dt_join_begin(DT_WORLD) == DT_OK);
    NEED(dt_mem_alloc(DT_WORLD, 1, &p) == DT_ERR_UNSUPPORTED);
    NEED(dt_join(DT_WORLD, NULL) == DT_OK);
    NEED(dt_mem_alloc(DT_WORLD, 8, &q) == DT_OK);
    if (dt_size() > 1) {
        NEED(dt_mem_alloc(DT_WORLD, rank ? 4096 : 8192, &p) == DT_ERR_MISMATCH);
        NEED(strstr(dt_last_error(), "4096") && strstr(dt_last_error(), "8192"));
    }
    /* Existing memory stays. */
    *(int *)q = 5;
    NEED(dt_mem_free(q) == DT_OK);
    return dt_size() > 1 ? 0 : dt_finalize() != DT_OK;
}

static void misuse_is_an_error(void **state)
{
    struct testjob_result result;
    const struct testjob_plan plan = { .hosts = "2 1", .body = misuser };

    (void)state;
    testjob_must_pass("1", misuser, NULL);
    assert_int_equal(testjob_run(&plan, &result), 0);
    for (int i = 0; i < result.n; i++)
        assert_int_equal(result.ranks[i].status, 0);
}

/* A single rank cannot get more of some resource. */
static int poor(int rank, void *arg)
{
    static const int what[] = { RLIMIT_NOFILE, RLIMIT_AS };
    struct rlimit limit, none;
    void *p;

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (size_t i = 0; i < sizeof what / sizeof *what; i++) {
        getrlimit(what[i], &limit);
        none = limit;
        none.rlim_cur = what[i] == RLIMIT_NOFILE ? 3 : 1;
        if (rank == 1)
            NEED(setrlimit(what[i], &none) == 0);
        NEED(dt_mem_alloc(DT_WORLD, 4 << 20, &p) == DT_ERR_NOMEM && !p);
        NEED(strstr(dt_last_error(), "4194304 bytes"));
        NEED(strstr(dt_last_error(), strerror(what[i] == RLIMIT_NOFILE ? EMFILE : ENOMEM)));
        NEED(setrlimit(what[i], &limit) == 0);
        NEED(dt_mem_alloc(DT_WORLD, WORDS * 8, &p) == DT_OK);
        NEED(sums_in_rounds(DT_WORLD, p, true) == 0);
        NEED(dt_mem_free(p) == DT_OK);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void an_allocation_fails_on_all_ranks_if_it_fails_on_one(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers take more address space than the limit */
#endif
    testjob_must_pass("3", poor, NULL);
}

/* ---- nothing grows ---- */

static int count_lines(const char *path)
{
    FILE *f = fopen(path, "r");
    int lines = 0, c;

    while (f && (c = fgetc(f)) != EOF)
        lines += c == '\n';
    if (f)
        fclose(f);
    return lines;
}

static int count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

enum { ROUNDS = SANITIZED ? 500 : 5000, AT_ONCE = 2 };

static int again_and_again(int rank, void *arg)
{
    int maps = 0, descriptors = 0;

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < ROUNDS; i++) {
        void *p[AT_ONCE];

        for (int k = 0; k < AT_ONCE; k++)
            NEED(dt_mem_alloc(DT_WORLD, 20000, &p[k]) == DT_OK);
        *(int *)p[1] = i;
        for (int k = 0; k < AT_ONCE; k++)
            NEED(dt_mem_free(p[(k + rank) % AT_ONCE]) == DT_OK);
        if (i == 10) {
            maps = count_lines("/proc/self/maps");
            descriptors = count_descriptors();
        }
    }
    NEED(count_descriptors() == descriptors);
    NEED(count_lines("/proc/self/maps") < maps + 20);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void repeated_allocations_leave_nothing(void **state)
{
    int descriptors = count_descriptors();

    (void)state;
    testjob_must_pass("2", again_and_again, NULL);
    assert_int_equal(count_descriptors(), descriptors);
}

/* A call may still read the part of a rank whose own call has failed and that has freed its
 * part. */
static void memory_in_use_by_a_call_stays_mapped(void **state)
{
    static const struct dt_segment_kind kind = { .number = 1, .n = 2, .bytes = 1 };
    const struct dt_place others = { 1, 2 * dt_page_bytes() };
    size_t total = dt_segment_total(kind.n, kind.bytes);
    int fd = dt_sealed_create("test", total);
    void *part = dt_segment_open(&kind, fd);
    uint32_t *freed = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    (void)state;
    assert_non_null(part);
    assert_true(freed != MAP_FAILED);
    close(fd);
    dt_segment_hold();
    freed[1] = 1;
    assert_true(dt_segment_free(part));
    assert_non_null(dt_segment_find(others));
    assert_int_equal(*dt_segment_find(others), 0);
    dt_segment_release();
    dt_segment_sweep();
    assert_null(dt_segment_find(others));
    munmap(freed, total);
}

/* ---- failures ---- */

static _Atomic int *ready;

static int dies(int rank, void *arg)
{
    dt_result_t r = DT_OK;
    void *p;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_mem_alloc(DT_WORLD, 8 << 20, &p) == DT_OK);
    memset(p, rank, 8 << 20);
    for (int i = 0; r == DT_OK; i++) {
        r = dt_all_reduce(DT_WORLD, DT_IN_PLACE, p, 1 << 20, DT_I64, DT_BOR);
        if (i == 20)
            ++*ready; /* from here on it may be killed at any point */
    }
    NEED(r == DT_ERR_PEER);
    /* This rank still has its memory. */
    memset(p, 1, 8 << 20);
    NEED(dt_mem_alloc(DT_WORLD, 8, &p) == DT_ERR_PEER && !p);
    return 7;
}

static void kill_one(struct testjob *job, int ms)
{
    (void)ms;
    if (*ready == 3)
        testjob_kill(job, 2, SIGKILL);
}

static void a_death_ends_the_call(void **state)
{
    const struct testjob_plan plan = { .hosts = "3", .body = dies, .on_tick = kill_one };
    struct testjob_result result;

    (void)state;
    for (int i = 0; i < 5; i++) {
        *ready = 0;
        assert_int_equal(testjob_run(&plan, &result), 0);
        assert_true(WIFSIGNALED(result.ranks[2].status));
        for (int rank = 0; rank < 2; rank++)
            assert_int_equal(WEXITSTATUS(result.ranks[rank].status), 7);
    }
}

/* A job that was started by hand does not know the name of its host. */
static int lack_memory_alone(void)
{
    void *p;

    NEED(dt_init() == DT_OK && dt_mem_alloc(DT_WORLD, SIZE_MAX / 2, &p) == DT_ERR_NOMEM);
    NEED(strstr(dt_last_error(), "dt_mem_alloc: rank 0 cannot have ") == dt_last_error());
    return dt_finalize();
}

static void a_lack_of_memory_is_named_without_a_host_name(void **state)
{
    pid_t pid = fork();
    int status;

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(lack_memory_alone() != DT_OK);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* A rank that frees memory while its other thread passes it to a call fails alone. */
static void *frees(void *p)
{
    while (*ready < 3)
        usleep(100);
    dt_mem_free(p);
    return NULL;
}

static int careless(int rank, void *arg)
{
    dt_result_t r = DT_OK;
    pthread_t thread;
    void *p;

    (void)arg;
    signal(SIGSEGV, SIG_DFL);
    NEED(dt_init() == DT_OK);
    NEED(dt_mem_alloc(DT_WORLD, 8 << 20, &p) == DT_OK);
    if (rank == 2)
        NEED(pthread_create(&thread, NULL, frees, p) == 0);
    for (int i = 0; r == DT_OK; i++) {
        r = dt_all_reduce(DT_WORLD, DT_IN_PLACE, p, 1 << 20, DT_I64, DT_BOR);
        if (i == 20)
            ++*ready;
    }
    return r == DT_ERR_PEER ? 7 : 1;
}

static void a_rank_that_frees_too_early_fails_alone(void **state)
{
    const struct testjob_plan plan = { .hosts = "3", .body = careless };
    struct testjob_result result;

    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* the test causes a crash */
#endif
    *ready = 0;
    assert_int_equal(testjob_run(&plan, &result), 0);
    assert_true(WIFSIGNALED(result.ranks[2].status));
    assert_int_equal(WTERMSIG(result.ranks[2].status), SIGSEGV);
    for (int rank = 0; rank < 2; rank++)
        assert_int_equal(WEXITSTATUS(result.ranks[rank].status), 7);
}

static int aborts(int rank, void *arg)
{
    dt_comm_t *comm;
    void *p;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    NEED(dt_mem_alloc(DT_WORLD, WORDS * 8, &p) == DT_OK);
    if (rank == 1)
        NEED(dt_comm_abort(comm) == DT_OK);
    NEED(dt_all_reduce(comm, DT_IN_PLACE, p, WORDS, DT_I64, DT_SUM) == DT_ERR_ABORTED);
    NEED(sums_in_rounds(DT_WORLD, p, true) == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void an_abort_ends_the_call(void **state)
{
    (void)state;
    testjob_must_pass("3", aborts, NULL);
}

/* ---- with other parts ---- */

static int saves(int rank, void *arg)
{
    int64_t step, *p;
    void *memory;

    setenv(DT_ENV_CHECKPOINT_DIR, arg, 1);
    setenv(DT_ENV_JOB_ID, "memory-1", 1);
    NEED(dt_init() == DT_OK);
    NEED(dt_mem_alloc(DT_WORLD, WORDS * 8, &memory) == DT_OK);
    p = memory;
    NEED(dt_checkpoint_register("memory", p, WORDS * 8) == DT_OK);
    for (int i = 0; i < WORDS; i++)
        p[i] = rank + i;
    NEED(dt_checkpoint_save(3) == DT_OK);
    memset(p, 0, WORDS * 8);
    NEED(dt_checkpoint_restore(&step) == DT_OK && step == 3);
    for (int i = 0; i < WORDS; i++)
        NEED(p[i] == rank + i);
    NEED(sums_in_rounds(DT_WORLD, p, true) == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void shared_memory_is_saved_and_restored(void **state)
{
    char dir[] = "/tmp/dtrun-memory-XXXXXX", command[64];

    (void)state;
    assert_non_null(mkdtemp(dir));
    testjob_must_pass("2", saves, dir);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

enum { THREADS = 3, TURNS = 20 };

struct seat {
    pthread_t thread;
    dt_comm_t *comm;
    bool good;
};

static void *allocates(void *arg)
{
    struct seat *seat = arg;

    for (int i = 0; i < TURNS; i++) {
        void *p;

        if (dt_mem_alloc(seat->comm, WORDS * 8, &p) != DT_OK || sums(seat->comm, p) != 0 ||
            dt_mem_free(p) != DT_OK)
            return NULL;
    }
    seat->good = true;
    return NULL;
}

static int threads(int rank, void *arg)
{
    struct seat seats[THREADS] = { 0 };

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < THREADS; i++)
        NEED(dt_comm_dup(DT_WORLD, &seats[i].comm) == DT_OK);
    for (int i = 0; i < THREADS; i++)
        NEED(pthread_create(&seats[i].thread, NULL, allocates, &seats[i]) == 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(seats[i].thread, NULL);
        NEED(seats[i].good);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void threads_have_their_own_allocations(void **state)
{
    (void)state;
    testjob_must_pass("2", threads, NULL);
}

/* ---- ranks that share CPUs ---- */

/* Binds all ranks to the same CPU. */
static bool bind_to_first_cpu(void)
{
    cpu_set_t all, one;
    size_t cpu = 0;

    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return false;
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

static int share_a_cpu(int rank, void *arg)
{
    enum { BYTES = 8192 };
    const pid_t *program = arg;
    uint8_t *p;

    (void)rank;
    NEED(bind_to_first_cpu());
    NEED(dt_init() == DT_OK && dt_mem_alloc(DT_WORLD, 2 * BYTES, (void **)&p) == DT_OK);
    NEED(dt_all_reduce(DT_WORLD, p, p + BYTES, BYTES / 2, DT_U8, DT_SUM) == DT_OK);
    NEED(used_algorithm(*program, "all-reduce", "shm"));
    NEED(dt_all_reduce(DT_WORLD, p, p + BYTES, BYTES, DT_U8, DT_SUM) == DT_OK);
    NEED(used_algorithm(*program, "all-reduce", "shm-mapped"));
    NEED(dt_mem_free(p) == DT_OK && dt_finalize() == DT_OK);
    return 0;
}

/* With shared CPUs a second synchronisation takes long, but copying 8 KiB takes longer. So data
 * stays in place whatever its size. */
static void ranks_that_share_cpus_stage_only_few_bytes(void **state)
{
    static char hosts[16];
    pid_t program = getpid();

    (void)state;
    snprintf(hosts, sizeof hosts, "%d", MOST);
    testjob_must_pass(hosts, share_a_cpu, &program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_have_the_same_bytes_as_with_plain_memory),
        cmocka_unit_test(any_shared_allocation_serves),
        cmocka_unit_test(a_rank_that_sends_nothing_needs_no_shared_memory),
        cmocka_unit_test(misuse_is_an_error),
        cmocka_unit_test(an_allocation_fails_on_all_ranks_if_it_fails_on_one),
        cmocka_unit_test(repeated_allocations_leave_nothing),
        cmocka_unit_test(memory_in_use_by_a_call_stays_mapped),
        cmocka_unit_test(a_death_ends_the_call),
        cmocka_unit_test(a_lack_of_memory_is_named_without_a_host_name),
        cmocka_unit_test(a_rank_that_frees_too_early_fails_alone),
        cmocka_unit_test(an_abort_ends_the_call),
        cmocka_unit_test(shared_memory_is_saved_and_restored),
        cmocka_unit_test(threads_have_their_own_allocations),
        cmocka_unit_test(ranks_that_share_cpus_stage_only_few_bytes),
    };

    ready = testjob_shared(sizeof *ready);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
