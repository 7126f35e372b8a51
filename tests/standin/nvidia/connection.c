#include "tests/standin/nvidia/connection.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/standin/standin.h"

void *standin_must_view(const volatile void *ptr, size_t size)
{
    void *view = standin_view((CUdeviceptr)(uintptr_t)ptr, size);

    if (view || size == 0)
        return view;
    fprintf(stderr, "NCCL's kernel uses %zu bytes at %p, which are no memory of the device\n", size,
            (void *)(uintptr_t)ptr);
    abort();
}

static struct nccl_peer *peer_of(const struct standin_block *block, int rank)
{
    struct nccl_channel *channel = &block->comm->channels[block->channel];
    struct nccl_peer **peers =
        standin_must_view(channel->peers, (size_t)block->comm->ranks * sizeof(peers[0]));

    return standin_must_view(peers[rank], sizeof(*peers[rank]));
}

static struct standin_connection open_connection(struct nccl_connection *nccl, unsigned steps)
{
    struct standin_connection connection = {
        .nccl = nccl,
        .step = (nccl->step + steps - 1) / steps * steps,
        .head = standin_must_view(nccl->head, sizeof(*nccl->head)),
        .tail = standin_must_view(nccl->tail, sizeof(*nccl->tail)),
        .slots =
            standin_must_view(nccl->buffers[NCCL_SIMPLE], (size_t)nccl->step_size * NCCL_STEPS),
    };

    if (nccl->fifo)
        connection.fifo = standin_must_view(nccl->fifo, sizeof(*nccl->fifo) * NCCL_STEPS);
    return connection;
}

struct standin_connection standin_open_send(const struct standin_block *block, int rank, int index,
                                            unsigned steps)
{
    return open_connection(&peer_of(block, rank)->send[index], steps);
}

struct standin_connection standin_open_receive(const struct standin_block *block, int rank,
                                               int index, unsigned steps)
{
    struct standin_connection connection =
        open_connection(&peer_of(block, rank)->receive[index], steps);

    standin_received(&connection, 0); /* the steps that were skipped */
    return connection;
}

void standin_close(struct standin_connection *connection)
{
    connection->nccl->step = connection->step;
}

bool standin_can_send(const struct standin_connection *connection, unsigned steps)
{
    uint64_t read = __atomic_load_n(connection->head, __ATOMIC_ACQUIRE);

    return read + NCCL_STEPS >= connection->step + steps;
}

bool standin_can_receive(const struct standin_connection *connection, unsigned steps)
{
    return __atomic_load_n(connection->tail, __ATOMIC_ACQUIRE) >= connection->step + steps;
}

static struct nccl_fifo_slot *fifo_slot(const struct standin_connection *connection)
{
    return connection->fifo ? &connection->fifo[connection->step % NCCL_STEPS] : NULL;
}

char *standin_slot(const struct standin_connection *connection)
{
    const struct nccl_fifo_slot *slot = fifo_slot(connection);

    if (slot && slot->mode == NCCL_OFFSET_MODE)
        return connection->slots + slot->offset;
    return connection->slots + connection->step % NCCL_STEPS * (size_t)connection->nccl->step_size;
}

void standin_set_size(struct standin_connection *connection, size_t bytes)
{
    struct nccl_fifo_slot *slot = fifo_slot(connection);

    if (slot)
        slot->size = (ssize_t)bytes;
}

void standin_sent(struct standin_connection *connection, unsigned steps)
{
    connection->step += steps;
    __atomic_store_n(connection->tail, connection->step, __ATOMIC_RELEASE);
}

void standin_received(struct standin_connection *connection, unsigned steps)
{
    connection->step += steps;
    __atomic_store_n(connection->head, connection->step, __ATOMIC_RELEASE);
}

void standin_nap(unsigned *naps)
{
    enum { YIELDS = 50, SHORT = 1000, SHORT_US = 20, LONG_US = 500 };

    if (++*naps < YIELDS)
        sched_yield();
    else
        usleep(*naps < SHORT ? SHORT_US : LONG_US);
}
