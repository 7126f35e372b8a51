/* Reductions in which ranks reduce in each other's memory, which the kernel copies: the results,
 * whatever the kernel refuses at any moment, and how ranks choose this algorithm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/dtrun_tune.h"
#include "tests/unit/algorithm.h"
#include "tests/unit/faults.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/testjob.h"

enum {
    COUNT = 170001, /* elements: several chunks, and a partial one */
    MOST = 270001,
    ELEMENT = sizeof(int64_t),
    ALL = -1, /* in place of a root */
    MOST_FAULTS = 40,
};

static pid_t program;

/* ---- one reduction ---- */

struct reduction {
    const char *name;
    int root;          /* or ALL */
    unsigned in_place; /* a bit for each rank */
};

static const struct reduction reductions[] = {
    { "all-reduce", ALL, 0 },         { "all-reduce in place", ALL, ~0U },
    { "of some in place", ALL, 2 },   { "reduce to the first", 0, 0 },
    { "reduce to the second", 1, 0 }, { "reduce in place", 0, ~0U },
};

/* Element i is first + i * step. */
struct ramp {
    int64_t first, step;
};

static struct ramp given(int rank)
{
    return (struct ramp){ 1000003 * (rank + 1), rank + 2 };
}

static struct ramp sum(void)
{
    struct ramp all = { 0 };

    for (int rank = 0; rank < dt_size(); rank++) {
        all.first += given(rank).first;
        all.step += given(rank).step;
    }
    return all;
}

static void fill(int64_t *v, size_t count, struct ramp with)
{
    for (int64_t *end = v + count; v < end; with.first += with.step)
        *v++ = with.first;
}

static bool has(const int64_t *v, size_t count, struct ramp expected)
{
    for (const int64_t *end = v + count; v < end; expected.first += expected.step) {
        if (*v++ != expected.first)
            return false;
    }
    return true;
}

/* in and out have MOST elements each. Whether result and data are as expected. */
static int reduce(const struct reduction *x, size_t count, int64_t *in, int64_t *out)
{
    bool collects = x->root == ALL || x->root == dt_rank();
    bool in_place = collects && (x->in_place >> dt_rank() & 1);
    int64_t *data = in_place ? out : in;
    dt_result_t r;

    fill(data, count, given(dt_rank()));
    r = x->root == ALL
            ? dt_all_reduce(DT_WORLD, in_place ? DT_IN_PLACE : in, out, count, DT_I64, DT_SUM)
            : dt_reduce(DT_WORLD, in_place ? DT_IN_PLACE : in, out, count, DT_I64, DT_SUM, x->root);
    NEED(r == DT_OK);
    NEED(!collects || has(out, count, sum()));
    NEED(in_place || has(in, count, given(dt_rank())));
    return 0;
}

static const char *kind_of(const struct reduction *x)
{
    return x->root == ALL ? "all-reduce" : "reduce";
}

/* Makes two buffers that are not aligned to a cache line. */
static int64_t *buffers(int64_t **out)
{
    int64_t *in = malloc((2 * MOST + 2) * ELEMENT);

    if (!in)
        abort();
    *out = in + MOST + 1;
    return in;
}

static bool copies(void)
{
    return dt_comm_tune(DT_WORLD, "shm_direct_reduce = 1") == DT_OK;
}

/* ---- results ---- */

static int sums(int rank, void *arg)
{
    static const size_t counts[] = { 0, 1, 600, 8192, 65536, COUNT, MOST };
    int64_t *out, *in = buffers(&out);

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK && copies());
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
            NEED(reduce(&reductions[i], counts[k], in, out) == 0);
        NEED(used_algorithm(program, kind_of(&reductions[i]),
                            reductions[i].root == ALL || !reductions[i].in_place ? "shm-direct"
                                                                                 : "shm-blocks"));
    }
    free(in);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void reductions_are_right(void **state)
{
    static const char *const hosts[] = { "2", "3", "4", "7" };

    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i += SANITIZED ? 3 : 1) {
        print_message("    %s ranks\n", hosts[i]);
        testjob_must_pass(hosts[i], sums, NULL);
    }
}

/* ---- what the kernel refuses ---- */

struct refusal {
    const struct fault *fault;
    const struct reduction *reduction;
    unsigned k; /* the call of the function that fails on rank 1 */
    bool *triggered;
};

