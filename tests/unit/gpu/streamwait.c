/* What dt_stream_wait returns, in a job of one rank on the stand-in for libcuda.so.1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/comm/async.h"
#include "runtime/dtrun.h"
#include "runtime/gpu/device/gate.h"
#include "runtime/gpu/devicecall.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "tests/standin/standin.h"

void __real_dt_gpu_gate_open(struct dt_gpu_gate *g);
void __wrap_dt_gpu_gate_open(struct dt_gpu_gate *g);

/* Every enqueued call takes long to end after its stream has gone on. */
void __wrap_dt_gpu_gate_open(struct dt_gpu_gate *g)
{
    __real_dt_gpu_gate_open(g);
    usleep(200000);
}

void __real_dt_async_end_soon(void);
void __wrap_dt_async_end_soon(void);

/* After a stop its thread is slow, so that another thread lets its stream go on first. */
void __wrap_dt_async_end_soon(void)
{
    usleep(200000);
    __real_dt_async_end_soon();
}

dt_result_t __real_dt_gpu_await_event(struct dt_comm *c, CUevent event);
dt_result_t __wrap_dt_gpu_await_event(struct dt_comm *c, CUevent event);

static dt_comm_t *aborts = DT_COMM_NULL; /* the wait aborts this */

/* The first look at the event finds that the stream has gone on. */
dt_result_t __wrap_dt_gpu_await_event(struct dt_comm *c, CUevent event)
{
    if (aborts != DT_COMM_NULL)
        assert_int_equal(dt_comm_abort(aborts), DT_OK);
    aborts = DT_COMM_NULL;
    assert_int_equal(cuEventSynchronize(event), CUDA_SUCCESS);
    return __real_dt_gpu_await_event(c, event);
}

static bool joined;

static void need_job(void)
{
    CUcontext context;

    if (joined)
        return;
    if (cuInit(0) || !dt_cuda()) {
        print_message("built without shared libraries\n");
        skip();
    }
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    assert_int_equal(cuCtxSetCurrent(context), CUDA_SUCCESS);
    assert_int_equal(dt_init(), DT_OK);
    joined = true;
}

static dt_comm_t *view_of_new_stream(dt_comm_t *comm)
{
    CUstream stream;
    dt_comm_t *view;

    assert_int_equal(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    assert_int_equal(dt_comm_on_stream(comm, stream, &view), DT_OK);
    return view;
}

/* The stream has gone on without the data. */
static void a_stop_is_returned_before_the_call_knows_it(void **state)
{
    dt_comm_t *comm, *view;
    CUdeviceptr to;

    (void)state;
    need_job();
    assert_int_equal(cuMemAlloc_v2(&to, 8), CUDA_SUCCESS);
    assert_int_equal(dt_comm_dup(DT_WORLD, &comm), DT_OK);
    view = view_of_new_stream(comm);
    assert_int_equal(dt_recv(view, (void *)(uintptr_t)to, 1, DT_F32, 0), DT_OK);
    aborts = comm;
    assert_int_equal(dt_stream_wait(view), DT_ERR_ABORTED);
    assert_int_equal(dt_comm_free(view), DT_ERR_ABORTED);
}

static void a_refusal_names_rank_and_communicator(void **state)
{
    dt_error_info_t info = DT_ERROR_INFO_INIT;
    dt_comm_t *comm, *view;

    (void)state;
    need_job();
    assert_int_equal(dt_comm_dup(DT_WORLD, &comm), DT_OK);
    view = view_of_new_stream(comm);
    setenv("STANDIN_REFUSES", "cuEventCreate:2", 1);
    assert_int_equal(dt_stream_wait(view), DT_ERR_CUDA);
    unsetenv("STANDIN_REFUSES");
    assert_int_equal(dt_last_error_info(&info), DT_OK);
    assert_int_equal(info.rank, 0);
    assert_string_equal(info.operation, "dt_stream_wait");
    assert_string_equal(info.comm, "0.2");
    assert_int_equal(dt_comm_free(view), DT_OK); /* no call of it has failed */
    assert_int_equal(dt_comm_status(comm), DT_ERR_CUDA);
}

static void the_failure_of_the_last_call_is_returned(void **state)
{
    dt_comm_t *sends, *receives;
    CUdeviceptr from, to;

    (void)state;
    need_job();
    assert_int_equal(cuMemAlloc_v2(&from, 8), CUDA_SUCCESS);
    assert_int_equal(cuMemAlloc_v2(&to, 8), CUDA_SUCCESS);
    sends = view_of_new_stream(DT_WORLD);
    receives = view_of_new_stream(DT_WORLD);
    assert_int_equal(dt_send(sends, (void *)(uintptr_t)from, 2, DT_F32, 0), DT_OK);
    assert_int_equal(dt_recv(receives, (void *)(uintptr_t)to, 1, DT_F32, 0), DT_OK);
    assert_int_equal(dt_stream_wait(receives), DT_ERR_MISMATCH);
    dt_finalize();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_is_returned_before_the_call_knows_it),
        cmocka_unit_test(a_refusal_names_rank_and_communicator),
        cmocka_unit_test(the_failure_of_the_last_call_is_returned),
    };

    setenv("STANDIN_DEVICES", "1", 1);
    return cmocka_run_group_tests_name("streamwait", tests, NULL, NULL);
}
