/* Copies while the driver must not be asked for memory and streams, on the stand-in for
 * libcuda.so.1. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/api/context.h"
#include "runtime/comm/comm.h"
#include "runtime/dtrun.h"
#include "runtime/gpu/device/copies.h"
#include "runtime/gpu/device/provision.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "tests/standin/standin.h"

enum { BYTES = 100000 };

static CUcontext context;
static struct dt_comm *world;
static void *device;

static void see(struct dt_comm *c, void *arg)
{
    (void)arg;
    world = c;
}

static int begin(void **state)
{
    CUdeviceptr memory;

    (void)state;
    assert_int_equal(dt_init(), DT_OK);
    assert_int_equal(dt_context_visit("a test", DT_WORLD, see, NULL), DT_OK);
    cuInit(0);
    if (!dt_cuda())
        return 0;
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    assert_int_equal(cuCtxSetCurrent(context), CUDA_SUCCESS);
    assert_int_equal(cuMemAlloc_v2(&memory, BYTES), CUDA_SUCCESS);
    device = (void *)(uintptr_t)memory;
    return 0;
}

static void need_driver(void)
{
    if (context)
        return;
    print_message("built without shared libraries\n");
    skip();
}

/* Takes some value to the GPU and back. */
static void copy_there_and_back(const struct dt_gpu_copying *g, uint8_t value)
{
    struct dt_gpu_copies *s = g->copies;

    memset(g->host, value, BYTES);
    assert_int_equal(dt_gpu_copies_store(s, 0, device, g->host, BYTES), CUDA_SUCCESS);
    assert_int_equal(cuEventSynchronize(s->copied[0]), CUDA_SUCCESS);
    memset(g->host, 0, BYTES);
    assert_int_equal(dt_gpu_copies_fetch(s, 1, g->host, device, BYTES), CUDA_SUCCESS);
    assert_int_equal(cuEventSynchronize(s->copied[1]), CUDA_SUCCESS);
    for (int i = 0; i < BYTES; i++)
        assert_int_equal(g->host[i], value);
}

static void calls_share_a_stream_until_they_may_have_their_own(void **state)
{
    const char *function;
    struct dt_gpu_copies own = { 0 };
    struct dt_gpu_copying calls[2];
    CUstream shared;

    (void)state;
    need_driver();
    assert_int_equal(dt_gpu_copies_make_shared(context, &function), CUDA_SUCCESS);
    dt_gpu_provision_forbid(world);
    assert_int_equal(dt_gpu_copies_open(&own, context), CUDA_ERROR_NOT_READY);
    assert_int_equal(dt_gpu_copying_begin(&calls[0], &own, context, BYTES), CUDA_SUCCESS);
    assert_int_equal(dt_gpu_copying_begin(&calls[1], NULL, context, BYTES), CUDA_SUCCESS);
    shared = calls[0].copies->stream;
    assert_ptr_equal(calls[1].copies->stream, shared);
    assert_ptr_not_equal(calls[0].host, calls[1].host);
    for (int i = 0; i < 2; i++) {
        assert_true(calls[i].waits);
        copy_there_and_back(&calls[i], (uint8_t)(1 + i));
        assert_true(dt_gpu_copying_end(&calls[i], i == 1));
    }
    assert_null(own.stream);
    dt_gpu_provision_allow();
    assert_int_equal(dt_gpu_copying_begin(&calls[0], &own, context, BYTES), CUDA_SUCCESS);
    assert_ptr_equal(calls[0].copies, &own);
    assert_ptr_not_equal(own.stream, shared);
    assert_false(calls[0].waits);
    copy_there_and_back(&calls[0], 3);
    assert_true(dt_gpu_copying_end(&calls[0], false));
    dt_gpu_copies_close(&own);
}

