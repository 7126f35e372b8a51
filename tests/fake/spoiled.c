/* For LD_PRELOAD: in each all-reduce of f32, rank 0 takes $TEST_SLOW_MS milliseconds longer, and
 * rank 1 gets the last of several elements wrong. At the end every rank prints how many of these
 * calls it has made. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/dtrun.h"

static unsigned long calls;

dt_result_t dt_all_reduce(dt_comm_t *comm, const void *in, void *out, size_t count,
                          dt_dtype_t dtype, dt_op_t op)
{
    dt_result_t (*reduce)(dt_comm_t *, const void *, void *, size_t, dt_dtype_t, dt_op_t) =
        (dt_result_t(*)(dt_comm_t *, const void *, void *, size_t, dt_dtype_t, dt_op_t))dlsym(
            RTLD_NEXT, "dt_all_reduce");
    dt_result_t r = reduce(comm, in, out, count, dtype, op);
    const char *slow = getenv("TEST_SLOW_MS");

    if (dtype != DT_F32)
        return r;
    calls++;
    if (count > 1 && dt_rank() == 1)
        ((float *)out)[count - 1] += 1;
    if (slow && dt_rank() == 0)
        usleep((useconds_t)atoi(slow) * 1000);
    return r;
}

__attribute__((destructor)) static void print_calls(void)
{
    fprintf(stderr, "%lu all-reduces of f32\n", calls);
}
