/* System calls fail in ranks that make calls on GPU memory, on the stand-ins for libcuda.so.1 and
 * libnccl.so.2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/wire/env.h"
#include "tests/standin/standin.h"
#include "tests/unit/faults/everycall.h"
#include "tests/unit/faults/failing.h"
#include "tests/unit/faults/trial.h"

enum { COUNT = 3000, RANKS = 2 };

static CUdeviceptr in, out;
static CUstream streams[2];

static int32_t *view_of(CUdeviceptr p)
{
    return standin_view(p, sizeof(int32_t[RANKS * COUNT]));
}

static void *pointer(CUdeviceptr p)
{
    return (void *)(uintptr_t)p;
}

static void give(void)
{
    for (int i = 0; i < RANKS * COUNT; i++) {
        view_of(in)[i] = dt_rank() + i;
        view_of(out)[i] = -1;
    }
}

static dt_result_t check(dt_result_t r, const int32_t *got, int factor, int first)
{
    for (int i = 0; r == DT_OK && i < COUNT; i++) {
        if (got[i] != factor * i + first)
            r = (dt_result_t)EVERYCALL_WRONG;
    }
    return r;
}

bool everycall_prepare(void)
{
    CUcontext context;
    CUdevice device;
    int n = 0;

    if (cuInit(0) || cuDeviceGetCount(&n) || cuDeviceGet(&device, atoi(getenv(DT_ENV_RANK)) % n) ||
        cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
        cuMemAlloc_v2(&in, sizeof(int32_t[RANKS * COUNT])) ||
        cuMemAlloc_v2(&out, sizeof(int32_t[RANKS * COUNT])) ||
        cuStreamCreate(&streams[0], CU_STREAM_NON_BLOCKING) ||
        cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING))
        abort();
    return false; /* NCCL opens some */
}

static dt_result_t all_reduce(void)
{
    give();
    return check(dt_all_reduce(DT_WORLD, pointer(in), pointer(out), COUNT, DT_I32, DT_SUM),
                 view_of(out), 2, 1);
}

static dt_result_t background(void)
{
    dt_request_t request = { 0 };
    dt_result_t r, waited;

    give();
    r = dt_iall_reduce(DT_WORLD, pointer(in), pointer(out), COUNT, DT_I32, DT_SUM, &request);
    waited = dt_wait(&request);
    return check(r == DT_OK ? waited : r, view_of(out), 2, 1);
}

static dt_result_t all_gather(void)
{
    give();
    return check(dt_all_gather(DT_WORLD, pointer(in), pointer(out), COUNT, DT_I32),
                 view_of(out) + COUNT, 1, 1);
}

static dt_result_t all_to_all(void)
{
    dt_result_t r;

    give();
    r = dt_all_to_all(DT_WORLD, pointer(in), pointer(out), COUNT, DT_I32);
    return check(r, view_of(out) + COUNT, 1, 1 + (dt_rank() ? COUNT : 0));
}

static dt_result_t send_and_receive(void)
{
    give();
    if (dt_rank() == 0)
        return dt_send(DT_WORLD, pointer(in), COUNT, DT_I32, 1);
    return check(dt_recv(DT_WORLD, pointer(out), COUNT, DT_I32, 0), view_of(out), 1, 0);
}

static dt_result_t enqueue_all(dt_comm_t *view, dt_comm_t *other)
{
    dt_result_t r = dt_all_reduce(view, pointer(in), pointer(out), COUNT, DT_I32, DT_SUM), waited;

    if (r == DT_OK)
        r = dt_broadcast(view, pointer(out), COUNT, DT_I32, 1);
    if (r == DT_OK && dt_rank() == 0)
        r = dt_send(other, pointer(in), COUNT, DT_I32, 1);
    if (r == DT_OK && dt_rank() == 1)
        r = dt_recv(other, pointer(out + COUNT * 4), COUNT, DT_I32, 0);
    if (r != DT_OK)
        return r;
    waited = dt_stream_wait(view);
    r = r == DT_OK ? waited : r;
    waited = dt_stream_wait(other);
    return r == DT_OK ? waited : r;
}

