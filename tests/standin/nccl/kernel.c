#include "tests/standin/nccl/kernel.h"

#include "tests/standin/nccl/inject.h"

/* Memory of another device or context counts as out of reach, since nothing has called
 * cuCtxEnablePeerAccess. */
static bool is_elsewhere(const struct ncclComm *comm, CUdeviceptr ptr)
{
    CUpointer_attribute kinds[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                    CU_POINTER_ATTRIBUTE_CONTEXT };
    unsigned type = 0, managed = 0;
    CUcontext context = NULL;
    int ordinal = 0;
    void *values[] = { &type, &managed, &ordinal, &context };

    cuPointerGetAttributes(4, kinds, values, ptr);
    if (type != CU_MEMORYTYPE_DEVICE || managed)
        return false;
    return ordinal != comm->device || (context && context != comm->context);
}

char *standin_touch(struct ncclComm *comm, CUdeviceptr ptr, size_t size)
{
    char *view = standin_view(ptr, size);

    if (view && !is_elsewhere(comm, ptr))
        return view;
    standin_fault(comm->context);
    return NULL;
}

static bool has_p2p(const struct standin_kernel_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        if (!standin_is_collective(&plan->operations[i]))
            return true;
    return false;
}

void standin_run_kernel(const struct standin_kernel_plan *plan)
{
    if (standin_faulted(plan->comm->context) || standin_is_aborted(plan->comm) ||
        !standin_inject_kernel(plan->comm))
        return;
    for (size_t i = 0; i < plan->count; i++)
        if (standin_is_collective(&plan->operations[i]) &&
            !standin_run_collective(plan, &plan->operations[i]))
            return;
    if (has_p2p(plan))
        standin_run_p2p(plan);
}
