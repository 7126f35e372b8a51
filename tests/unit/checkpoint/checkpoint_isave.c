/* Saves in the background: what the program may do meanwhile, what the calls report, and what is
 * on disk. Until the test opens a gate, fsync waits at it, so a save stays under way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/comm/comm.h"
#include "runtime/comm/slots.h"
#include "runtime/wire/env.h"
#include "tests/unit/checkpoint/scratch.h"
#include "tests/unit/faults.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/testjob.h"

enum { WORDS = 50000, CALLS = 100, SMALL_BUFFERS = 5000 };
enum gate { OPEN, SHUT, SHUT_UNLESS_CALLED, DEADLY };

static const char *const placements[] = { "1", "2", "2 1", "1 1 1", NULL };

static int64_t kept[WORDS];
static _Atomic enum gate gate; /* of this process */
static _Atomic bool reached;   /* a save has reached it */

/* The linker prefers it to libc's. */
int fsync(int fd)
{
    reached = true;
    while (gate == SHUT || (gate == SHUT_UNLESS_CALLED && !dt_slot_is_held(DT_WORLD)))
        usleep(500);
    if (gate == DEADLY)
        raise(SIGKILL);
    return (int)syscall(SYS_fsync, fd);
}

static bool has_step(int64_t step)
{
    char path[128];

    snprintf(path, sizeof path, "%s/step_%012lld/MANIFEST", base, (long long)step);
    return access(path, F_OK) == 0;
}

static void fill(int64_t with)
{
    for (int i = 0; i < WORDS; i++)
        kept[i] = with * 1000 + i + dt_rank();
}

static bool holds(int64_t with)
{
    for (int i = 0; i < WORDS; i++)
        if (kept[i] != with * 1000 + i + dt_rank())
            return false;
    return true;
}

static int start_without_buffers(void)
{
    NEED(setenv(DT_ENV_CHECKPOINT_DIR, base, 1) == 0);
    NEED(setenv(DT_ENV_JOB_ID, "isave-1", 1) == 0);
    NEED(dt_init() == DT_OK);
    return 0;
}

static int start(void)
{
    NEED(start_without_buffers() == 0);
    NEED(dt_checkpoint_register("kept", kept, sizeof kept) == DT_OK);
    return 0;
}

/* arg is a counter for testjob_meet. */
static int pass_all(const char *const *hosts, int (*body)(int rank, void *arg))
{
    for (; *hosts; hosts++) {
        const struct testjob_plan plan = { .hosts = *hosts,
                                           .body = body,
                                           .arg = testjob_shared(sizeof(_Atomic int)) };

        if (testjob_pass(&plan) != 0 || remove_base(NULL) != 0 || make_base(NULL) != 0)
            return 1;
    }
    return 0;
}

static int in_all_placements(int (*body)(int rank, void *arg))
{
    return pass_all(placements, body);
}

/* ---- while a save is under way ---- */

static int make_calls(void)
{
    int64_t sum;

    for (int i = 0; i < CALLS; i++) {
        sum = dt_rank() + i;
        NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &sum, 1, DT_I64, DT_SUM) == DT_OK);
        NEED(sum == ranks_sum(i));
    }
    return 0;
}

