/* The stand-in for libnccl.so.2 reports what programs do wrong with it, and takes communicators
 * down as NCCL does. Tests of libdtrun rely on these reports. */
#include "tests/unit/gpu/standin_nccl.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char log_path[64]; /* the file that STANDIN_LOG names, or that a hang creates */

static int make_log(void **state)
{
    int file;

    (void)state;
    strcpy(log_path, "/tmp/standin_misuse.XXXXXX");
    file = mkstemp(log_path);
    close(file);
    return file < 0;
}

static int remove_log(void **state)
{
    (void)state;
    return unlink(log_path) != 0 && access(log_path, F_OK) == 0;
}

static bool log_says(const char *text)
{
    char line[512];
    FILE *file = fopen(log_path, "r");
    bool says = false;

    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        says = says || strstr(line, text);
    fclose(file);
    return says;
}

static ncclResult_t reduce(struct rank *me, ncclComm_t comm, CUstream stream)
{
    return ncclAllReduce((void *)me->from, (void *)me->to, 1, ncclFloat32, ncclSum, comm, stream);
}

/* ---- misuse ---- */

static void *reduce_in_thread(void *arg)
{
    struct rank *me = arg;

    OK(cuCtxSetCurrent(me->context));
    reduce(me, me->comm, me->stream);
    return NULL;
}

/* One thread waits inside a call until an abort, and another one makes a call. */
static void use_in_two_threads(struct rank *me)
{
    pthread_t thread;

    unlink(log_path);
    setenv("STANDIN_NCCL_HANGS", log_path, 1);
    setenv("STANDIN_NCCL_FAULTS", "submit-hang:0:1", 1);
    start_both(me);
    HOLDS(pthread_create(&thread, NULL, reduce_in_thread, me) == 0);
    while (access(log_path, F_OK) != 0)
        usleep(1000);
    reduce(me, me->comm, me->stream);
}

/* NCCL User Guide, "Thread Safety". */
static void two_threads_in_one_communicator_end_the_process(void **state)
{
    int end;

    (void)state;
    run_ranks(1, use_in_two_threads, &end);
    assert_int_equal(end, SIGABRT);
}

static void scatter_to(struct rank *me, size_t block)
{
    start_both(me);
    OK(ncclReduceScatter((void *)me->from, (float *)me->from + block, 1, ncclFloat32, ncclSum,
                         me->comm, me->stream));
    end_comm(me);
}

static void scatter_to_own_block(struct rank *me)
{
    scatter_to(me, (size_t)me->rank);
}

static void scatter_to_block_of_peer(struct rank *me)
{
    scatter_to(me, (size_t)!me->rank);
}

/* NCCL User Guide, "In-place Operations". */
static void buffers_that_overlap_out_of_place_end_the_process(void **state)
{
    int ends[MAX_RANKS];

    (void)state;
    run_ranks(2, scatter_to_own_block, NULL);
    run_ranks(2, scatter_to_block_of_peer, ends);
    assert_int_equal(ends[0], SIGABRT);
    assert_int_equal(ends[1], SIGABRT);
}

/* Uses two communicators of the same ranks, each on a stream of its own. If reversed, rank 1 uses
 * them in the other order than rank 0. */
static void launch(struct rank *me, bool reversed)
{
    ncclConfig_t blocks = DT_NCCL_CONFIG_INITIALIZER;
    ncclComm_t comms[2];
    CUstream streams[2];

    setenv("STANDIN_LOG", log_path, 1);
    start_both(me);
    comms[0] = me->comm;
    streams[0] = me->stream;
    OK(ncclCommSplit(me->comm, 0, me->rank, &comms[1], &blocks));
    OK(cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 2; i++) /* connects the ranks */
        OK(reduce(me, comms[i], streams[i]));
    for (int i = 0; i < 2; i++) {
        int which = reversed ? i ^ me->rank : i;

        OK(reduce(me, comms[which], streams[which]));
    }
    for (int i = 0; i < 2; i++)
        OK(cuStreamSynchronize(streams[i]));
    OK(ncclCommDestroy(comms[1]));
    end_comm(me);
}

static void launch_alike(struct rank *me)
{
    launch(me, false);
}

static void launch_in_reverse(struct rank *me)
{
    launch(me, true);
}

