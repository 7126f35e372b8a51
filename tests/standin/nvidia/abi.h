/* What NCCL 2.28 tells its kernels: the structures of its device.h that rings, sends and receives
 * use. */
#ifndef TESTS_STANDIN_NVIDIA_ABI_H
#define TESTS_STANDIN_NVIDIA_ABI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    NCCL_STEPS = 8, /* slots of a connection */
    NCCL_CHANNELS = 64,
    NCCL_PROTOCOLS = 3,
    NCCL_SIMPLE = 2, /* the last protocol */
    NCCL_CONNECTIONS = 2,
    NCCL_OFFSET_MODE = 1,
};

struct nccl_fifo_slot {
    int mode, offset;
    ssize_t size;
    void *ptr;
};

/* One direction of a connection. Pointers are those of the device. */
struct nccl_connection {
    char *buffers[NCCL_PROTOCOLS];
    void *handles[NCCL_PROTOCOLS];
    uint64_t *tail, *head; /* steps that were sent, and received */
    int flags, shared, step_size;
    void **pointers;
    uint64_t *scalars;
    struct nccl_fifo_slot *fifo; /* NULL, or what a proxy is told about each slot */
    uint64_t step, last_cleaning;
    char net_device[32];
};

struct nccl_peer {
    struct nccl_connection send[NCCL_CONNECTIONS], receive[NCCL_CONNECTIONS];
};

struct nccl_ring {
    int previous, next;
    int *ranks; /* in the order of the ring, from this one on */
    int index;
};

struct nccl_channel {
    struct nccl_peer **peers;
    struct nccl_ring ring;
    char others[368 - 8 - sizeof(struct nccl_ring)]; /* trees and the like */
} __attribute__((aligned(16)));

struct nccl_kernel_comm {
    int rank, ranks, node, nodes;
    int buffer_sizes[NCCL_PROTOCOLS];
    int p2p_step_size, all_nvlink;
    int *dense_to_rank;
    volatile uint32_t *abort;
    void *pointers[4];
    struct nccl_channel channels[NCCL_CHANNELS];
} __attribute__((aligned(16)));

enum nccl_work_type { NCCL_P2P, NCCL_COLLECTIVE, NCCL_REGISTERED_COLLECTIVE };

struct nccl_p2p {
    char *send_at, *receive_at;
    size_t send_bytes, receive_bytes;
    int send_to, receive_from;
    uint8_t channels, first_channel, send_channels, receive_channels;
    uint8_t send_chunk, receive_chunk; /* 5 bits of exponent, 3 of mantissa */
    uint8_t send_ll : 1, receive_ll : 1, flags : 6;
} __attribute__((aligned(16)));

struct nccl_collective {
    uint32_t first_channel : 8, last_channel : 8, warps : 8;
    uint32_t scalar_is_pointer : 1, flags : 7;
    int root;
    char *out, *in;
    void *registration[4];
    size_t first_count, middle_count, last_count; /* elements of each channel */
    uint64_t first_grains : 21, middle_grains : 21, last_grains : 21;
    uint64_t scalar;
} __attribute__((aligned(16)));

enum { NCCL_REGISTERED_BYTES = 288 };

enum { NCCL_WORKS = 64 }; /* of a batch and those that extend it; NCCL has fewer */

/* Some works of one channel. */
struct nccl_batch {
    uint32_t jump : 14, extends : 1, type : 2, function : 15;
    uint32_t offset;
    uint64_t works; /* a bit for each, at offset + bit * the size of a work */
};

enum nccl_storage { NCCL_IN_ARGUMENTS, NCCL_IN_FIFO };

struct nccl_arguments {
    struct nccl_kernel_comm *comm;
    uint64_t channels; /* a bit for each that runs */
    uint8_t storage;
    uint32_t mask;
    char *works;
    struct nccl_batch batches[];
} __attribute__((aligned(16)));

static_assert(sizeof(struct nccl_connection) == 152, "differs from NCCL");
static_assert(offsetof(struct nccl_connection, fifo) == 96, "differs from NCCL");
static_assert(sizeof(struct nccl_peer) == 608, "differs from NCCL");
static_assert(sizeof(struct nccl_channel) == 368, "differs from NCCL");
static_assert(offsetof(struct nccl_kernel_comm, abort) == 48, "differs from NCCL");
static_assert(offsetof(struct nccl_kernel_comm, channels) == 96, "differs from NCCL");
static_assert(sizeof(struct nccl_p2p) == 48, "differs from NCCL");
static_assert(sizeof(struct nccl_collective) == 96, "differs from NCCL");
static_assert(offsetof(struct nccl_collective, scalar) == 88, "differs from NCCL");
static_assert(sizeof(struct nccl_batch) == 16, "differs from NCCL");
static_assert(offsetof(struct nccl_arguments, batches) == 32, "differs from NCCL");

#endif