static dt_result_t on_streams(void)
{
    dt_comm_t *views[2] = { DT_COMM_NULL, DT_COMM_NULL };
    dt_result_t r = dt_comm_on_stream(DT_WORLD, streams[0], &views[0]), freed;

    give();
    if (r == DT_OK)
        r = dt_comm_on_stream(DT_WORLD, streams[1], &views[1]);
    if (r == DT_OK)
        r = check(enqueue_all(views[0], views[1]), view_of(out), 2, 1);
    if (r == DT_OK && dt_rank() == 1)
        r = check(r, view_of(out) + COUNT, 1, 0);
    if (r != DT_OK) /* a call that could not be enqueued leaves the other rank in its own */
        (void)dt_comm_abort(DT_WORLD);
    for (int i = 0; i < 2; i++) {
        if (views[i] == DT_COMM_NULL)
            continue;
        freed = dt_comm_free(views[i]);
        r = r == DT_OK ? freed : r;
    }
    return r;
}

static dt_result_t bucket(void)
{
    dt_bucket_t *b;
    dt_result_t r = dt_bucket_create(DT_WORLD, sizeof(int32_t[RANKS * COUNT]), DT_I32, DT_SUM, &b),
                freed;

    if (r != DT_OK)
        return r;
    give();
    for (int i = 0; i < 3 && r == DT_OK; i++)
        r = dt_bucket_push(b, pointer(in + (unsigned)i * 4000), 1000);
    if (r == DT_OK)
        r = dt_bucket_wait(b);
    freed = dt_bucket_free(b);
    return check(r == DT_OK ? freed : r, view_of(in), 2, 1);
}

static dt_result_t dup(void)
{
    dt_comm_t *comm;
    dt_result_t r = dt_comm_dup(DT_WORLD, &comm), freed;

    if (r != DT_OK)
        return r;
    give();
    r = check(dt_all_reduce(comm, pointer(in), pointer(out), COUNT, DT_I32, DT_SUM), view_of(out),
              2, 1);
    freed = dt_comm_free(comm);
    return r == DT_OK ? freed : r;
}

static dt_result_t checkpoint(void)
{
    int64_t step = -1;
    dt_result_t r = dt_checkpoint_register("in", pointer(in), sizeof(int32_t[COUNT]));

    give();
    if (r == DT_OK)
        r = dt_checkpoint_save(7);
    view_of(in)[0] = -1;
    if (r == DT_OK)
        r = dt_checkpoint_restore(&step);
    return check(r, view_of(in), 1, dt_rank());
}

static const struct call {
    const char *name;
    dt_result_t (*make)(void);
} calls[] = {
    { "init", dt_init },
    { "all-reduce", all_reduce },
    { "all-reduce in the background", background },
    { "all-gather", all_gather },
    { "all-to-all", all_to_all },
    { "send and receive", send_and_receive },
    { "calls on streams", on_streams },
    { "bucket", bucket },
    { "dup", dup },
    { "checkpoint", checkpoint },
    { "finalize", dt_finalize },
};

size_t everycall_n(void)
{
    return sizeof calls / sizeof *calls;
}

const char *everycall_name(size_t call)
{
    return calls[call].name;
}

dt_result_t everycall_make(size_t call)
{
    return calls[call].make();
}

static void try_path(const char *devices, const char *path)
{
    if (!dt_cuda()) {
        print_message("built without shared libraries\n");
        skip();
    }
    setenv("STANDIN_DEVICES", devices, 1);
    setenv(DT_ENV_DEVICE, path, 1);
    failing_try("2", 1, NULL);
}

static void system_calls_may_fail_when_calls_are_staged(void **state)
{
    (void)state;
    try_path("2", "staging");
}

static void system_calls_may_fail_when_nccl_makes_calls(void **state)
{
    (void)state;
    try_path("2", "nccl");
}

static void system_calls_may_fail_when_ranks_share_a_gpu(void **state)
{
    (void)state;
    try_path("1", "shared");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(system_calls_may_fail_when_calls_are_staged),
        cmocka_unit_test(system_calls_may_fail_when_nccl_makes_calls),
        cmocka_unit_test(system_calls_may_fail_when_ranks_share_a_gpu),
    };

    return cmocka_run_group_tests(tests, trial_set_up, trial_tear_down);
}
