/* Data that goes directly from one rank's memory to another's, and everything that may forbid
 * it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/shm/cma.h"
#include "tests/unit/algorithm.h"
#include "tests/unit/checks.h"
#include "tests/unit/forbid.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

enum { COUNT = 100003, SEVERAL = 3 };

/* ---- what the system refuses ---- */

static int run_child(int (*body)(void *arg), void *arg)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(body(arg));
    if (pid > 0)
        waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- finding the right process ---- */

struct cards {
    struct dt_hostshm_card child[2];
    int shown[2];
    int go[2];
};

/* Starts a process that has published its card, and lives until the test closes the pipe. */
static pid_t show_card(struct cards *c, int i)
{
    pid_t pid = fork();
    char end = 0;

    if (pid == 0) {
        dt_cma_introduce(&c->child[i]);
        close(c->go[1]);
        _exit(write(c->shown[1], &end, 1) != 1 || read(c->go[0], &end, 1) != 0);
    }
    assert_int_equal(read(c->shown[0], &end, 1), 1);
    return pid;
}

static bool kernel_allows(void)
{
    struct dt_hostshm_card own = { 0 };

    dt_cma_introduce(&own);
    return dt_cma_finds(&own);
}

static int tell_allowed(void *arg)
{
    (void)arg;
    return kernel_allows();
}

static int tell_allowed_without(void *arg)
{
    return forbid(SYS_process_vm_readv, *(unsigned *)arg) ? kernel_allows() : -1;
}

static void skip_where_refused(void)
{
    if (run_child(tell_allowed, NULL) == 1)
        return;
    print_message("the kernel refuses process_vm_readv here\n");
    skip();
}

/* Both children are forked from one process, so they have the word at the same address. */
static void another_process_is_not_taken_for_a_rank(void **state)
{
    struct cards *c = testjob_shared(sizeof *c);
    struct dt_hostshm_card other;
    pid_t pids[2];

    (void)state;
    skip_where_refused();
    assert_int_equal(pipe(c->go), 0);
    assert_int_equal(pipe(c->shown), 0);
    for (int i = 0; i < 2; i++)
        pids[i] = show_card(c, i);
    for (int i = 0; i < 2; i++)
        assert_true(dt_cma_finds(&c->child[i]));
    assert_int_equal(c->child[0].at, c->child[1].at);
    other = c->child[0];
    other.pid = c->child[1].pid;
    assert_false(dt_cma_finds(&other));
    other.pid = 0;
    assert_false(dt_cma_finds(&other));
    close(c->go[0]);
    close(c->go[1]);
    close(c->shown[0]);
    close(c->shown[1]);
    for (int i = 0; i < 2; i++)
        waitpid(pids[i], NULL, 0);
    assert_false(dt_cma_finds(&c->child[0])); /* it has ended */
}

static void a_refusal_of_the_kernel_is_found_out(void **state)
{
    unsigned errors[] = { EPERM, ENOSYS, ESRCH };

    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        assert_int_equal(run_child(tell_allowed_without, &errors[i]), 0);
}

static int read_part(void *arg)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), far = 3 * 1024 * 1024;
    uint8_t *p = mmap(NULL, far + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *to = malloc(far + page);
    struct dt_hostshm *h = arg;
    struct dt_hostshm_target target = { 0 };
    struct dt_hostshm_card own = { 0 };

    dt_cma_introduce(&own);
    if (p == MAP_FAILED || !to)
        return 10;
    for (size_t i = 0; i < far; i++)
        p[i] = (uint8_t)(i * 2654435761U >> 16);
    if (!dt_cma_read(h, &own, to, (uintptr_t)p, far) || memcmp(p, to, far) != 0)
        return 11;
    memset(p, 0, far);
    if (!dt_cma_write(h, &own, &target, (uintptr_t)p, to, far) || memcmp(p, to, far) != 0)
        return 12;
    munmap(p + far, page);
    if (dt_cma_read(h, &own, to, (uintptr_t)p + page, far))
        return 13;
    mprotect(p, page, PROT_READ);
    if (dt_cma_write(h, &own, &target, (uintptr_t)p, to, far))
        return 14;
    dt_hostshm_stop(h, DT_HOSTSHM_PEER_DIED, 0);
    return dt_cma_read(h, &own, to, (uintptr_t)p, far) ? 15 : 0;
}

