/* Making communicators.
 *
 * Rules ("Creating a communicator"): all members wait for each other. The process that made the
 * unique id must live until then. Two ranks of a communicator cannot have the same device of one
 * host (NCCL_HOSTID tells hosts apart). All have the same version of NCCL. If one rank fails, the
 * others get ncclRemoteError. A non-blocking communicator exists at once, reports ncclInProgress,
 * and is made in a thread. One that is split off appears when the split is done; until then the
 * parent is in progress. No operation may be outstanding on the parent. Nor may one be on another
 * communicator of the device, because ncclCommSplit makes streams and pins memory: some drivers
 * wait there for all work of the device. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/standin/nccl/config.h"
#include "tests/standin/nccl/device.h"
#include "tests/standin/nccl/errors.h"
#include "tests/standin/nccl/group.h"
#include "tests/standin/nccl/inject.h"
#include "tests/standin/nccl/link.h"
#include "tests/standin/nccl/order.h"

enum { COMM_BYTES = 4096 };

_Static_assert(sizeof(struct standin_place) <= sizeof(ncclUniqueId), "a place fits an id");

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    struct standin_place place;

    if (!id)
        return standin_warn(ncclInvalidArgument, "GetUniqueId : out argument is NULL");
    if (!standin_found(&place))
        return standin_warn(ncclSystemError, "no shared memory");
    memset(id, 0, sizeof(*id));
    memcpy(id, &place, sizeof(place));
    return standin_inject_id();
}

static unsigned long long host_of(void)
{
    const char *name = getenv("NCCL_HOSTID");
    unsigned long long hash = standin_host();

    if (!name)
        return hash;
    for (hash = 0xcbf29ce484222325u; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return hash;
}

static ncclResult_t describe(struct ncclComm *comm)
{
    struct standin_said *own = &comm->own->said;

    own->process = getpid();
    own->machine = standin_host();
    own->size = comm->size;
    own->host = host_of();
    ncclGetVersion(&own->version);
    return standin_cuda(cuDeviceGetPCIBusId(own->bus, sizeof(own->bus), comm->device));
}

static ncclResult_t check_member(const struct ncclComm *comm, int rank)
{
    const struct standin_said *own = &comm->own->said, *other = &comm->shared->members[rank].said;
    unsigned bus = 0;

    if (other->size != own->size)
        return standin_warn(ncclInvalidUsage, "rank %d was told of %d ranks, rank %d of %d",
                            comm->rank, own->size, rank, other->size);
    if (other->version != own->version)
        return standin_warn(ncclInvalidUsage,
                            "Mismatched NCCL version detected : rank %d version %d rank %d "
                            "version %d",
                            rank, other->version, comm->rank, own->version);
    if (rank == comm->rank || other->host != own->host || strcmp(other->bus, own->bus) != 0)
        return ncclSuccess;
    bus = (unsigned)strtoul(strchr(own->bus, ':') + 1, NULL, 16);
    return standin_warn(ncclInvalidUsage,
                        "Duplicate GPU detected : rank %d and rank %d both on CUDA device %x000",
                        comm->rank, rank, bus);
}

static ncclResult_t make_resources(struct ncclComm *comm)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult result = cuCtxGetCurrent(&comm->context);

    comm->life = standin_life(comm->context);
    cuThreadExchangeStreamCaptureMode(&mode);
    if (!result)
        result = cuMemAlloc_v2(&comm->memory, COMM_BYTES);
    if (!result)
        result = cuEventCreate(&comm->launched, CU_EVENT_DISABLE_TIMING);
    cuThreadExchangeStreamCaptureMode(&mode);
    return standin_cuda(result);
}

static ncclResult_t join(struct ncclComm *comm)
{
    comm->shared = standin_join(&comm->place, comm->size);
    if (!comm->shared)
        comm->shared = standin_link(&comm->link, &comm->place, comm->size, comm->rank);
    if (!comm->shared)
        return standin_warn(ncclRemoteError,
                            "rank %d: the process that made the unique id has ended", comm->rank);
    comm->own = &comm->shared->members[comm->rank];
    return describe(comm);
}

static ncclResult_t meet_members(struct ncclComm *comm)
{
    ncclResult_t result;

    atomic_store(&comm->own->stage, STANDIN_PRESENT);
    result = standin_meet(comm, STANDIN_MANAGEMENT);
    for (int r = 0; r < comm->size && !result; r++)
        result = check_member(comm, r);
    if (!result)
        result = make_resources(comm);
    return result ? result : standin_meet(comm, STANDIN_MANAGEMENT);
}

static ncclResult_t make(struct ncclComm *comm)
{
    ncclResult_t result = standin_set_device(comm->device);

    if (!result)
        result = join(comm);
    if (!result)
        result = standin_inject_init(comm);
    if (!result)
        result = meet_members(comm);
    if (!result)
        standin_order_add(comm);
    if (result && comm->own) {
        atomic_store(&comm->own->stage, STANDIN_FAILED);
        standin_tell(comm->shared);
        standin_flush(comm->shared);
    }
    standin_forget_place(&comm->place);
    return result;
}

static ncclResult_t run_init(struct standin_job *job)
{
    return make(job->comm);
}

static ncclResult_t begin_init(struct ncclComm **out, int size, const ncclUniqueId *id, int rank,
                               const ncclConfig_t *config)
{
    struct standin_job *job;
    struct ncclComm *comm;
    CUdevice device;
    bool blocking;
    ncclResult_t result = standin_get_device(&device);

    if (result)
        return result;
    if (size < 1 || rank < 0 || rank >= size)
        return standin_warn(ncclInvalidArgument, "Invalid rank requested : %d/%d", rank, size);
    result = standin_parse_config(config, &blocking);
    if (result)
        return result;
    standin_log("a communicator that %s", blocking ? "blocks" : "does not block");
    comm = standin_new_comm();
    comm->size = size;
    comm->rank = rank;
    comm->device = device;
    comm->blocking = blocking;
    memcpy(&comm->place, id, sizeof(comm->place));
    *out = comm;
    job = calloc(1, sizeof(*job));
    job->comm = comm;
    job->run = run_init;
    return standin_group_add_job(job);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    struct ncclComm *comm = NULL;
    ncclResult_t result, ended;

    if (!out)
        return standin_warn(ncclInvalidArgument, "CommInitRank : newcomm argument is NULL");
    standin_group_start();
    result = standin_group_note(begin_init(&comm, size, &id, rank, config));
    *out = comm;
    if (comm) {
        standin_keep(comm);
        standin_enter(comm, "ncclCommInitRank");
    }
    ended = standin_group_end();
    if (!ended || ended == ncclInProgress)
        ended = result;
    if (comm) {
        if (!ended && !comm->blocking)
            ncclCommGetAsyncError(comm, &ended);
        standin_leave(comm);
        standin_drop(comm);
    }
    return ended;
}

ncclResult_t ncclCommInitRank(ncclComm_t *out, int size, ncclUniqueId id, int rank)
{
    return ncclCommInitRankConfig(out, size, id, rank, NULL);
}

struct split_job {
    struct standin_job job;
    struct ncclComm *child, **out;
    int color, key, number;
};

/* The ranks of the new communicator, ordered by key, then by old rank. */
static int order_members(const struct ncclComm *parent, int color, int *ranks)
{
    const struct standin_member *members = parent->shared->members;
    int count = 0, at;

    for (int r = 0; r < parent->size; r++) {
        if (members[r].said.color != color)
            continue;
        for (at = count; at > 0 && members[ranks[at - 1]].said.key > members[r].said.key; at--)
            ranks[at] = ranks[at - 1];
        ranks[at] = r;
        count++;
    }
    return count;
}

