/* To be preloaded: of an all-reduce of f32 rank 1 gets the last element wrong, where there are
 * several; and every rank says in the end how many of these calls it has made. */
#include <dlfcn.h>
#include <stdio.h>

#include "runtime/dtrun.h"

static unsigned long calls;

dt_result_t dt_all_reduce(dt_comm_t *comm, const void *in, void *out, size_t count,
                          dt_dtype_t dtype, dt_op_t op)
{
    dt_result_t (*reduce)(dt_comm_t *, const void *, void *, size_t, dt_dtype_t, dt_op_t) =
        (dt_result_t(*)(dt_comm_t *, const void *, void *, size_t, dt_dtype_t, dt_op_t))dlsym(
            RTLD_NEXT, "dt_all_reduce");
    dt_result_t r = reduce(comm, in, out, count, dtype, op);

    if (dtype != DT_F32)
        return r;
    calls++;
    if (count > 1 && dt_rank() == 1)
        ((float *)out)[count - 1] += 1;
    return r;
}

__attribute__((destructor)) static void tell(void)
{
    fprintf(stderr, "%lu all-reduces of f32\n", calls);
}
