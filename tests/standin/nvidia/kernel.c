#include "tests/standin/nvidia/kernel.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/standin/nccl/faults.h"
#include "tests/standin/nvidia/p2p.h"
#include "tests/standin/nvidia/ring.h"

struct channel {
    const struct nccl_arguments *arguments;
    struct standin_block block;
    int first_batch;
    pthread_t thread;
};

static size_t work_size(enum nccl_work_type type)
{
    return type == NCCL_P2P          ? sizeof(struct nccl_p2p)
           : type == NCCL_COLLECTIVE ? sizeof(struct nccl_collective)
                                     : NCCL_REGISTERED_BYTES;
}

static const void *work_at(const struct nccl_arguments *arguments, uint32_t offset, size_t size)
{
    if (arguments->storage == NCCL_IN_ARGUMENTS)
        return (const char *)arguments + offset;
    if (arguments->storage == NCCL_IN_FIFO)
        return standin_must_view(arguments->works + (offset & arguments->mask), size);
    return standin_must_view(arguments->works + offset, size);
}

/* The works of a batch and of those that extend it. Returns how many there are. */
static int collect_works(const struct nccl_arguments *arguments, int *batch,
                         const void *works[NCCL_WORKS])
{
    const struct nccl_batch *at = &arguments->batches[*batch];
    int count = 0;

    for (;;) {
        size_t size = work_size(at->type);

        if (count + __builtin_popcountll(at->works) > NCCL_WORKS) {
            fprintf(stderr, "NCCL starts more than %d works in one batch\n", NCCL_WORKS);
            abort();
        }
        for (int bit = 0; bit < 64; bit++)
            if (at->works >> bit & 1)
                works[count++] =
                    work_at(arguments, at->offset + (uint32_t)bit * (uint32_t)size, size);
        if (!at->extends)
            return count;
        *batch += at->jump;
        at = &arguments->batches[*batch];
    }
}

static void *run_channel(void *arg)
{
    struct channel *channel = arg;
    const struct nccl_batch *batch;
    const void *works[NCCL_WORKS];
    int at = channel->first_batch;
    bool goes_on = true;

    do {
        int count = collect_works(channel->arguments, &at, works);

        batch = &channel->arguments->batches[at];
        if (batch->type == NCCL_P2P)
            goes_on = standin_run_p2p(&channel->block, works, count);
        else
            for (int i = 0; i < count && goes_on; i++)
                goes_on =
                    standin_run_ring(&channel->block, standin_function(batch->function), works[i]);
        at += batch->jump;
    } while (goes_on && batch->jump > 0);
    return NULL;
}

static void run_channels(const struct nccl_arguments *arguments, struct nccl_kernel_comm *comm,
                         volatile uint32_t *aborted)
{
    struct channel channels[NCCL_CHANNELS];
    int count = 0;

    for (int i = 0; i < NCCL_CHANNELS; i++) {
        if (!(arguments->channels >> i & 1))
            continue;
        channels[count] = (struct channel){ arguments, { comm, aborted, i }, .first_batch = count };
        count++;
    }
    for (int i = 1; i < count; i++)
        if (pthread_create(&channels[i].thread, NULL, run_channel, &channels[i])) {
            fprintf(stderr, "NCCL's kernel has no thread for channel %d\n",
                    channels[i].block.channel);
            abort();
        }
    if (count > 0)
        run_channel(&channels[0]);
    for (int i = 1; i < count; i++)
        pthread_join(channels[i].thread, NULL);
}

static void run_kernel(void *data)
{
    struct nccl_arguments *arguments = data;
    struct nccl_kernel_comm *comm = standin_must_view(arguments->comm, sizeof(*comm));
    volatile uint32_t *aborted = standin_must_view(comm->abort, sizeof(*comm->abort));
    unsigned naps = 0;

    if (standin_is_asked_for("endless-kernel", comm->rank))
        standin_hang_forever();
    if (standin_is_asked_for("kernel-hang", comm->rank)) {
        standin_tell_of_hang();
        while (!*aborted)
            standin_nap(&naps);
        return;
    }
    run_channels(arguments, comm, aborted);
}

CUresult standin_launch(CUstream stream, const void *arguments, size_t size)
{
    void *copy = aligned_alloc(16, (size + 15) / 16 * 16);

    memcpy(copy, arguments, size);
    return standin_enqueue(stream, run_kernel, copy);
}
