#include "tests/standin/nccl/order.h"

#include "tests/standin/nccl/errors.h"

static pthread_mutex_t dti_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ncclComm *dti_comms;

void standin_order_add(struct ncclComm *comm)
{
    pthread_mutex_lock(&dti_mutex);
    comm->next = dti_comms;
    dti_comms = comm;
    pthread_mutex_unlock(&dti_mutex);
}

void standin_order_remove(struct ncclComm *comm)
{
    struct ncclComm **link = &dti_comms;

    pthread_mutex_lock(&dti_mutex);
    while (*link && *link != comm)
        link = &(*link)->next;
    if (*link)
        *link = comm->next;
    pthread_mutex_unlock(&dti_mutex);
}

void standin_order_launch(struct standin_kernel_plan *plan)
{
    bool counts = false;

    for (size_t i = 0; i < plan->count; i++)
        counts |= standin_is_collective(&plan->operations[i]);
    pthread_mutex_lock(&dti_mutex);
    for (struct ncclComm *comm = dti_comms; comm; comm = comm->next)
        if (comm != plan->comm && comm->device == plan->comm->device &&
            plan->before_count < STANDIN_OTHERS)
            plan->before[plan->before_count++] =
                (struct standin_before){ comm->place.id, comm->collectives };
    plan->comm->collectives += counts;
    pthread_mutex_unlock(&dti_mutex);
}

const struct ncclComm *standin_order_busy(CUdevice device)
{
    const struct ncclComm *comm;

    pthread_mutex_lock(&dti_mutex);
    comm = dti_comms;
    while (comm && (comm->device != device || cuEventQuery(comm->launched) != CUDA_ERROR_NOT_READY))
        comm = comm->next;
    pthread_mutex_unlock(&dti_mutex);
    return comm;
}

static const struct standin_before *differs(const struct standin_call *a,
                                            const struct standin_call *b)
{
    for (int i = 0; i < a->before_count; i++)
        for (int j = 0; j < b->before_count; j++)
            if (a->before[i].id == b->before[j].id &&
                a->before[i].launched != b->before[j].launched)
                return &b->before[j];
    return NULL;
}

void standin_order_compare(struct ncclComm *comm)
{
    const struct standin_before *other;

    for (int r = 0; r < comm->size && !comm->reported; r++) {
        other = differs(&comm->own->said.call, &comm->shared->members[r].said.call);
        if (!other)
            continue;
        comm->reported = true;
        standin_report("launch order differs: rank %d and rank %d launch nccl%s of communicator "
                       "%llx after different kernels of communicator %llx",
                       comm->rank, r, standin_function_name(comm->own->said.call.function),
                       comm->place.id, other->id);
    }
}