static int refuse(int rank, void *arg)
{
    const struct refusal *x = arg;
    int64_t *out, *in = buffers(&out);

    NEED(dt_init() == DT_OK && copies());
    if (rank == 1)
        faults_arm(x->fault, x->k);
    NEED(reduce(x->reduction, COUNT, in, out) == 0);
    if (rank == 1) {
        faults_disarm();
        *x->triggered = faults_triggered();
    }
    NEED(reduce(x->reduction, COUNT, in, out) == 0);
    free(in);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

/* Returns the number of calls. */
static unsigned refuse_each(const char *hosts, const struct fault *f, const struct reduction *r,
                            bool *triggered)
{
    unsigned k = 0;

    do {
        struct refusal x = { f, r, ++k, triggered };
        struct testjob_plan plan = { .hosts = hosts, .body = refuse, .arg = &x };

        *triggered = false;
        if (testjob_pass(&plan) != 0)
            fail_msg("%s among %s: call %u of %s, error %d", r->name, hosts, k, f->call, f->error);
    } while (*triggered && k < MOST_FAULTS);
    return k - 1;
}

static void refuse_all(const char *hosts, unsigned least)
{
    bool *triggered = testjob_shared(sizeof *triggered);
    unsigned most = 0;

    for (size_t i = 0; i < faults_n; i++) {
        if (strncmp(faults[i].call, "process_vm_", 11) != 0)
            continue;
        for (size_t k = 0; k < sizeof reductions / sizeof *reductions; k++) {
            unsigned calls;

            if (SANITIZED && (i + k) % 2)
                continue;
            calls = refuse_each(hosts, &faults[i], &reductions[k], triggered);
            most = calls > most ? calls : most;
        }
    }
    assert_in_range(most, least, MOST_FAULTS - 1);
}

/* Two calls for the card, then at least one in each of three chunks. */
static void a_reduction_goes_on_after_a_refusal_in_the_middle(void **state)
{
    (void)state;
    refuse_all("2", 4);
    refuse_all("3", 8);
}

/* ---- memory that the kernel does not copy ---- */

struct secret {
    bool second_half; /* only of the buffer */
    bool in_place;
};

static void *map_secret(void *at, size_t bytes)
{
    int fd = (int)syscall(SYS_memfd_secret, 0);
    void *p = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
        p = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (fd >= 0)
        close(fd);
    return p;
}

/* No other process can read part of the buffer on rank 1. */
static int keep_secret(int rank, void *arg)
{
    const struct secret *x = arg;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), half = MOST * ELEMENT / 2 / page * page;
    size_t whole = (MOST * ELEMENT + page - 1) / page * page, from = x->second_half ? half : 0;
    int64_t *in = mmap(NULL, 2 * whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int64_t *out = in + whole / ELEMENT;
    const struct reduction r = { "", ALL, x->in_place ? ~0U : 0 };
    uint8_t *hidden = (uint8_t *)(x->in_place ? out : in);

    NEED(in != MAP_FAILED);
    if (rank == 1)
        NEED(map_secret(hidden + from, whole - from) != MAP_FAILED);
    NEED(dt_init() == DT_OK && copies());
    for (int i = 0; i < 2; i++) {
        NEED(reduce(&r, MOST, in, out) == 0);
        NEED(used_algorithm(program, "all-reduce", i ? "shm-blocks" : "shm-direct"));
    }
    munmap(in, 2 * whole);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static bool keeps_secrets(void)
{
    void *p = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool can = p != MAP_FAILED && map_secret(p, 4096) != MAP_FAILED;

    if (p != MAP_FAILED)
        munmap(p, 4096);
    return can;
}

static void memory_of_another_kind_is_staged(void **state)
{
    (void)state;
    if (!keeps_secrets()) {
        print_message("the kernel has no memfd_secret\n");
        skip();
    }
    for (int i = 0; i < 4; i++) {
        struct secret x = { i & 1, i >> 1 };

        print_message("    %s%s\n", x.second_half ? "the second half" : "all of it",
                      x.in_place ? ", in place" : "");
        testjob_must_pass("3", keep_secret, &x);
    }
}

/* ---- a rank that takes no part ---- */

/* Rank 1 publishes nothing and does not read the memory of others, because seccomp could kill it
 * for that. */
static int keep_away(int rank, void *arg)
{
    int64_t *out, *in = buffers(&out);
    bool *triggered = arg;

    if (rank == 1)
        setenv("DTRUN_CMA", "0", 1);
    NEED(dt_init() == DT_OK && copies());
    for (size_t i = 0; i < faults_n; i++) {
        if (strncmp(faults[i].call, "process_vm_", 11) != 0)
            continue;
        if (rank == 1)
            faults_arm(&faults[i], 1);
        NEED(reduce(&reductions[0], COUNT, in, out) == 0);
        NEED(rank ? dt_recv(DT_WORLD, in, COUNT, DT_I64, 0) == DT_OK
                  : dt_send(DT_WORLD, in, COUNT, DT_I64, 1) == DT_OK);
        if (rank == 1)
            faults_disarm();
        *triggered = *triggered || faults_triggered();
    }
    free(in);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_rank_that_publishes_nothing_reads_nothing(void **state)
{
    bool *triggered = testjob_shared(sizeof *triggered);

    (void)state;
    testjob_must_pass("2", keep_away, triggered);
    assert_false(*triggered);
}

/* ---- small messages ---- */

/* Three ranks share two CPUs. */
static void keep_two_cpus(void)
{
    cpu_set_t all, two;

    CPU_ZERO(&two);
    sched_getaffinity(0, sizeof all, &all);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&two) < 2; i++) {
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &two);
    }
    sched_setaffinity(0, sizeof two, &two);
}

