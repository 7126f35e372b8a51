/* A communicator: the ranks of one generation of a job and the ways between them. The public calls
 * are thin covers over these; the runtime's own parts (checkpoints, device backends) use them
 * directly.
 *
 * Every rank makes the same calls in the same order, one at a time. After a failure other than
 * DT_ERR_ARG, DT_ERR_UNSUPPORTED and DT_ERR_VERSION a communicator stays failed: every later call
 * returns the same code. All functions that return dt_result_t have set dt_last_error when they
 * fail. */
#ifndef DT_RUNTIME_COMM_H
#define DT_RUNTIME_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/agentlink.h"
#include "runtime/device.h"
#include "runtime/dtrun.h"
#include "runtime/error.h"
#include "runtime/host/ring.h"
#include "runtime/host/shm.h"
#include "runtime/host/trouble.h"

struct dt_comm {
    int rank;
    int size;
    int local_rank;
    int local_size;
    uint32_t generation;
    uint32_t node;
    uint32_t nodes;
    uint32_t *node_of;     /* by rank; this and the next two NULL without an agent */
    uint32_t *leaders;     /* by node: its first rank */
    struct dt_u32s locals; /* the ranks of this host, by local rank */
    uint64_t calls;
    dt_result_t failed; /* DT_OK, or what every call returns */
    char why[DT_ERROR_TEXT];
    struct dt_agentlink agent; /* fd -1: started by hand, a job of one rank */
    struct dt_shm shm;         /* map.head NULL: likewise */
    struct dt_ring ring;       /* on leaders of several hosts */
    struct dt_trouble trouble;
    struct dt_device device;
    struct dt_device_host device_host;
};

/* A job of one rank, whatever the environment says. */
void dt_comm_alone(struct dt_comm *c);
/* Joins the job that env names: hello, table, connections, and a first meeting of all ranks. */
dt_result_t dt_comm_join(struct dt_comm *c, const struct dt_agentenv *env);
/* The last meeting of all ranks, unless the communicator has failed; then frees everything. */
dt_result_t dt_comm_leave(struct dt_comm *c);

/* in may be out; otherwise they do not overlap. */
dt_result_t dt_comm_all_reduce(struct dt_comm *c, const void *in, void *out, size_t count,
                               dt_dtype_t dtype, dt_op_t op);
dt_result_t dt_comm_broadcast(struct dt_comm *c, void *buf, size_t count, dt_dtype_t dtype,
                              int root);
dt_result_t dt_comm_barrier(struct dt_comm *c);
/* Waits for every rank to be about to make this call on device memory, whose libraries check
 * nothing. */
dt_result_t dt_comm_match(struct dt_comm *c, enum dt_call_kind kind, size_t count, dt_dtype_t dtype,
                          dt_op_t op, int root);

/* DT_OK, or what has ended this generation; costs a load. */
dt_result_t dt_comm_check(struct dt_comm *c);

/* Notes a failure that was found outside these functions, so that no rank of this host waits on.
 * Takes the text of dt_last_error. Returns result. */
dt_result_t dt_comm_fail(struct dt_comm *c, dt_result_t result);

#endif
