#include "tests/standin/nccl/comm.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/standin/nccl/errors.h"
#include "tests/standin/nccl/inject.h"
#include "tests/standin/nccl/link.h"

static pthread_mutex_t dti_users = PTHREAD_MUTEX_INITIALIZER;

struct ncclComm *standin_new_comm(void)
{
    static _Atomic int made;
    struct ncclComm *comm = calloc(1, sizeof(*comm));

    comm->references = 1;
    comm->end = &comm->first;
    comm->first_user_op = ncclNumOps + STANDIN_USER_OPS * atomic_fetch_add(&made, 1);
    return comm;
}

void standin_keep(struct ncclComm *comm)
{
    atomic_fetch_add(&comm->references, 1);
}

void standin_drop(struct ncclComm *comm)
{
    if (atomic_fetch_sub(&comm->references, 1) > 1)
        return;
    if (comm->link)
        standin_link_end(comm->link);
    if (comm->shared)
        standin_part(comm->shared, comm->size);
    free(comm);
}

static _Noreturn void two_threads(const struct ncclComm *comm, const char *call)
{
    fprintf(stderr,
            "libnccl stand-in: rank %d: %s while another thread is in %s with the same "
            "communicator\n",
            comm->rank, call, comm->call);
    abort();
}

void standin_enter(struct ncclComm *comm, const char *call)
{
    pthread_mutex_lock(&dti_users);
    if (comm->depth && !pthread_equal(comm->user, pthread_self()))
        two_threads(comm, call);
    comm->user = pthread_self();
    if (comm->depth++ == 0)
        comm->call = call;
    pthread_mutex_unlock(&dti_users);
}

void standin_leave(struct ncclComm *comm)
{
    pthread_mutex_lock(&dti_users);
    comm->depth--;
    pthread_mutex_unlock(&dti_users);
}

void standin_check_unused(struct ncclComm *comm, const char *call)
{
    pthread_mutex_lock(&dti_users);
    if (comm->depth && !comm->in_group)
        two_threads(comm, call);
    pthread_mutex_unlock(&dti_users);
}

ncclResult_t standin_usable(struct ncclComm *comm, const char *call)
{
    if (!comm)
        return standin_warn(ncclInvalidArgument, "%s : comm argument is NULL", call);
    if (standin_is_aborted(comm))
        return ncclSuccess;
    if (atomic_load(&comm->in_progress))
        return standin_warn(ncclInvalidArgument, "Attempt to use communicator before the previous "
                                                 "operation returned ncclSuccess");
    standin_inject_async(comm);
    return (ncclResult_t)atomic_load(&comm->async);
}

bool standin_is_aborted(const struct ncclComm *comm)
{
    return atomic_load(&comm->aborted) || (comm->parent && atomic_load(&comm->parent->aborted));
}

void standin_set_async(struct ncclComm *comm, ncclResult_t error)
{
    int none = ncclSuccess;

    atomic_compare_exchange_strong(&comm->async, &none, error);
}

bool standin_pause(struct ncclComm *comm, uint32_t seen)
{
    if (!standin_is_aborted(comm))
        standin_sleep(comm->shared, seen);
    return !standin_is_aborted(comm);
}

void standin_hang(struct ncclComm *comm)
{
    while (!standin_is_aborted(comm))
        usleep(1000);
}

static bool is_lost(const struct standin_member *member)
{
    if (atomic_load(&member->stage) == STANDIN_ABSENT)
        return atomic_load(&member->lost) && atomic_load(&member->stage) == STANDIN_ABSENT;
    return standin_has_died(member);
}

/* NCCL does not learn of the end of a process on its own host. */
void standin_look_for_lost(struct ncclComm *comm)
{
    for (int r = 0; r < comm->size; r++)
        if (comm->shared->members[r].said.host != comm->own->said.host &&
            is_lost(&comm->shared->members[r]))
            standin_set_async(comm, standin_warn(ncclRemoteError, "rank %d was lost", r));
}

static bool has_come(const struct ncclComm *comm, int rank, enum standin_reason reason)
{
    return atomic_load(&comm->shared->members[rank].met[reason]) >= comm->met[reason];
}

/* A member may come and then fail, so has_come is asked again once the failure is seen. */
static ncclResult_t await_member(struct ncclComm *comm, int rank, enum standin_reason reason)
{
    struct standin_member *member = &comm->shared->members[rank];
    uint32_t seen = standin_changes(comm->shared);
    bool failed;

    while (!has_come(comm, rank, reason)) {
        failed = atomic_load(&member->stage) >= STANDIN_FAILED || is_lost(member);
        if (failed && reason == STANDIN_MANAGEMENT && !has_come(comm, rank, reason))
            return standin_warn(ncclRemoteError,
                                "Connection closed by remote peer: rank %d has failed", rank);
        if (reason != STANDIN_MANAGEMENT)
            standin_look_for_lost(comm);
        if (!standin_pause(comm, seen))
            return ncclInternalError;
        seen = standin_changes(comm->shared);
    }
    return ncclSuccess;
}

ncclResult_t standin_meet(struct ncclComm *comm, enum standin_reason reason)
{
    ncclResult_t result = ncclSuccess;

    atomic_store(&comm->own->met[reason], ++comm->met[reason]);
    standin_tell(comm->shared);
    for (int r = 0; r < comm->size && !result; r++)
        result = await_member(comm, r, reason);
    return result;
}

/* Whether it joins the thread that launched the latest call. NCCL does so without a lock. */
static bool joins_when_asked(const struct ncclComm *comm)
{
    int version;

    ncclGetVersion(&version);
    return !comm->blocking && version >= STANDIN_OWNS_ITS_JOBS;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    bool joins;

    if (!comm || !error)
        return standin_warn(ncclInvalidArgument, "ncclGetAsyncError : comm argument is NULL");
    joins = joins_when_asked(comm);
    if (joins)
        standin_enter(comm, "ncclCommGetAsyncError");
    standin_inject_async(comm);
    *error =
        atomic_load(&comm->in_progress) ? ncclInProgress : (ncclResult_t)atomic_load(&comm->async);
    if (joins)
        standin_leave(comm);
    return ncclSuccess;
}

static ncclResult_t tell(struct ncclComm *comm, const char *call, const int *what, int *value)
{
    ncclResult_t result;

    if (!value)
        return standin_warn(ncclInvalidArgument, "%s : value argument is NULL", call);
    result = standin_usable(comm, call);
    if (!result)
        *value = *what;
    return result;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int *count)
{
    return tell(comm, "CommCount", comm ? &comm->size : NULL, count);
}

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *device)
{
    return tell(comm, "CommCuDevice", comm ? &comm->device : NULL, device);
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank)
{
    return tell(comm, "CommUserRank", comm ? &comm->rank : NULL, rank);
}