/* NCCL User Guide, "Using multiple NCCL communicators concurrently". */
static void launch_orders_that_differ_are_reported(void **state)
{
    (void)state;
    run_ranks(2, launch_alike, NULL);
    assert_false(log_says("launch order differs"));
    run_ranks(2, launch_in_reverse, NULL);
    assert_true(log_says("launch order differs"));
}

static void call_differently(struct rank *me)
{
    ncclResult_t result;

    setenv("STANDIN_LOG", log_path, 1);
    start_both(me);
    if (me->rank == 0)
        result = reduce(me, me->comm, me->stream);
    else
        result = ncclBroadcast((void *)me->from, (void *)me->to, 1, ncclFloat32, 0, me->comm,
                               me->stream);
    OK(result);
    while (!log_says("calls do not match"))
        usleep(1000);
    OK(ncclCommAbort(me->comm));
}

/* NCCL User Guide, "Collective Communication Functions". */
static void calls_that_do_not_match_are_reported(void **state)
{
    (void)state;
    run_ranks(2, call_differently, NULL);
    assert_true(log_says("calls do not match"));
}

/* ---- errors ---- */

static void fail_asynchronously(struct rank *me)
{
    setenv("STANDIN_NCCL_FAULTS", "system-error:0:1", 1);
    start_both(me);
    OK(reduce(me, me->comm, me->stream));
    if (me->rank == 0) {
        await_state(me, me->comm, ncclSystemError);
        IS(ncclSystemError, reduce(me, me->comm, me->stream));
    }
    meet(me);
    OK(ncclCommAbort(me->comm));
    OK(cuStreamSynchronize(me->stream));
}

/* NCCL User Guide, "Asynchronous errors and error handling". */
static void an_asynchronous_error_is_the_result_of_later_calls(void **state)
{
    (void)state;
    run_ranks(2, fail_asynchronously, NULL);
}

/* ---- the end ---- */

/* Rank 1 ends its communicator only after rank 0 has begun to. */
static void destroy_rank_1_last(struct rank *me)
{
    start_both(me);
    if (me->rank == 1) {
        while (atomic_load(&me->comm->shared->members[0].stage) != STANDIN_LEFT)
            usleep(1000);
        atomic_store(&me->lab->number, 1);
    }
    OK(ncclCommDestroy(me->comm));
    HOLDS(atomic_load(&me->lab->number) == 1);
}

/* NCCL User Guide, "Destroying a communicator"; proxy.cc. */
static void a_destroy_waits_for_peers_on_its_host(void **state)
{
    (void)state;
    run_ranks(2, destroy_rank_1_last, NULL);
}

static void abort_rank_1_last(struct rank *me)
{
    start_both(me);
    while (me->rank == 1 && atomic_load(&me->lab->number) == 0)
        usleep(1000);
    OK(ncclCommAbort(me->comm));
    atomic_store(&me->lab->number, 1);
}

/* NCCL User Guide, "Fault Tolerance". */
static void an_abort_waits_for_no_peer(void **state)
{
    (void)state;
    run_ranks(2, abort_rank_1_last, NULL);
}

static void abort_a_kernel(struct rank *me)
{
    setenv("STANDIN_NCCL_FAULTS", "kernel-hang:0:1", 1);
    start_both(me);
    OK(reduce(me, me->comm, me->stream));
    meet(me);
    IS(CUDA_ERROR_NOT_READY, cuStreamQuery(me->stream));
    meet(me);
    OK(ncclCommAbort(me->comm));
    OK(cuStreamSynchronize(me->stream));
}

static void an_abort_ends_a_kernel_that_hangs(void **state)
{
    (void)state;
    run_ranks(2, abort_a_kernel, NULL);
}

#define WITH_LOG(f) cmocka_unit_test_setup_teardown(f, make_log, remove_log)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        WITH_LOG(two_threads_in_one_communicator_end_the_process),
        cmocka_unit_test(buffers_that_overlap_out_of_place_end_the_process),
        WITH_LOG(launch_orders_that_differ_are_reported),
        WITH_LOG(calls_that_do_not_match_are_reported),
        cmocka_unit_test(an_asynchronous_error_is_the_result_of_later_calls),
        cmocka_unit_test(a_destroy_waits_for_peers_on_its_host),
        cmocka_unit_test(an_abort_waits_for_no_peer),
        cmocka_unit_test(an_abort_ends_a_kernel_that_hangs),
    };

    setenv("STANDIN_DEVICES", "4", 1);
    alarm(600); /* a watchdog */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
