/* Gates, with a driver that gives pinned memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "runtime/gpu/device/gate.h"
#include "runtime/gpu/nvidia/cuda.h"

enum { PAGES = 2 };

static struct {
    void *at;
    size_t bytes;
} pages[PAGES];
static size_t pinned;
static CUdeviceptr waited_for;
static uint32_t waited_value;

static CUresult pin(void **ptr, size_t size, unsigned flags)
{
    (void)flags;
    if (pinned == PAGES)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ptr = pages[pinned].at = calloc(1, size);
    pages[pinned++].bytes = size;
    return CUDA_SUCCESS;
}

static CUresult tell_device_pointer(CUdeviceptr *device, void *ptr, unsigned flags)
{
    (void)flags;
    *device = (CUdeviceptr)(uintptr_t)ptr;
    return CUDA_SUCCESS;
}

/* Every call of the driver may wait, until a gate is opened, and every opening needs the mutex. */
static CUresult wait_for(CUstream stream, CUdeviceptr word, uint32_t value, unsigned flags)
{
    (void)stream;
    (void)flags;
    assert_false(dt_gpu_gate_another_is_shut(NULL));
    waited_for = word;
    waited_value = value;
    return CUDA_SUCCESS;
}

const struct dt_cuda *__wrap_dt_cuda(void);

/* The linker makes all calls of dt_cuda come here. */
const struct dt_cuda *__wrap_dt_cuda(void)
{
    static const struct dt_cuda driver = { .cuMemHostAlloc = pin,
                                           .cuMemHostGetDevicePointer_v2 = tell_device_pointer,
                                           .cuStreamWaitValue32_v2 = wait_for };

    return &driver;
}

static const char *function; /* the last one that the driver was asked for */

static void no_thread_that_holds_the_mutex_calls_the_driver(void **state)
{
    (void)state;
    alarm(300); /* a watchdog */
    for (int i = 0; i < 2; i++)
        assert_int_equal(dt_gpu_gates_try(NULL, 1, &function), CUDA_SUCCESS);
    assert_int_equal(pinned, 1);
    alarm(0);
}

/* Streams compare words cyclically: to them, a word that has risen this far is below 0. */
static void the_trial_wait_ends_at_once_after_many_turns(void **state)
{
    uint32_t *word = (uint32_t *)(uintptr_t)waited_for;

    (void)state;
    *word = (1u << 31) + 1;
    assert_int_equal(dt_gpu_gates_try(NULL, 1, &function), CUDA_SUCCESS);
    assert_ptr_equal((void *)(uintptr_t)waited_for, word);
    assert_in_range(*word - waited_value, 0, INT32_MAX);
    *word = 0;
}

static void assert_waits_in(size_t page)
{
    CUdeviceptr begin = (uintptr_t)pages[page].at;

    assert_in_range(waited_for, begin, begin + pages[page].bytes - 1);
}

/* The words go with the context in which they were pinned, and other contexts may remain. */
static void each_life_of_a_context_has_its_own_gates(void **state)
{
    (void)state;
    for (uint64_t life = 1; life <= 2; life++)
        assert_int_equal(dt_gpu_gates_try(NULL, life, &function), CUDA_SUCCESS);
    assert_int_equal(pinned, 2);
    assert_waits_in(1);
    assert_int_equal(dt_gpu_gates_try(NULL, 1, &function), CUDA_SUCCESS);
    assert_waits_in(0);
    assert_int_equal(pinned, 2);
}

static void a_gate_for_which_no_memory_can_be_pinned_names_that_function(void **state)
{
    struct dt_gpu_gate *gate;

    (void)state;
    assert_int_equal(dt_gpu_gate_shut(&gate, NULL, 3, NULL, &function), CUDA_ERROR_OUT_OF_MEMORY);
    assert_string_equal(function, "cuMemHostAlloc");
    assert_null(gate);
}

static int free_all(void **state)
{
    (void)state;
    dt_gpu_gates_end();
    for (size_t i = 0; i < PAGES; i++)
        free(pages[i].at);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_thread_that_holds_the_mutex_calls_the_driver),
        cmocka_unit_test(the_trial_wait_ends_at_once_after_many_turns),
        cmocka_unit_test(each_life_of_a_context_has_its_own_gates),
        cmocka_unit_test(a_gate_for_which_no_memory_can_be_pinned_names_that_function),
    };

    return cmocka_run_group_tests(tests, NULL, free_all);
}
