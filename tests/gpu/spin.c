#include "tests/gpu/spin.h"

#include <time.h>

#include "runtime/base/clock.h"
#include "tests/standin/standin.h"

static const char ptx[] = ".version 6.0\n"
                          ".target sm_50\n"
                          ".address_size 64\n"
                          ".visible .entry spin(.param .u64 word, .param .u64 ns)\n"
                          "{\n"
                          ".reg .pred %p<3>;\n"
                          ".reg .b32 %r<2>;\n"
                          ".reg .b64 %rd<6>;\n"
                          "ld.param.u64 %rd1, [word];\n"
                          "ld.param.u64 %rd2, [ns];\n"
                          "mov.u64 %rd3, %globaltimer;\n"
                          "$again:\n"
                          "ld.volatile.u32 %r1, [%rd1];\n"
                          "setp.ne.u32 %p1, %r1, 0;\n"
                          "@%p1 bra $done;\n"
                          "mov.u64 %rd4, %globaltimer;\n"
                          "sub.u64 %rd5, %rd4, %rd3;\n"
                          "setp.lt.u64 %p2, %rd5, %rd2;\n"
                          "@%p2 bra $again;\n"
                          "$done:\n"
                          "ret;\n"
                          "}\n";

/* The stand-in for the driver runs this instead. */
static void run(void *const *parameters, size_t threads)
{
    static const struct timespec nap = { .tv_nsec = 50 * 1000 };
    const _Atomic uint32_t *word = (const void *)(uintptr_t) * (const uint64_t *)parameters[0];
    uint64_t ns = *(const uint64_t *)parameters[1], start = dt_clock_ns();

    (void)threads;
    while (!*word && dt_clock_ns() - start < ns)
        nanosleep(&nap, NULL);
}

static const size_t sizes[] = { sizeof(uint64_t), sizeof(uint64_t) };

STANDIN_API extern const struct standin_kernel standin_kernel_spin;
const struct standin_kernel standin_kernel_spin = { 2, sizes, run };

void spin(const struct gate *gate, uint64_t ns, CUstream stream)
{
    static CUfunction function;
    uint64_t word = gate->address;
    void *parameters[] = { &word, &ns };
    CUmodule module;

    if (!function) {
        DRIVE(cuModuleLoadData(&module, ptx));
        DRIVE(cuModuleGetFunction(&function, module, "spin"));
    }
    DRIVE(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}