static void memory_that_could_not_be_reserved_is_reserved_later(void **state)
{
    struct dt_gpu_copies own = { 0 };
    struct dt_gpu_copying call;

    (void)state;
    need_driver();
    assert_int_equal(dt_gpu_copies_open(&own, context), CUDA_SUCCESS);
    dt_gpu_provision_forbid(world);
    dt_gpu_copies_reserve(&own, 8 * BYTES);
    assert_int_equal(own.wanted, 8 * BYTES);
    assert_int_equal(dt_gpu_copying_begin(&call, &own, context, 8 * BYTES), CUDA_SUCCESS);
    assert_ptr_equal(call.copies, &own);
    assert_true(call.waits);
    assert_true(dt_gpu_copying_end(&call, false));
    dt_gpu_provision_allow();
    dt_gpu_copies_reserve(&own, BYTES);
    assert_int_equal(own.wanted, 0);
    dt_gpu_provision_forbid(world);
    assert_int_equal(dt_gpu_copying_begin(&call, &own, context, 8 * BYTES), CUDA_SUCCESS);
    assert_false(call.waits);
    assert_true(dt_gpu_copying_end(&call, false));
    dt_gpu_provision_allow();
    dt_gpu_copies_close(&own);
}

static void memory_that_is_reserved_serves_a_call_on_the_shared_stream(void **state)
{
    struct dt_gpu_copies own = { 0 };
    struct dt_gpu_copying call;

    (void)state;
    need_driver();
    dt_gpu_copies_reserve(&own, 32 * BYTES);
    dt_gpu_provision_forbid(world);
    assert_int_equal(dt_gpu_copying_begin(&call, &own, context, 32 * BYTES), CUDA_SUCCESS);
    assert_ptr_equal(call.copies, &call.sharing);
    assert_false(call.pageable);
    copy_there_and_back(&call, 4);
    assert_true(dt_gpu_copying_end(&call, false));
    dt_gpu_provision_allow();
    dt_gpu_copies_close(&own);
}

static void memory_that_the_driver_lacks_is_not_wanted_for_later_calls(void **state)
{
    struct dt_gpu_copies own = { 0 };
    struct dt_gpu_copying call;

    (void)state;
    need_driver();
    assert_int_equal(dt_gpu_copies_open(&own, context), CUDA_SUCCESS);
    dt_gpu_copies_reserve(&own, (size_t)1 << 60);
    dt_gpu_copies_reserve(&own, 16 * BYTES);
    dt_gpu_provision_forbid(world);
    assert_int_equal(dt_gpu_copying_begin(&call, &own, context, 16 * BYTES), CUDA_SUCCESS);
    assert_false(call.pageable);
    assert_true(dt_gpu_copying_end(&call, false));
    dt_gpu_provision_allow();
    dt_gpu_copies_close(&own);
}

static _Atomic bool ended;

static void *end_soon(void *arg)
{
    sched_yield();
    atomic_store(&ended, true);
    dt_gpu_provision_end();
    return arg;
}

static void work_waits_for_threads_that_ask_the_driver(void **state)
{
    pthread_t thread;

    (void)state;
    assert_true(dt_gpu_provision_begin());
    assert_int_equal(pthread_create(&thread, NULL, end_soon, NULL), 0);
    dt_gpu_provision_forbid(world);
    assert_true(atomic_load(&ended));
    assert_false(dt_gpu_provision_begin());
    dt_gpu_provision_allow();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(dt_gpu_provision_begin());
    dt_gpu_provision_end();
}

static void *abort_world(void *arg)
{
    sched_yield();
    dt_comm_abort(DT_WORLD);
    return arg;
}

/* The driver may keep a thread that asks for as long as the GPU works, which may be for good. */
static void work_waits_for_no_thread_once_its_communicator_has_been_stopped(void **state)
{
    pthread_t thread;

    (void)state;
    assert_true(dt_gpu_provision_begin());
    assert_int_equal(pthread_create(&thread, NULL, abort_world, NULL), 0);
    dt_gpu_provision_forbid(world);
    assert_false(dt_gpu_provision_begin());
    dt_gpu_provision_allow();
    dt_gpu_provision_end();
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_share_a_stream_until_they_may_have_their_own),
        cmocka_unit_test(memory_that_could_not_be_reserved_is_reserved_later),
        cmocka_unit_test(memory_that_is_reserved_serves_a_call_on_the_shared_stream),
        cmocka_unit_test(memory_that_the_driver_lacks_is_not_wanted_for_later_calls),
        cmocka_unit_test(work_waits_for_threads_that_ask_the_driver),
        cmocka_unit_test(work_waits_for_no_thread_once_its_communicator_has_been_stopped),
    };

    setenv("STANDIN_DEVICES", "1", 1);
    return cmocka_run_group_tests_name("provision", tests, begin, NULL);
}
