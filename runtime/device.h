/* Collectives on device memory.
 *
 * libdtrun knows no CUDA. When the program has loaded the CUDA driver library, that library is
 * asked whose memory a pointer names; at the first collective on device memory libdtrun-nccl.so.0
 * is loaded and does it. A program without device pointers never loads either. */
#ifndef DT_RUNTIME_DEVICE_H
#define DT_RUNTIME_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/dtrun.h"

#define DT_DEVICE_ABI        1
#define DT_DEVICE_PLUGIN     "libdtrun-nccl.so.0"
#define DT_DEVICE_PLUGIN_ENV "DTRUN_NCCL_PLUGIN"
#define DT_DEVICE_ENTRY      "dti_device_plugin"

/* What the backend needs of the communicator that it serves; outlives the backend. */
struct dt_device_host {
    int rank, size;
    void *ctx;
    /* Over host memory, collective; on failure they have called fail. */
    dt_result_t (*broadcast)(void *ctx, void *buf, size_t bytes, int root);
    dt_result_t (*min)(void *ctx, int32_t *value);
    /* True once this generation is over; *culprit is the rank that was lost, or -1. */
    bool (*aborted)(void *ctx, int *culprit);
    /* Makes text what dt_last_error returns (and notes a lost peer); returns result. */
    dt_result_t (*fail)(void *ctx, dt_result_t result, const char *text);
};

/* A backend. Its functions block until the device has done the work, wait for what was queued on
 * the device's default stream before, and return at once when the host says aborted. Every failure
 * goes through host->fail. Only a closed backend may be left alone: after a failure call close all
 * the same. */
struct dt_device_ops {
    uint32_t abi; /* DT_DEVICE_ABI */
    /* Local: is there a device, and which one holds ptr? */
    dt_result_t (*probe)(const struct dt_device_host *host, const void *ptr, int *device);
    /* Collective: connects all ranks. */
    dt_result_t (*open)(const struct dt_device_host *host, int device, void **state);
    dt_result_t (*all_reduce)(void *state, const void *in, void *out, size_t count,
                              dt_dtype_t dtype, dt_op_t op);
    dt_result_t (*broadcast)(void *state, void *buf, size_t count, dt_dtype_t dtype, int root);
    dt_result_t (*barrier)(void *state);
    void (*close)(void *state); /* accepts NULL */
};

typedef const struct dt_device_ops *(*dt_device_entry)(void);

/* One per communicator, zeroed at first. */
struct dt_device {
    const struct dt_device_ops *ops;
    void *state; /* not NULL: open, on every rank */
};

enum dt_memory { DT_MEMORY_HOST, DT_MEMORY_DEVICE, DT_MEMORY_MIXED };

/* Where two buffers, or one given twice, lie. Managed memory counts as host memory: both sides can
 * touch it, and where it lies now differs between ranks, which must all choose the same way. */
enum dt_memory dt_device_memory(const void *a, const void *b);

/* The buffers of the last look, when there was no CUDA. */
extern struct dt_device_hosts {
    _Atomic(const void *) a;
    _Atomic(const void *) b;
} dti_device_hosts __attribute__((visibility("hidden")));

/* The same for calls of so few bytes that to look would cost a good part of them. Buffers that were
 * in host memory at the last look are taken to be there still: before one of CUDA's could stand in
 * their place, the program would have to give the pages under a small buffer back to the kernel,
 * load CUDA, and be given this very address, all without a call on other buffers in between. */
static inline enum dt_memory dt_device_memory_of_few(const void *a, const void *b)
{
    if (atomic_load_explicit(&dti_device_hosts.a, memory_order_relaxed) == a &&
        atomic_load_explicit(&dti_device_hosts.b, memory_order_relaxed) == b)
        return DT_MEMORY_HOST;
    return dt_device_memory(a, b);
}

/* in is out when the operation is in place. The first call on any of these connects all ranks. */
dt_result_t dt_device_all_reduce(struct dt_device *d, const struct dt_device_host *host,
                                 const void *in, void *out, size_t count, dt_dtype_t dtype,
                                 dt_op_t op);
dt_result_t dt_device_broadcast(struct dt_device *d, const struct dt_device_host *host, void *buf,
                                size_t count, dt_dtype_t dtype, int root);
/* Only when d->state is set; otherwise the host's barrier says the same. */
dt_result_t dt_device_barrier(struct dt_device *d);
void dt_device_close(struct dt_device *d);

#endif