/* A message counts as small if the threshold says so, also after a larger call. */
static int reduce_few(int rank, void *arg)
{
    int64_t *out, *in = buffers(&out);

    (void)rank;
    keep_two_cpus();
    NEED(dt_init() == DT_OK && dt_comm_tune(DT_WORLD, arg) == DT_OK);
    for (size_t count = 32768; count; count = count > 8192 ? 8192 : 0)
        NEED(reduce(&reductions[0], count, in, out) == 0);
    NEED(used_algorithm(program, "all-reduce", "shm"));
    free(in);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void shm_small_is_honoured(void **state)
{
    static const struct {
        const char *hosts;
        const char *lines;
    } cases[] = {
        { "2", "shm_direct_reduce = 1G\nshm_small = 1M" },
        { "3", "shm_direct_reduce = 1G\nshm_small = 1M" },
        { "2", "shm_direct_reduce = 1\nshm_small = 64K" },
        { "3", "shm_direct_reduce = 1\nshm_small = 16K" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct testjob_plan plan = { .hosts = cases[i].hosts, .body = reduce_few };
        char lines[80];

        snprintf(lines, sizeof lines, "%s", cases[i].lines);
        plan.arg = lines;
        assert_int_equal(testjob_pass(&plan), 0);
    }
}

/* ---- death ---- */

struct death {
    const char *fold; /* of the threshold shm_direct_reduce */
    unsigned k;
    struct {
        _Atomic int here;
        bool died_inside;
    } * shared;
};

/* Rank 1 dies at its k-th passage, and the others learn of it. */
static int die(int rank, void *arg)
{
    const struct death *x = arg;
    int64_t *out, *in = buffers(&out);
    dt_result_t r;

    NEED(dt_init() == DT_OK && dt_comm_tune(DT_WORLD, x->fold) == DT_OK);
    fill(in, COUNT, given(rank));
    testjob_meet(&x->shared->here, dt_size());
    if (rank == 1)
        faults_arm_death(x->k);
    r = dt_all_reduce(DT_WORLD, in, out, COUNT, DT_I64, DT_SUM);
    if (rank == 1) {
        x->shared->died_inside = false;
        raise(SIGKILL);
    }
    NEED(r != DT_OK || has(out, COUNT, sum()));
    r = r == DT_OK ? dt_barrier(DT_WORLD) : r;
    NEED(r == DT_ERR_PEER);
    free(in);
    return 0;
}

static void die_everywhere(const char *hosts, const char *fold)
{
    struct death x = { fold, 1, testjob_shared(sizeof *x.shared) };
    struct testjob_plan plan = { .hosts = hosts, .body = die, .arg = &x };

    for (x.shared->died_inside = true; x.shared->died_inside; x.k += 1 + x.k / 6) {
        struct testjob_result result;

        x.shared->here = 0;
        assert_int_equal(testjob_run(&plan, &result), 0);
        for (int rank = 0; rank < result.n; rank++) {
            if (rank != 1 && result.ranks[rank].status != 0)
                fail_msg("%s among %s, passage %u: rank %d", fold, hosts, x.k, rank);
        }
    }
}

static void a_death_in_the_middle_is_reported(void **state)
{
    (void)state;
    die_everywhere("2", "shm_direct_reduce = 1");
    die_everywhere("3", "shm_direct_reduce = 1");
    die_everywhere("2", "shm_direct_reduce = 1G");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_are_right),
        cmocka_unit_test(a_reduction_goes_on_after_a_refusal_in_the_middle),
        cmocka_unit_test(memory_of_another_kind_is_staged),
        cmocka_unit_test(a_rank_that_publishes_nothing_reads_nothing),
        cmocka_unit_test(shm_small_is_honoured),
        cmocka_unit_test(a_death_in_the_middle_is_reported),
    };

    program = getpid();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
