#include "tests/standin/nccl/group.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/standin/nccl/device.h"
#include "tests/standin/nccl/errors.h"
#include "tests/standin/nccl/inject.h"
#include "tests/standin/nccl/launch.h"
#include "tests/standin/nccl/operation.h"

enum { CONNECTS_LATE = 22200 }; /* NCCL's version */

enum mode { EMPTY, BLOCKING, NON_BLOCKING };

struct group {
    int depth;
    ncclResult_t error;
    enum mode mode;
    struct standin_job *jobs;
    struct ncclComm *comms;
    struct caller *caller; /* NULL: the group uses none of its variables */
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

static void log_sends(struct ncclComm *comm)
{
    if (!comm->sends)
        standin_log("sends are connected");
    comm->sends = true;
}

static ncclResult_t connect(struct ncclComm *comm)
{
    int version;

    if (!comm->first)
        return ncclSuccess;
    if (!standin_is_collective(comm->first)) {
        log_sends(comm);
        return ncclSuccess;
    }
    ncclGetVersion(&version);
    if (comm->connected || version < CONNECTS_LATE)
        return ncclSuccess;
    comm->connected = true;
    return standin_meet(comm, STANDIN_CONNECTION);
}

static ncclResult_t run_group(struct group *group)
{
    ncclResult_t result = group->error ? group->error : run_jobs(group);

    for (struct ncclComm *comm = group->comms; comm; comm = comm->next_in_group) {
        standin_inject_launch(comm);
        if (!result)
            result = connect(comm);
        if (result)
            standin_discard(comm);
        else
            result = standin_launch(comm);
    }
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

/* ---- the caller's thread-local variables ---- */

struct caller {
    _Atomic int holders; /* the thread, and its groups */
    _Atomic int groups;
};

static pthread_key_t dti_caller;
static pthread_once_t dti_caller_once = PTHREAD_ONCE_INIT;

static void drop_caller(struct caller *caller)
{
    if (atomic_fetch_sub(&caller->holders, 1) == 1)
        free(caller);
}

static void end_caller(void *data)
{
    struct caller *caller = data;

    if (atomic_load(&caller->groups) > 0) {
        fprintf(stderr, "libnccl stand-in: a thread ends whose thread-local variables NCCL's own "
                        "thread works with\n");
        abort();
    }
    drop_caller(caller);
}

static void make_caller_key(void)
{
    pthread_key_create(&dti_caller, end_caller);
}

static struct caller *enter_caller(void)
{
    struct caller *caller;
    int version;

    ncclGetVersion(&version);
    if (version >= STANDIN_OWNS_ITS_JOBS)
        return NULL;
    pthread_once(&dti_caller_once, make_caller_key);
    caller = pthread_getspecific(dti_caller);
    if (!caller) {
        caller = calloc(1, sizeof(*caller));
        atomic_store(&caller->holders, 1);
        pthread_setspecific(dti_caller, caller);
    }
    atomic_fetch_add(&caller->holders, 1);
    atomic_fetch_add(&caller->groups, 1);
    return caller;
}

static void leave_caller(struct caller *caller)
{
    if (!caller)
        return;
    atomic_fetch_sub(&caller->groups, 1);
    drop_caller(caller);
}

/* ---- groups that do not block ---- */

static void *group_thread(void *data)
{
    struct group *group = data;
    ncclResult_t result = run_group(group);

    for (struct standin_job *job = group->jobs; job; job = job->next)
        finish(job->comm, result);
    for (struct ncclComm *comm = group->comms, *next; comm; comm = next) {
        next = comm->next_in_group;
        comm->next_in_group = NULL;
        comm->in_group = false;
        finish(comm, result);
    }
    free_jobs(group);
    leave_caller(group->caller);
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
    copy->caller = enter_caller();
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
