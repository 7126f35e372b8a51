/* What failed calls on GPU memory leave behind, in a job of one rank on the stand-ins for
 * libcuda.so.1 and libnccl.so.2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/api/context.h"
#include "runtime/comm/comm.h"
#include "runtime/dtrun.h"
#include "runtime/gpu/device/copies.h"
#include "runtime/gpu/device/pinned.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/nvidia/ncclapi.h"
#include "tests/standin/standin.h"

static void need_driver(void)
{
    CUcontext context;
    const char *why;

    cuInit(0);
    if (!dt_cuda() || !dt_ncclapi(&why)) {
        print_message("built without shared libraries\n");
        skip();
    }
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    assert_int_equal(cuCtxSetCurrent(context), CUDA_SUCCESS);
}

static void copies_that_do_not_end_keep_their_list_entry(void **state)
{
    struct dt_gpu_copies *list = NULL, *copies;
    struct dt_gpu_copying call, again;
    CUcontext context;
    CUdeviceptr device;
    struct dt_gpu_copies left;
    void *word;

    (void)state;
    need_driver();
    assert_int_equal(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    assert_int_equal(cuMemHostAlloc(&word, 4, CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
    assert_int_equal(cuMemHostGetDevicePointer_v2(&device, word, 0), CUDA_SUCCESS);
    *(_Atomic uint32_t *)word = 0;
    copies = dt_gpu_copies_in(&list, context);
    assert_non_null(copies);
    assert_int_equal(dt_pinned_reserve(4096, copies), CUDA_SUCCESS);
    assert_int_equal(dt_gpu_copying_begin(&call, copies, context, 4096), CUDA_SUCCESS);
    assert_ptr_equal(call.copies, copies);
    assert_false(call.waits);
    left = *copies;
    assert_int_equal(cuStreamWaitValue32_v2(left.stream, device, 1, CU_STREAM_WAIT_VALUE_EQ),
                     CUDA_SUCCESS);
    assert_false(dt_gpu_copying_end(&call, true));
    assert_ptr_equal(dt_gpu_copies_in(&list, context), copies); /* the address reserves memory */
    assert_null(list->next);
    assert_int_equal(dt_gpu_copying_begin(&again, copies, context, 4096), CUDA_SUCCESS);
    assert_ptr_not_equal(copies->stream, left.stream);
    assert_ptr_not_equal(again.host, call.host);
    assert_true(dt_gpu_copying_end(&again, false));
    *(_Atomic uint32_t *)word = 1;
    assert_int_equal(cuStreamSynchronize(left.stream), CUDA_SUCCESS);
    dt_gpu_copies_close(&left); /* a program that goes on would leak these */
    dt_gpu_copies_close_all(&list);
}

static void see(struct dt_comm *c, void *out)
{
    *(struct dt_comm **)out = c;
}

/* The thread that watches calls may find a communicator that has just been taken down. It must not
 * end NCCL a second time. */
static void nccl_is_ended_once(void **state)
{
    dt_request_t request;
    CUdeviceptr buf;
    CUstream stream;
    dt_comm_t *view;
    struct dt_comm *c = NULL;

    (void)state;
    need_driver();
    setenv("STANDIN_NCCL_FAULTS", "kernel-hang:0:1", 1);
    assert_int_equal(dt_init(), DT_OK);
    assert_int_equal(dt_context_visit("a test", DT_WORLD, see, &c), DT_OK);
    c->gpu->path = DT_GPU_NCCL; /* on its own a single rank chooses staging */
    assert_int_equal(cuMemAlloc_v2(&buf, 4), CUDA_SUCCESS);
    assert_int_equal(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    assert_int_equal(dt_comm_on_stream(DT_WORLD, stream, &view), DT_OK);
    assert_int_equal(
        dt_iall_reduce(view, DT_IN_PLACE, (void *)(uintptr_t)buf, 1, DT_F32, DT_SUM, &request),
        DT_OK);
    assert_int_equal(dt_comm_abort(DT_WORLD), DT_OK);
    assert_int_equal(dt_wait(&request), DT_ERR_ABORTED);
    assert_null(c->gpu->nccl.comm);
    assert_non_null(c->gpu->directs.watched.stuck);
    c->gpu->directs.watched.stuck(c);
    assert_null(c->gpu->nccl.ending);
    dt_finalize();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_that_do_not_end_keep_their_list_entry),
        cmocka_unit_test(nccl_is_ended_once),
    };

    setenv("STANDIN_DEVICES", "1", 1);
    return cmocka_run_group_tests_name("afterfailure", tests, NULL, NULL);
}