static void a_copy_is_complete_or_fails(void **state)
{
    struct dt_hostshm h;

    (void)state;
    skip_where_refused();
    assert_int_equal(dt_hostshm_create_private(&h), 0);
    assert_int_equal(run_child(read_part, &h), 0);
    dt_hostshm_unmap(&h);
}

/* ---- ranks ---- */

struct hindrance {
    const char *name;
    int rank; /* the rank with the fault */
    const char *env;
    long call; /* the call that fails with error; 0: none */
    unsigned error;
    bool later;      /* only after data has been passed */
    bool other_pids; /* the rank is in a pid namespace of its own */
    const char *algorithm, *algorithm_later;
};

static pid_t program; /* the process ID of the test, which ranks in another namespace do not see */

/* From 0 to 1, then back, misaligned. */
static int pass_both_ways(dt_comm_t *comm)
{
    static uint8_t room[2][8 * COUNT + 2];
    int64_t value;

    for (int giver = 0; giver < 2; giver++) {
        uint8_t *buf = room[giver] + 1;
        bool gives = dt_rank() == giver;

        memset(room[giver], 0xa5, sizeof room[giver]);
        for (int64_t i = 0; gives && i < COUNT; i++)
            memcpy(buf + 8 * i, &(int64_t){ i * 7 + giver }, 8);
        NEED((gives ? dt_send(comm, buf, COUNT, DT_I64, 1 - giver)
                    : dt_recv(comm, buf, COUNT, DT_I64, giver)) == DT_OK);
        for (int64_t i = 0; i < COUNT; i++) {
            memcpy(&value, buf + 8 * i, 8);
            NEED(value == i * 7 + giver);
        }
        NEED(room[giver][0] == 0xa5 && room[giver][8 * COUNT + 1] == 0xa5);
    }
    return 0;
}

