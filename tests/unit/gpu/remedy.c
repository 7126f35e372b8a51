/* What errors of CUDA and NCCL advise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "runtime/gpu/nvidia/remedy.h"

static void every_fault_of_a_kernel_has_the_same_advice(void **state)
{
    static const CUresult faults[] = {
        CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR,
        CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_INVALID_PC,
        CUDA_ERROR_LAUNCH_FAILED,
    };

    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        assert_non_null(strstr(dt_cuda_remedy("cuEventQuery", faults[i]), "compute-sanitizer"));
}

static void advice_fits_the_function(void **state)
{
    (void)state;
    assert_non_null(
        strstr(dt_cuda_remedy("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY), "the host "));
    assert_non_null(
        strstr(dt_cuda_remedy("cuMemHostRegister", CUDA_ERROR_OUT_OF_MEMORY), "the host "));
    assert_non_null(
        strstr(dt_cuda_remedy("cuMemCreate for 9 bytes", CUDA_ERROR_OUT_OF_MEMORY), "the GPU "));
    assert_string_equal(dt_cuda_remedy("cuEventQuery", CUDA_ERROR_INVALID_VALUE), "");
}

/* The texts are those of NCCL 2.28.9. */
static void nccls_own_text_decides(void **state)
{
    static const struct {
        const char *said, *advice;
    } cases[] = {
        { "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 7000",
          "a GPU of its own" },
        { "Mismatched NCCL version detected : rank 0 version 22809 rank 1 version 21801",
          "DTRUN_NCCL" },
        { "Bootstrap : no socket interface found", "NCCL_SOCKET_IFNAME must name" },
        { "socketPollConnect: connect to 10.0.0.2<41000> returned No route to host, exceeded error "
          "retry count after 35 attempts",
          "firewall" },
        { "Error while creating shared memory segment /dev/shm/nccl-a1B2c3 (size 9637888), error: "
          "No space left on device (28)",
          "/dev/shm" },
        { "Call to ibv_reg_mr failed with error Cannot allocate memory", "ulimit -l" },
        { "Cuda failure 35 'CUDA driver version is insufficient for CUDA runtime version'",
          "update the driver" },
        { "Cuda failure 2 'out of memory'", "the GPU is full" },
        { "Cuda failure 700 'an illegal memory access was encountered'", "compute-sanitizer" },
        { "Cuda failure 719 'unspecified launch failure'", "compute-sanitizer" },
        { "Cuda failure 716 'misaligned address'", "compute-sanitizer" },
        { "", "NCCL_DEBUG=INFO" },
        { "Message truncated : received 8 bytes instead of 4", "NCCL_DEBUG=INFO" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_non_null(strstr(dt_nccl_remedy(cases[i].said), cases[i].advice));
}

static void errors_of_nccl_have_names(void **state)
{
    (void)state;
    assert_string_equal(dt_nccl_error_name(ncclSystemError), "ncclSystemError");
    assert_string_equal(dt_nccl_error_name(ncclInProgress), "ncclInProgress");
    assert_string_equal(dt_nccl_error_name((ncclResult_t)(ncclInProgress + 1)), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_of_a_kernel_has_the_same_advice),
        cmocka_unit_test(advice_fits_the_function),
        cmocka_unit_test(nccls_own_text_decides),
        cmocka_unit_test(errors_of_nccl_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
