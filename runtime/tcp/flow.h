/* Moves data between this rank and others over the connections of a mesh.
 *
 * A flow is a series of frames to or from one peer, in order; at most one flow of a call goes each
 * way between two ranks. Where these have several streams, its frames go along them by turns: frame
 * k along stream k modulo their number, so that what goes in one frame needs only the first. Flows
 * of a call are driven together, by the caller's own thread and without blocking: first looking at
 * the connections again and again, then sleeping until a header or a frame is complete; at once,
 * where the waits of this call have been long, for a link is slow. Every frame names the call that
 * it belongs to, and is refused where that is not the receiver's. What stands in the sockets is
 * used before anything that stops the job ends a call, so that a call ends well on all ranks if it
 * could. */
#ifndef DT_TCP_FLOW_H
#define DT_TCP_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "runtime/tcp/mesh.h"
#include "runtime/wire/dataframe.h"

struct dt_flow {
    uint32_t peer; /* rank of the communicator */
    uint32_t slot; /* for the caller */
    bool out;
    const uint64_t *count; /* of elements that the two move, for both to agree; NULL: the call's */
    size_t frames;
    size_t done; /* frames that have moved wholly, and all before them */
};

enum dt_flow_work { DT_FLOW_NO_WORK, DT_FLOW_WORKED, DT_FLOW_WORK_WAITS };

struct dt_traffic {
    const struct dt_call *call;
    struct dt_flow *flows;
    size_t n;
    /* How many frames of a flow, from the first that is not done on, may be under way at once, up
     * to DT_FLOW_BATCH; 0: one. Each then has a place of its own, of which "frame" may be asked
     * several times. */
    size_t batch;
    bool one_stream; /* peers are many: one connection with each will do */
    /* Where frame k's data are, or are to go. */
    struct iovec (*frame)(void *arg, const struct dt_flow *f, size_t k);
    /* How many frames may move by now; NULL: all. It grows only as other frames move, or by work.
     */
    size_t (*ready)(void *arg, const struct dt_flow *f);
    /* Frame f->done - 1 has moved, as all before it have. May be NULL. */
    void (*moved)(void *arg, const struct dt_flow *f);
    /* Does a little of some other work, as soon as it can without waiting, and says whether it did,
     * or whether work waits for other ranks of this host rather than for frames. NULL: there is
     * none. */
    enum dt_flow_work (*work)(void *arg);
    void *arg;
};

enum {
    DT_FLOW_SEGMENT = 128 * 1024, /* data bytes of a frame, where a block goes in several */
    DT_FLOW_BATCH = 16,
};

/* Frames that a block takes: one at least, so that the other side hears of it. */
static inline size_t dt_flow_segments(size_t bytes)
{
    return bytes ? (bytes + DT_FLOW_SEGMENT - 1) / DT_FLOW_SEGMENT : 1;
}

/* The data of its frame k; past its end: none. */
static inline struct iovec dt_flow_segment(const void *block, size_t bytes, size_t k)
{
    size_t at = k * DT_FLOW_SEGMENT < bytes ? k * DT_FLOW_SEGMENT : bytes;
    size_t left = bytes - at;

    return (struct iovec){ at ? (uint8_t *)(uintptr_t)block + at : (void *)(uintptr_t)block,
                           left < DT_FLOW_SEGMENT ? left : DT_FLOW_SEGMENT };
}

/* Connects with the peers first, as dt_mesh_need does. */
dt_result_t dt_flow_run(struct dt_mesh *m, const struct dt_traffic *t);

/* Tells everybody who is connected why nothing more will come, and closes. Bounded in time. */
void dt_flow_fail(struct dt_mesh *m, dt_result_t why);

#endif