static int goes_on_meanwhile(int rank, void *arg)
{
    dt_request_t request;
    int64_t step;
    int done;

    (void)rank;
    (void)arg;
    NEED(start() == 0);
    fill(1);
    gate = SHUT;
    NEED(dt_checkpoint_isave(1, &request) == DT_OK);
    fill(2);
    NEED(make_calls() == 0);
    NEED(dt_test(&request, &done) == DT_OK && !done && !has_step(1));
    NEED(dt_checkpoint_register("late", kept, 1) == DT_ERR_STATE);
    gate = OPEN;
    NEED(dt_wait(&request) == DT_OK && has_step(1));
    NEED(dt_checkpoint_restore(&step) == DT_OK && step == 1 && holds(1));
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void buffers_may_change_and_calls_go_on_during_a_save(void **state)
{
    (void)state;
    assert_int_equal(in_all_placements(goes_on_meanwhile), 0);
}

/* Each of the later calls waits for the save before it, whose gate opens once the call has begun.
 */
static int calls_again(int rank, void *arg)
{
    dt_request_t first, second;
    int64_t step;
    int done;

    (void)rank;
    (void)arg;
    NEED(start() == 0);
    fill(1);
    gate = SHUT_UNLESS_CALLED;
    NEED(dt_checkpoint_isave(1, &first) == DT_OK);
    fill(2);
    NEED(dt_checkpoint_isave(2, &second) == DT_OK);
    NEED(has_step(1) && dt_wait_for(&first, 60, &done) == DT_OK && done);
    fill(3);
    NEED(dt_checkpoint_restore(&step) == DT_OK && step == 2 && holds(2));
    NEED(dt_checkpoint_isave(3, &first) == DT_OK);
    NEED(dt_checkpoint_save(4) == DT_OK && has_step(3) && has_step(4));
    NEED(dt_wait(&first) == DT_OK && dt_wait(&second) == DT_OK);
    gate = OPEN;
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void the_next_checkpoint_call_waits_for_the_save(void **state)
{
    (void)state;
    assert_int_equal(in_all_placements(calls_again), 0);
}

static void *open_gate(void *arg)
{
    while (!reached)
        usleep(500);
    gate = OPEN;
    return arg;
}

static int ends_meanwhile(int rank, void *arg)
{
    dt_request_t request;
    pthread_t opener;

    (void)arg;
    NEED(start() == 0);
    gate = SHUT;
    NEED(dt_checkpoint_isave(1, &request) == DT_OK);
    NEED(pthread_create(&opener, NULL, open_gate, NULL) == 0);
    NEED(dt_finalize() == DT_OK && has_step(1));
    NEED(rank == 1 || dt_wait(&request) == DT_OK); /* rank 1 never waits for it */
    NEED(pthread_join(opener, NULL) == 0);
    NEED(dt_checkpoint_isave(2, &request) == DT_ERR_STATE);
    return 0;
}

static void finalize_waits_for_the_save(void **state)
{
    (void)state;
    assert_int_equal(in_all_placements(ends_meanwhile), 0);
}

static int splits_meanwhile(int rank, void *arg)
{
    dt_request_t request;
    dt_comm_t *dup;
    int64_t x = 1;

    (void)rank;
    (void)arg;
    NEED(start() == 0);
    gate = SHUT;
    NEED(dt_checkpoint_isave(1, &request) == DT_OK);
    NEED(dt_comm_dup(DT_WORLD, &dup) == DT_OK);
    NEED(dt_all_reduce(dup, DT_IN_PLACE, &x, 1, DT_I64, DT_SUM) == DT_OK && x == dt_size());
    NEED(dt_comm_free(dup) == DT_OK);
    gate = OPEN;
    NEED(dt_wait(&request) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void communicators_can_be_made_during_a_save(void **state)
{
    (void)state;
    assert_int_equal(in_all_placements(splits_meanwhile), 0);
}

/* Rank 0 has no buffers, rank 1 has many, and every third buffer is empty. */
static int saves_odd_buffers(int rank, void *arg)
{
    static char many[SMALL_BUFFERS];
    int n = rank == 1 ? SMALL_BUFFERS : rank;
    dt_request_t request;
    int64_t step;

    (void)arg;
    NEED(start_without_buffers() == 0);
    for (int i = 0; i < n; i++) {
        char name[16];

        snprintf(name, sizeof name, "%d", i);
        NEED(dt_checkpoint_register(name, i % 3 ? &many[i] : NULL, i % 3 != 0) == DT_OK);
        many[i] = (char)(i % 100);
        NEED(dt_checkpoint_register(name, many, 1) == DT_ERR_ARG); /* again */
    }
    NEED(dt_checkpoint_isave(1, &request) == DT_OK);
    memset(many, 0, sizeof many);
    NEED(dt_wait(&request) == DT_OK);
    NEED(dt_checkpoint_restore(&step) == DT_OK && step == 1);
    for (int i = 0; i < n; i++)
        NEED(many[i] == (i % 3 ? i % 100 : 0));
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void many_empty_and_no_buffers_can_be_saved(void **state)
{
    (void)state;
    assert_int_equal(in_all_placements(saves_odd_buffers), 0);
}

static void *wait_for_request(void *request)
{
    return (void *)(intptr_t)dt_wait(request);
}

static void *save_2(void *unused)
{
    (void)unused;
    return (void *)(intptr_t)dt_checkpoint_save(2);
}

/* Returns 0 if a forked child can neither wait nor save. */
static int fork_meanwhile(dt_request_t request)
{
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(dt_wait(&request) != DT_ERR_STATE ||
              dt_checkpoint_isave(3, &request) != DT_ERR_STATE || dt_finalize() != DT_ERR_STATE);
    NEED(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}

static int uses_threads(int rank, void *arg)
{
    dt_request_t request;
    pthread_t waiter, saver;
    void *waited, *saved;

    (void)rank;
    (void)arg;
    NEED(start() == 0);
    gate = SHUT;
    NEED(dt_checkpoint_isave(1, &request) == DT_OK);
    NEED(fork_meanwhile(request) == 0);
    NEED(pthread_create(&waiter, NULL, wait_for_request, &request) == 0);
    NEED(pthread_create(&saver, NULL, save_2, NULL) == 0);
    while (!dt_slot_is_held(DT_WORLD))
        usleep(500);
    gate = OPEN;
    NEED(pthread_join(waiter, &waited) == 0 && waited == NULL);
    NEED(pthread_join(saver, &saved) == 0 && saved == NULL);
    NEED(has_step(1) && has_step(2));
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void other_threads_wait_and_save_and_children_do_not(void **state)
{
    (void)state;
    assert_int_equal(in_all_placements(uses_threads), 0);
}

/* ---- failures ---- */

struct expected_error {
    dt_result_t code;
    int rank;
    const char *host;
    int error;
};

static int check_error(const struct expected_error *want)
{
    dt_error_info_t info = { .size = sizeof info };

    NEED(dt_last_error_info(&info) == DT_OK);
    NEED(info.code == want->code && strcmp(info.operation, "dt_checkpoint_isave") == 0);
    NEED(info.rank == want->rank && strcmp(info.host, want->host) == 0);
    NEED(info.error == want->error && strcmp(info.comm, "world") == 0);
    NEED(info.call > 0 && info.seconds > 0 && info.seconds < 1000);
    NEED(strcmp(info.message, dt_last_error()) == 0);
    return 0;
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

/* Rank 1 cannot write its shard. */
static int fails_once(int rank, void *arg)
{
    static const struct expected_error expected = { DT_ERR_IO, 1, "host1", EFBIG };
    dt_request_t request;
    int64_t step;

    (void)arg;
    NEED(start() == 0);
    fill(1);
    NEED(dt_checkpoint_isave(1, &request) == DT_OK && dt_wait(&request) == DT_OK);
    NEED(rank != 1 || limit_files(sizeof kept / 2) == 0);
    fill(2);
    NEED(dt_checkpoint_isave(2, &request) == DT_OK);
    NEED(make_calls() == 0);
    NEED(dt_wait(&request) == DT_ERR_IO && check_error(&expected) == 0);
    NEED(rank != 1 || limit_files(RLIM_INFINITY) == 0);
    NEED(dt_checkpoint_restore(&step) == DT_OK && step == 1 && holds(1));
    NEED(dt_checkpoint_isave(3, &request) == DT_OK && dt_wait(&request) == DT_OK);
    NEED(has_step(1) && !has_step(2) && has_step(3));
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_save_that_fails_is_reported_by_its_request(void **state)
{
    (void)state;
    testjob_must_pass("1 1", fails_once, NULL);
}

static int gives_wrong_arguments(int rank, void *arg)
{
    static const struct expected_error negative = { DT_ERR_ARG, 2, "host1", 0 };
    dt_request_t request = { 77 };

    (void)arg;
    NEED(start() == 0);
    NEED(dt_checkpoint_isave(1, NULL) == DT_ERR_ARG);
    NEED(dt_checkpoint_isave(rank == 2 ? -1 : 1, &request) == DT_ERR_ARG && request.id == 0);
    NEED(check_error(&negative) == 0);
    NEED(dt_checkpoint_isave(rank == 2 ? 5 : 1, &request) == DT_OK);
    NEED(dt_wait(&request) == DT_ERR_MISMATCH);
    NEED(strstr(dt_last_error(), "rank 0 saves step 1, rank 2 step 5"));
    NEED(make_calls() == 0);
    NEED(dt_checkpoint_isave(6, &request) == DT_OK && dt_wait(&request) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void wrong_arguments_are_reported_on_all_ranks(void **state)
{
    (void)state;
    testjob_must_pass("2 1", gives_wrong_arguments, NULL);
}

/* No machine has memory for a copy of rank 1's buffer. */
static int lacks_memory(int rank, void *arg)
{
    static const struct expected_error expected = { DT_ERR_NOMEM, 1, "host1", ENOMEM };
    dt_request_t request;

    (void)arg;
    NEED(start() == 0);
    NEED(rank != 1 || dt_checkpoint_register("huge", kept, (size_t)1 << 62) == DT_OK);
    for (int i = 0; i < 2; i++) {
        NEED(dt_checkpoint_isave(1, &request) == DT_ERR_NOMEM && request.id == 0);
        NEED(check_error(&expected) == 0);
    }
    NEED(make_calls() == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void no_rank_saves_if_one_has_no_memory_for_the_copies(void **state)
{
    (void)state;
    testjob_must_pass("1 1", lacks_memory, NULL);
}

static int lacks_a_thread(int rank, void *arg)
{
    static const struct fault fault = { "pthread_create", EAGAIN, false };
    static const struct expected_error expected = { DT_ERR_NOMEM, 1, "host1", EAGAIN };
    dt_request_t request;

    (void)arg;
    NEED(start() == 0);
    if (rank == 1)
        faults_arm(&fault, 1);
    NEED(dt_checkpoint_isave(1, &request) == DT_ERR_NOMEM && request.id == 0);
    NEED(check_error(&expected) == 0);
    NEED(strncmp(dt_last_error(), "rank 1: no thread ", 18) == 0);
    faults_disarm();
    NEED(dt_checkpoint_isave(1, &request) == DT_OK && dt_wait(&request) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void no_rank_saves_if_one_can_start_no_thread(void **state)
{
    (void)state;
    testjob_must_pass("1 1", lacks_a_thread, NULL);
}

/* The k-th call of a function that allocates memory fails on one rank. */
struct shortage {
    int victim;
    struct fault fault;
    unsigned k;
    bool *triggered;
};

static int is_clean(void)
{
    char pattern[80];
    glob_t unfinished;

    snprintf(pattern, sizeof pattern, "%s/.[!.]*", base);
    NEED(glob(pattern, 0, NULL, &unfinished) == GLOB_NOMATCH);
    return 0;
}

static int saves_step(int64_t step)
{
    dt_request_t request;

    NEED(dt_checkpoint_isave(step, &request) == DT_OK && dt_wait(&request) == DT_OK);
    NEED(has_step(step));
    return 0;
}

/* Rank 0 removes the files of a failed save. */
static int lacks_an_allocation(int rank, void *arg)
{
    const struct shortage *s = arg;
    dt_request_t request;
    dt_result_t r;

    NEED(start() == 0);
    if (rank == s->victim)
        faults_arm(&s->fault, s->k);
    r = dt_checkpoint_isave(1, &request);
    if (r == DT_OK)
        r = dt_wait(&request);
    if (rank == s->victim) {
        faults_disarm();
        *s->triggered = faults_triggered();
    }
    NEED(r == DT_OK || r == DT_ERR_NOMEM);
    NEED(request.id == 0 && has_step(1) == (r == DT_OK));
    NEED(rank != 0 || is_clean() == 0);
    NEED(make_calls() == 0 && saves_step(2) == 0 && saves_step(3) == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void lack_each_allocation(int victim, const char *call)
{
    struct shortage s = { victim, { call, ENOMEM, false }, 0, testjob_shared(sizeof(bool)) };
    const struct testjob_plan plan = { .hosts = "2", .body = lacks_an_allocation, .arg = &s };

    do {
        s.k++;
        *s.triggered = false;
        if (testjob_pass(&plan) != 0)
            fail_msg("rank %d, %s, call %u", victim, call, s.k);
        assert_int_equal(remove_base(NULL), 0);
        assert_int_equal(make_base(NULL), 0);
    } while (*s.triggered);
    assert_true(s.k > 1);
}

static void a_failed_allocation_fails_one_save_on_all_ranks(void **state)
{
    static const char *const calls[] = { "malloc", "calloc", "realloc", "strdup", "mmap" };

    (void)state;
    for (int victim = SANITIZED; victim < 2; victim++) {
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
            lack_each_allocation(victim, calls[i]);
    }
}

/* The program has made as many communicators as there may be. */
static int lacks_a_communicator(int rank, void *arg)
{
    static const struct expected_error expected = { DT_ERR_NOMEM, 0, "host0", ENOMEM };
    dt_request_t request;
    dt_comm_t *dup, *last = NULL;

    (void)rank;
    (void)arg;
    NEED(start() == 0);
    while (dt_comm_dup(DT_WORLD, &dup) == DT_OK)
        last = dup;
    NEED(dt_checkpoint_isave(1, &request) == DT_ERR_NOMEM && request.id == 0);
    NEED(check_error(&expected) == 0);
    NEED(dt_comm_free(last) == DT_OK);
    NEED(dt_checkpoint_isave(1, &request) == DT_OK && dt_wait(&request) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_save_without_a_communicator_can_be_tried_again(void **state)
{
    (void)state;
    testjob_must_pass("1", lacks_a_communicator, NULL);
}

/* ---- failures of the job ---- */

/* Step 1 is saved, and the save of step 2 is under way when the last rank ends the job. */
static int saves_two(void)
{
    NEED(start() == 0);
    fill(1);
    NEED(dt_checkpoint_save(1) == DT_OK);
    return 0;
}

static int loses_a_rank(int rank, void *arg)
{
    dt_error_info_t info = { .size = sizeof info };
    dt_request_t request;

    (void)arg;
    NEED(saves_two() == 0);
    if (rank == dt_size() - 1)
        gate = DEADLY;
    NEED(dt_checkpoint_isave(2, &request) == DT_OK);
    NEED(dt_wait(&request) == DT_ERR_PEER);
    NEED(dt_last_error_info(&info) == DT_OK && info.rank == dt_size() - 1);
    NEED(info.signal == SIGKILL && strcmp(info.operation, "dt_checkpoint_isave") == 0);
    NEED(strcmp(info.comm, "checkpoints") == 0);
    NEED(dt_barrier(DT_WORLD) == DT_ERR_PEER);
    NEED(has_step(1) && !has_step(2));
    return 0;
}

static void a_lost_rank_fails_the_save_and_is_named(void **state)
{
    (void)state;
    for (const char *const *hosts = placements + 1; *hosts; hosts++) {
        const struct testjob_plan plan = { .hosts = *hosts, .body = loses_a_rank };
        struct testjob_result result;

        assert_int_equal(testjob_run(&plan, &result), 0);
        for (int rank = 0; rank < result.n; rank++)
            assert_int_equal(result.ranks[rank].status, rank == result.n - 1 ? SIGKILL : 0);
        assert_int_equal(remove_base(NULL), 0);
        assert_int_equal(make_base(NULL), 0);
    }
}

static int aborts(int rank, void *arg)
{
    dt_request_t request;

    NEED(saves_two() == 0);
    gate = SHUT;
    NEED(dt_checkpoint_isave(2, &request) == DT_OK);
    testjob_meet(arg, dt_size());
    if (rank == 0)
        NEED(dt_comm_abort(DT_WORLD) == DT_OK);
    NEED(dt_barrier(DT_WORLD) == DT_ERR_ABORTED);
    gate = OPEN;
    NEED(dt_wait(&request) == DT_ERR_ABORTED);
    NEED(has_step(1) && !has_step(2));
    return 0;
}

static void an_abort_ends_the_save(void **state)
{
    (void)state;
    assert_int_equal(in_all_placements(aborts), 0);
}

static void stop_checkpoints(struct dt_comm *c, void *arg)
{
    (void)arg;
    if (c->id != 0)
        dt_comm_stop(c, DT_ERR_TIMEOUT, 1, "rank 1 was too slow");
}

static int exceeds_its_limit(int rank, void *arg)
{
    dt_error_info_t info = { .size = sizeof info };
    dt_request_t request;

    NEED(saves_two() == 0);
    gate = SHUT;
    NEED(dt_checkpoint_isave(2, &request) == DT_OK);
    testjob_meet(arg, dt_size());
    if (rank == 0)
        dt_slots_visit(stop_checkpoints, NULL);
    gate = OPEN;
    NEED(dt_wait(&request) == DT_ERR_TIMEOUT);
    NEED(dt_last_error_info(&info) == DT_OK && strcmp(info.comm, "checkpoints") == 0);
    NEED(dt_barrier(DT_WORLD) == DT_ERR_TIMEOUT && strstr(dt_last_error(), "too slow"));
    NEED(dt_checkpoint_isave(3, &request) == DT_ERR_TIMEOUT && request.id == 0);
    NEED(has_step(1) && !has_step(2));
    return 0;
}

static void a_save_that_exceeds_its_limit_ends_the_job(void **state)
{
    static const char *const few[] = { "2", "1 1", "2 1", NULL };

    (void)state;
    assert_int_equal(pass_all(few, exceeds_its_limit), 0);
}

#define ON_DISK(f) cmocka_unit_test_setup_teardown(f, make_base, remove_base)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_DISK(buffers_may_change_and_calls_go_on_during_a_save),
        ON_DISK(the_next_checkpoint_call_waits_for_the_save),
        ON_DISK(finalize_waits_for_the_save),
        ON_DISK(communicators_can_be_made_during_a_save),
        ON_DISK(many_empty_and_no_buffers_can_be_saved),
        ON_DISK(other_threads_wait_and_save_and_children_do_not),
        ON_DISK(a_save_that_fails_is_reported_by_its_request),
        ON_DISK(wrong_arguments_are_reported_on_all_ranks),
        ON_DISK(no_rank_saves_if_one_has_no_memory_for_the_copies),
        ON_DISK(no_rank_saves_if_one_can_start_no_thread),
        ON_DISK(a_failed_allocation_fails_one_save_on_all_ranks),
        ON_DISK(a_save_without_a_communicator_can_be_tried_again),
        ON_DISK(a_lost_rank_fails_the_save_and_is_named),
        ON_DISK(an_abort_ends_the_save),
        ON_DISK(a_save_that_exceeds_its_limit_ends_the_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