/* The first member of each color founds the communicator of that color. */
static ncclResult_t found_child(struct split_job *split)
{
    struct ncclComm *parent = split->job.comm, *child = split->child;
    int *ranks = calloc((size_t)parent->size, sizeof(*ranks));
    ncclResult_t result = ncclSuccess;

    child->size = order_members(parent, split->color, ranks);
    while (ranks[child->rank] != parent->rank)
        child->rank++;
    if (child->rank == 0 && !standin_found(&parent->own->said.place))
        result = standin_warn(ncclSystemError, "no shared memory");
    if (!result)
        result = standin_meet(parent, STANDIN_MANAGEMENT);
    child->place = parent->shared->members[ranks[0]].said.place;
    free(ranks);
    return result ? result : make(child);
}

static ncclResult_t run_split(struct standin_job *job)
{
    struct split_job *split = (struct split_job *)job;
    struct ncclComm *parent = job->comm;
    ncclResult_t result;

    while (atomic_load(&parent->splits_done) != split->number && !standin_is_aborted(parent))
        usleep(1000);
    parent->own->said.color = split->color;
    parent->own->said.key = split->key;
    result = standin_meet(parent, STANDIN_MANAGEMENT);
    if (!result && split->child)
        result = found_child(split);
    else if (!result)
        result = standin_meet(parent, STANDIN_MANAGEMENT);
    if (split->child)
        split->child->parent = NULL;
    atomic_fetch_add(&parent->splits_done, 1);
    __atomic_store_n(split->out, split->child, __ATOMIC_RELEASE);
    return result;
}

static void check_idle(const struct ncclComm *parent)
{
    const struct ncclComm *busy = standin_order_busy(parent->device);

    if (busy)
        standin_report("rank %d splits a communicator while %s has an outstanding operation",
                       parent->rank, busy == parent ? "it" : "another one");
}

static ncclResult_t begin_split(struct ncclComm *parent, int color, int key, struct ncclComm **out,
                                const ncclConfig_t *config)
{
    struct ncclComm *child = NULL;
    struct split_job *split;
    bool blocking = parent->blocking;
    ncclResult_t result = config ? standin_parse_config(config, &blocking) : ncclSuccess;

    if (result)
        return result;
    standin_log("rank %d splits its communicator", parent->rank);
    check_idle(parent);
    if (color != NCCL_SPLIT_NOCOLOR) {
        child = standin_new_comm();
        child->blocking = blocking;
        child->device = parent->device;
        child->parent = parent;
    }
    split = calloc(1, sizeof(*split));
    *split = (struct split_job){ .child = child, .out = out, .color = color, .key = key };
    split->job.comm = parent;
    split->job.run = run_split;
    split->number = parent->splits++;
    return standin_group_add_job(&split->job);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *split,
                           ncclConfig_t *config)
{
    ncclResult_t result, ended;

    if (!comm || !split)
        return standin_group_note(
            standin_warn(ncclInvalidArgument, "ncclCommSplit : comm argument is NULL"));
    standin_enter(comm, "ncclCommSplit");
    standin_group_start();
    *split = NULL;
    result = standin_usable(comm, "ncclCommSplit");
    if (!result)
        result = begin_split(comm, color, key, split, config);
    standin_group_note(result);
    ended = standin_group_end();
    if (!ended)
        check_idle(comm);
    standin_leave(comm);
    return ended && ended != ncclInProgress ? ended : result;
}

/* Nothing here allocates memory for it to free. */
ncclResult_t ncclMemFree(void *memory)
{
    CUdevice device;
    ncclResult_t result = standin_get_device(&device);

    if (result)
        return result;
    return memory ? standin_warn(ncclInvalidArgument, "ncclMemFree : unknown memory")
                  : standin_set_device(device);
}
