/* Sends and receives.
 *
 * Rules ("Point-to-point communication"): those of a group proceed side by side, and those between
 * the same two ranks in order. Both block the stream until the data has arrived, so a send that
 * waits for a later call of its own rank never ends (NCCL may buffer a few bytes, on which no
 * program should rely). Both sides name the same type and count. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/standin/nccl/elements.h"
#include "tests/standin/nccl/errors.h"
#include "tests/standin/nccl/kernel.h"

struct header {
    uint64_t bytes;
    uint64_t type;
};

struct transfer {
    const struct standin_operation *operation;
    struct standin_pipe *pipe;
    char *buffer;
    size_t bytes, done;
    bool has_header, ended, unlike;
};

static bool sends(const struct transfer *transfer)
{
    return transfer->operation->function == STANDIN_SEND;
}

static size_t free_bytes(struct standin_pipe *pipe)
{
    return STANDIN_PIPE - (size_t)(atomic_load(&pipe->written) - atomic_load(&pipe->read));
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The bytes of a pipe are a ring. */
static void write_pipe(struct standin_pipe *pipe, const char *from, size_t bytes)
{
    uint64_t written = atomic_load(&pipe->written);
    size_t at = written % STANDIN_PIPE, first = least(bytes, STANDIN_PIPE - at);

    if (!bytes) /* from may be NULL */
        return;
    memcpy(pipe->bytes + at, from, first);
    memcpy(pipe->bytes, from + first, bytes - first);
    atomic_store(&pipe->written, written + bytes);
}

static void read_pipe(struct standin_pipe *pipe, char *to, size_t bytes)
{
    uint64_t read = atomic_load(&pipe->read);
    size_t at = read % STANDIN_PIPE, first = least(bytes, STANDIN_PIPE - at);

    if (!bytes) /* to may be NULL */
        return;
    memcpy(to, pipe->bytes + at, first);
    memcpy(to + first, pipe->bytes, bytes - first);
    atomic_store(&pipe->read, read + bytes);
}

/* send_more and receive_more return whether data has moved. */
static bool send_more(struct transfer *transfer)
{
    struct header header = { transfer->bytes, transfer->operation->type };
    struct standin_pipe *pipe = transfer->pipe;
    size_t bytes;

    if (!transfer->has_header) {
        if (free_bytes(pipe) < sizeof(header))
            return false;
        write_pipe(pipe, (const char *)&header, sizeof(header));
        return transfer->has_header = true;
    }
    bytes = least(free_bytes(pipe), transfer->bytes - transfer->done);
    write_pipe(pipe, transfer->buffer + transfer->done, bytes);
    transfer->done += bytes;
    transfer->ended = transfer->done == transfer->bytes && free_bytes(pipe) == STANDIN_PIPE;
    return bytes || transfer->ended;
}

static void compare(struct transfer *transfer, const struct header *header)
{
    if (header->bytes == transfer->bytes && header->type == transfer->operation->type)
        return;
    transfer->unlike = true;
    standin_report("rank %d sends %llu bytes of type %d, but %llu of type %d are received",
                   transfer->operation->root, (unsigned long long)header->bytes, (int)header->type,
                   (unsigned long long)transfer->bytes, (int)transfer->operation->type);
}

static bool receive_more(struct transfer *transfer)
{
    struct standin_pipe *pipe = transfer->pipe;
    size_t bytes = STANDIN_PIPE - free_bytes(pipe);
    struct header header;

    if (!transfer->has_header) {
        if (bytes < sizeof(header))
            return false;
        read_pipe(pipe, (char *)&header, sizeof(header));
        compare(transfer, &header);
        transfer->has_header = true;
        transfer->ended = !transfer->bytes && !transfer->unlike;
        return true;
    }
    bytes = least(bytes, transfer->bytes - transfer->done);
    read_pipe(pipe, transfer->buffer + transfer->done, bytes);
    transfer->done += bytes;
    transfer->ended = transfer->done == transfer->bytes;
    return bytes;
}

/* Only the oldest unfinished transfer between two ranks in one direction proceeds. */
static bool is_next(const struct transfer *transfers, const struct transfer *transfer)
{
    for (const struct transfer *before = transfers; before < transfer; before++)
        if (!before->ended && before->pipe == transfer->pipe && sends(before) == sends(transfer))
            return false;
    return !transfer->ended && !transfer->unlike;
}

static bool move_all(struct ncclComm *comm, struct transfer *transfers, size_t count)
{
    uint32_t seen = standin_changes(comm->shared);
    bool moved = false, ended = true;

    for (struct transfer *transfer = transfers; transfer < transfers + count; transfer++) {
        if (is_next(transfers, transfer))
            moved |= sends(transfer) ? send_more(transfer) : receive_more(transfer);
        ended &= transfer->ended;
    }
    if (moved)
        standin_tell(comm->shared);
    else if (!ended && standin_pause(comm, seen))
        standin_look_for_lost(comm);
    return ended || standin_is_aborted(comm);
}

static bool begin(struct ncclComm *comm, const struct standin_operation *operation,
                  struct transfer *transfer)
{
    bool sending = operation->function == STANDIN_SEND;

    *transfer = (struct transfer){
        .operation = operation,
        .pipe = standin_pipe(comm->shared, comm->size, sending ? comm->rank : operation->root,
                             sending ? operation->root : comm->rank),
        .bytes = operation->count * standin_element_size(operation->type),
    };
    if (!transfer->bytes)
        return true;
    transfer->buffer =
        standin_touch(comm, sending ? operation->from : operation->to, transfer->bytes);
    return transfer->buffer;
}

bool standin_run_p2p(const struct standin_kernel_plan *plan)
{
    struct transfer *transfers = calloc(plan->count, sizeof(*transfers));
    bool usable = true;
    size_t count = 0;

    for (size_t i = 0; i < plan->count && usable; i++)
        if (!standin_is_collective(&plan->operations[i]))
            usable = begin(plan->comm, &plan->operations[i], &transfers[count++]);
    while (usable && !move_all(plan->comm, transfers, count))
        continue;
    free(transfers);
    return usable && !standin_is_aborted(plan->comm);
}