static int pass(int rank, const struct hindrance *h)
{
    dt_comm_t *comm;

    if (h->env && rank == h->rank)
        setenv("DTRUN_CMA", h->env, 1);
    NEED(!h->call || h->later || rank != h->rank || forbid(h->call, h->error));
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    for (int i = 0; i < SEVERAL; i++)
        NEED(pass_both_ways(DT_WORLD) == 0 && used_algorithm(program, "", h->algorithm));
    NEED(!h->call || !h->later || rank != h->rank || forbid(h->call, h->error));
    for (int i = 0; i < SEVERAL; i++)
        NEED(pass_both_ways(DT_WORLD) == 0 && used_algorithm(program, "", h->algorithm_later));
    NEED(pass_both_ways(comm) == 0 && used_algorithm(program, "", h->algorithm_later));
    NEED(dt_comm_free(comm) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static int hindered(int rank, void *arg)
{
    const struct hindrance *h = arg;
    int status;
    pid_t pid;

    if (!h->other_pids || rank != h->rank)
        return pass(rank, h);
    NEED(unshare(CLONE_NEWPID) == 0);
    pid = fork();
    if (pid == 0)
        _exit(getpid() == 1 ? pass(rank, h) : 1);
    NEED(waitpid(pid, &status, 0) == pid);
    /* At a regular exit a sanitizer would start a process, but the namespace has ended. */
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void run(const struct hindrance *h)
{
    print_message("    %s\n", h->name);
    testjob_must_pass("2", hindered, (void *)(uintptr_t)h);
}

static void data_is_copied_directly_unless_a_rank_refuses(void **state)
{
    static const struct hindrance rows[] = {
        { .name = "nothing", .algorithm = "shm-direct", .algorithm_later = "shm-direct" },
        { .name = "one rank does not want it", .rank = 1, .env = "0" },
        { .name = "reading forbidden", .call = SYS_process_vm_readv, .error = EPERM },
        { .name = "no such call", .rank = 1, .call = SYS_process_vm_readv, .error = ENOSYS },
        { .name = "writing forbidden", .rank = 1, .call = SYS_process_vm_writev, .error = EPERM },
        { .name = "reading forbidden later",
          .call = SYS_process_vm_readv,
          .error = EFAULT,
          .later = true,
          .algorithm = "shm-direct" },
    };

    (void)state;
    skip_where_refused();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hindrance h = rows[i];

        h.algorithm = h.algorithm ? h.algorithm : "shm";
        h.algorithm_later = h.algorithm_later ? h.algorithm_later : "shm";
        run(&h);
    }
}

static void process_ids_of_another_namespace_are_recognised(void **state)
{
    const struct hindrance h = { .name = "another pid namespace",
                                 .rank = 1,
                                 .other_pids = true,
                                 .algorithm = "shm",
                                 .algorithm_later = "shm" };

    (void)state;
    if (geteuid() != 0) {
        print_message("making a pid namespace needs root\n");
        skip();
    }
    run(&h);
}

/* ---- a failed call is over ---- */

enum { BIG = 8 * 1024 * 1024, PAGE = 4096, STOPS = 300, MARK = 0x5a };

/* Aborts this many microseconds later. */
struct abort_soon {
    dt_comm_t *comm;
    int us;
};

static void *abort_soon(void *arg)
{
    const struct abort_soon *a = arg;

    for (int64_t end = testjob_now_us() + a->us; testjob_now_us() < end;)
        ;
    return dt_comm_abort(a->comm) == DT_OK ? arg : NULL;
}

/* Rank 1 reuses buf as soon as its call has returned. No data of rank 0 arrives later. */
static int stop_one(int rank, uint8_t *buf, dt_comm_t *comm, int us)
{
    struct abort_soon a = { comm, us };
    pthread_t thread;
    dt_result_t r;
    void *good;

    memset(buf, rank, BIG);
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    NEED(pthread_create(&thread, NULL, abort_soon, &a) == 0);
    r = rank ? dt_recv(comm, buf, BIG, DT_U8, 0) : dt_send(comm, buf, BIG, DT_U8, 1);
    for (size_t at = 0; rank && at < BIG; at += PAGE)
        buf[at] = MARK;
    NEED(r == DT_OK || r == DT_ERR_ABORTED);
    NEED(pthread_join(thread, &good) == 0 && good && dt_barrier(DT_WORLD) == DT_OK);
    for (size_t at = 0; rank && at < BIG; at += PAGE)
        NEED(buf[at] == MARK);
    return 0;
}

static int stop_often(int rank, void *arg)
{
    dt_comm_t *comm;
    void *buf;

    NEED(dt_init() == DT_OK);
    if (*(bool *)arg)
        NEED(dt_mem_alloc(DT_WORLD, BIG, &buf) == DT_OK);
    else
        NEED((buf = malloc(BIG)) != NULL);
    for (int i = 0; i < STOPS; i++) {
        NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
        NEED(stop_one(rank, buf, comm, 10 * (i * 37 % 100)) == 0);
        NEED(dt_comm_free(comm) == DT_ERR_ABORTED);
    }
    NEED(*(bool *)arg ? dt_mem_free(buf) == DT_OK : (free(buf), true));
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void no_data_arrives_after_a_call_has_failed(void **state)
{
    (void)state;
    for (int mapped = 0; mapped < 2; mapped++) {
        bool arg = mapped;

        testjob_must_pass("2", stop_often, &arg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_process_is_not_taken_for_a_rank),
        cmocka_unit_test(a_refusal_of_the_kernel_is_found_out),
        cmocka_unit_test(a_copy_is_complete_or_fails),
        CHECKS("6, 10", data_is_copied_directly_unless_a_rank_refuses),
        cmocka_unit_test(process_ids_of_another_namespace_are_recognised),
        cmocka_unit_test(no_data_arrives_after_a_call_has_failed),
    };

    program = getpid();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
