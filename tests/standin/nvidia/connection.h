/* NCCL's connections as its kernels use them: slots, of which head and tail say how many have been
 * read and filled. */
#ifndef TESTS_STANDIN_NVIDIA_CONNECTION_H
#define TESTS_STANDIN_NVIDIA_CONNECTION_H

#include <stdbool.h>

#include "tests/standin/nvidia/abi.h"

/* One channel of a kernel, which NCCL runs as one thread block. */
struct standin_block {
    struct nccl_kernel_comm *comm;
    volatile uint32_t *abort;
    int channel;
};

struct standin_connection {
    struct nccl_connection *nccl;
    uint64_t step, *head, *tail;
    char *slots;
    struct nccl_fifo_slot *fifo;
};

/* Where the host can touch this device memory. Ends the program if it cannot. */
void *standin_must_view(const volatile void *ptr, size_t size);

/* Opens a connection to a rank. Steps begin at a multiple of `steps`. */
struct standin_connection standin_open_send(const struct standin_block *block, int rank, int index,
                                            unsigned steps);
struct standin_connection standin_open_receive(const struct standin_block *block, int rank,
                                               int index, unsigned steps);
/* The next kernel goes on from here. */
void standin_close(struct standin_connection *connection);

bool standin_can_send(const struct standin_connection *connection, unsigned steps);
bool standin_can_receive(const struct standin_connection *connection, unsigned steps);
/* The memory of the present step. */
char *standin_slot(const struct standin_connection *connection);
/* Tells a proxy, if there is one, how many bytes the present step has. */
void standin_set_size(struct standin_connection *connection, size_t bytes);
void standin_sent(struct standin_connection *connection, unsigned steps);
void standin_received(struct standin_connection *connection, unsigned steps);

/* Waits a moment, a longer one from time to time. */
void standin_nap(unsigned *naps);

#endif
