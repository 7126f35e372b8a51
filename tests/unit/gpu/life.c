/* The lives of a context, with a driver of which two threads pin memory at the same time, with one
 * that does not number allocations, and after a fault of the GPU. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/gpu/device/life.h"

static pthread_barrier_t pinning;
static _Atomic size_t pinned;
static char memory[3];

static CUresult pin(void **ptr, size_t size, unsigned flags)
{
    (void)size;
    (void)flags;
    pthread_barrier_wait(&pinning);
    *ptr = &memory[pinned++];
    return CUDA_SUCCESS;
}

static bool numbers = true;
static CUresult answers, enters; /* errors of the driver */

static CUresult tell_allocation(void *id, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    (void)attribute;
    if (!numbers)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (answers)
        return answers;
    *(unsigned long long *)id = ptr;
    return CUDA_SUCCESS;
}

const struct dt_cuda *dt_cuda(void)
{
    static const struct dt_cuda driver = { .cuMemHostAlloc = pin,
                                           .cuPointerGetAttribute = tell_allocation };

    return &driver;
}

CUresult dt_cuda_enter(struct dt_cuda_scope *scope, CUcontext context)
{
    (void)scope;
    (void)context;
    return enters;
}

void dt_cuda_leave(struct dt_cuda_scope *scope)
{
    (void)scope;
}

void dt_cuda_await_exit(CUresult error)
{
    (void)error;
}

static char places[2];

static CUcontext context(void)
{
    return (CUcontext)(void *)&places[0];
}

static void *find_life(void *life)
{
    *(uint64_t *)life = dt_gpu_life(context());
    return NULL;
}

static void threads_that_are_first_in_a_context_find_one_life(void **state)
{
    uint64_t lives[2];
    pthread_t threads[2];
    struct dt_cuda_scope scope;

    (void)state;
    assert_int_equal(pthread_barrier_init(&pinning, NULL, 2), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, find_life, &lives[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(pinned, 2);
    assert_int_not_equal(lives[0], 0);
    assert_int_equal(lives[0], lives[1]);
    assert_true(dt_gpu_enter_life(&scope, context(), lives[0]));
    dt_cuda_leave(&scope);
    pthread_barrier_destroy(&pinning);
}

static void a_fault_of_the_gpu_does_not_end_a_life(void **state)
{
    struct dt_cuda_scope scope;
    uint64_t life = dt_gpu_life(context());

    (void)state;
    assert_int_not_equal(life, 0);
    answers = CUDA_ERROR_LAUNCH_FAILED;
    assert_true(dt_gpu_enter_life(&scope, context(), life));
    dt_cuda_leave(&scope);
    enters = CUDA_ERROR_LAUNCH_FAILED;
    assert_false(dt_gpu_enter_life(&scope, context(), life));
    assert_int_equal(dt_gpu_enter_made(&scope, context(), life, NULL), CUDA_ERROR_LAUNCH_FAILED);
    answers = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(dt_gpu_enter_made(&scope, context(), life, NULL),
                     CUDA_ERROR_CONTEXT_IS_DESTROYED);
    answers = enters = CUDA_SUCCESS;
}

/* Pinning memory costs milliseconds, and nothing frees it before the context ends. */
static void memory_is_pinned_once_if_the_driver_numbers_no_allocations(void **state)
{
    CUcontext other = (CUcontext)(void *)&places[1];
    struct dt_cuda_scope scope;
    size_t before = pinned;
    uint64_t life;

    (void)state;
    numbers = false;
    assert_int_equal(pthread_barrier_init(&pinning, NULL, 1), 0);
    life = dt_gpu_life(other);
    assert_int_not_equal(life, 0); /* known */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dt_gpu_life(other), life);
        assert_true(dt_gpu_enter_life(&scope, other, life));
        dt_cuda_leave(&scope);
    }
    assert_int_equal(pinned, before + 1);
    pthread_barrier_destroy(&pinning);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_are_first_in_a_context_find_one_life),
        cmocka_unit_test(a_fault_of_the_gpu_does_not_end_a_life),
        cmocka_unit_test(memory_is_pinned_once_if_the_driver_numbers_no_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
