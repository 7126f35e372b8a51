/* libdtrun's own kernel in C, for modules that contain it. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/gpu/fold/fold_kernel.h"
#include "tests/standin/driver.h"

static uint64_t view(uint64_t ptr, size_t size)
{
    return (uint64_t)(uintptr_t)standin_view(ptr, size);
}

static size_t size_of(uint32_t dtype)
{
    static const size_t sizes[] = { 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8 };

    return sizes[dtype];
}

/* All threads together fold each element once, so one may fold all of them, in order. */
static void run(void *const *parameters, size_t threads)
{
    struct dt_gpu_fold fold = *(const struct dt_gpu_fold *)parameters[0];
    size_t bytes = fold.count * size_of(fold.dtype);

    (void)threads;
    fold.dst = view(fold.dst, bytes);
    fold.src = view(fold.src, (fold.n - 1) * fold.stride + bytes);
    if (!fold.dst || !fold.src) {
        fprintf(stderr, "stand-in: " DT_GPU_FOLD_NAME " touches memory that is not the device's\n");
        abort();
    }
    dt_gpu_fold_some(&fold, 0, 1);
}

static const size_t sizes[] = { sizeof(struct dt_gpu_fold) };

const struct standin_kernel standin_fold = { 1, sizes, run };
