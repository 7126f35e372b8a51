#include "tests/standin/nccl/group.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "tests/standin/nccl/device.h"
#include "tests/standin/nccl/errors.h"
#include "tests/standin/nccl/inject.h"
#include "tests/standin/nccl/launch.h"

enum mode { EMPTY, BLOCKING, NON_BLOCKING };

struct group {
    int depth;
    ncclResult_t error;
    enum mode mode;
    struct standin_job *jobs;
    struct ncclComm *comms;
};

static _Thread_local struct group dti_group;

void standin_group_start(void)
{
    dti_group.depth++;
}

ncclResult_t standin_group_note(ncclResult_t result)
{
    if (result != ncclInProgress && dti_group.depth && !dti_group.error)
        dti_group.error = result;
    return result;
}

/* Calls that destroy a communicator block even if the communicator is non-blocking. */
static ncclResult_t set_mode(const struct ncclComm *comm)
{
    enum mode mode = comm->blocking || comm->destroying ? BLOCKING : NON_BLOCKING;

    if (dti_group.mode == EMPTY || comm->destroying)
        dti_group.mode = mode;
    if (dti_group.mode != mode)
        return standin_warn(ncclInvalidArgument, "Blocking and nonblocking communicators are not "
                                                 "allowed in the same group.");
    return ncclSuccess;
}

ncclResult_t standin_group_add_job(struct standin_job *job)
{
    struct standin_job **end = &dti_group.jobs;
    ncclResult_t result = set_mode(job->comm);

    if (result) {
        free(job);
        return result;
    }
    job->destroys = job->comm->destroying;
    while (*end)
        end = &(*end)->next;
    *end = job;
    return ncclSuccess;
}

ncclResult_t standin_group_add(struct ncclComm *comm)
{
    struct ncclComm **end = &dti_group.comms;
    ncclResult_t result = comm->in_group ? ncclSuccess : set_mode(comm);

    if (result || comm->in_group)
        return result;
    while (*end)
        end = &(*end)->next_in_group;
    *end = comm;
    comm->in_group = true;
    standin_enter(comm, "ncclGroupStart");
    return ncclSuccess;
}

static void *job_thread(void *data)
{
    struct standin_job *job = data;

    job->result = job->run(job);
    return NULL;
}

/* Once a job has failed, the others would wait for ever. */
static void abort_from(struct standin_job *job)
{
    for (; job; job = job->next)
        if (!job->destroys)
            atomic_store(&job->comm->aborted, true);
}

static ncclResult_t run_jobs(struct group *group)
{
    ncclResult_t result = ncclSuccess;
    struct standin_job *job = group->jobs;

    if (job && !job->next)
        return job->result = job->run(job);
    for (; job; job = job->next)
        if (pthread_create(&job->thread, NULL, job_thread, job) != 0)
            abort();
    for (job = group->jobs; job; job = job->next) {
        pthread_join(job->thread, NULL);
        if (job->result && !result) {
            result = job->result;
            abort_from(job->next);
        }
    }
    return result;
}

static ncclResult_t run_group(struct group *group)
{
    ncclResult_t result = group->error ? group->error : run_jobs(group);

    for (struct ncclComm *comm = group->comms; comm; comm = comm->next_in_group)
        if (result)
            standin_discard(comm);
        else
            result = standin_launch(comm);
    return result;
}

static void free_jobs(struct group *group)
{
    struct standin_job *next;

    for (struct standin_job *job = group->jobs; job; job = next) {
        next = job->next;
        free(job);
    }
}

/* Afterwards other threads can use the communicators. */
static void leave_comms(struct ncclComm *comm)
{
    for (struct ncclComm *next; comm; comm = next) {
        next = comm->next_in_group;
        comm->next_in_group = NULL;
        comm->in_group = false;
        standin_leave(comm);
    }
}

/* Like ncclGroupEnd, leaves the primary context of the thread's device current. */
static ncclResult_t run_here(struct group *group)
{
    CUdevice device;
    ncclResult_t result = standin_get_device(&device);

    if (!group->error)
        group->error = result;
    result = run_group(group);
    leave_comms(group->comms);
    free_jobs(group);
    if (!result)
        result = standin_set_device(device);
    return result;
}

static void finish(struct ncclComm *comm, ncclResult_t result)
{
    if (result)
        standin_set_async(comm, result);
    atomic_store(&comm->in_progress, false);
    standin_drop(comm);
}

static void *group_thread(void *data)
{
    struct group *group = data;
    ncclResult_t result;

    for (struct ncclComm *comm = group->comms; comm; comm = comm->next_in_group)
        standin_inject_launch(comm);
    result = run_group(group);

    for (struct standin_job *job = group->jobs; job; job = job->next)
        finish(job->comm, result);
    for (struct ncclComm *comm = group->comms, *next; comm; comm = next) {
        next = comm->next_in_group;
        comm->next_in_group = NULL;
        comm->in_group = false;
        finish(comm, result);
    }
    free_jobs(group);
    free(group);
    return NULL;
}

static void begin(struct ncclComm *comm)
{
    standin_keep(comm);
    atomic_store(&comm->in_progress, true);
}

static ncclResult_t run_in_thread(const struct group *group)
{
    struct group *copy = malloc(sizeof(*copy));
    pthread_attr_t detached;
    pthread_t thread;

    *copy = *group;
    for (struct standin_job *job = group->jobs; job; job = job->next)
        begin(job->comm);
    for (struct ncclComm *comm = group->comms; comm; comm = comm->next_in_group) {
        begin(comm);
        standin_leave(comm);
    }
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &detached, group_thread, copy) != 0)
        abort();
    pthread_attr_destroy(&detached);
    return ncclInProgress;
}

ncclResult_t standin_group_end(void)
{
    struct group group = dti_group;

    if (!group.depth)
        return standin_warn(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
    if (--dti_group.depth)
        return ncclSuccess;
    dti_group = (struct group){ 0 };
    if (!group.jobs && !group.comms)
        return group.error;
    return group.mode == NON_BLOCKING && !group.error ? run_in_thread(&group) : run_here(&group);
}

ncclResult_t ncclGroupStart(void)
{
    standin_group_start();
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    return standin_group_end();
}
