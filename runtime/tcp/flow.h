/* Moves data between this rank and others over the connections of a mesh.
 *
 * A flow is a series of frames in one direction between two ranks, in order. A call has at most one
 * flow in each direction between two ranks. If the call uses several streams, frame k uses stream
 * k modulo their number, so a flow of one frame needs only the first. A call without batches uses
 * one stream.
 *
 * The calling thread drives all flows of a call together, without blocking. It first polls the
 * connections, then sleeps until a header or a frame is complete. If the waits of this call have
 * been long, because a link is slow, it sleeps at once. Every frame names its call, and the
 * receiver refuses a frame of another call. Data that have already arrived are used before a stop
 * ends the call, so that a call for which all data have arrived succeeds. */
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
    uint32_t slot; /* for the caller's use */
    bool out;
    const uint64_t *count; /* of elements, the same on both sides; NULL: the call's */
    size_t frames;
    size_t done; /* frames that have moved completely, from the first on */
};

enum dt_flow_work { DT_FLOW_NO_WORK, DT_FLOW_WORKED, DT_FLOW_WORK_WAITS };

struct dt_traffic {
    const struct dt_call *call;
    struct dt_flow *flows;
    size_t n;
    /* How many frames of a flow may be under way at once, up to DT_FLOW_BATCH; 0: one. Each then
     * has memory of its own, and "frame" may be called several times for it. */
    size_t batch;
    bool one_stream; /* there are many peers: one connection with each is enough */
    /* The memory of frame k. */
    struct iovec (*frame)(void *arg, const struct dt_flow *f, size_t k);
    /* How many frames may move so far; NULL: all. The number grows only when other frames move or
     * work is done. */
    size_t (*ready)(void *arg, const struct dt_flow *f);
    /* Called when frame f->done - 1 and all before it have moved. May be NULL. */
    void (*moved)(void *arg, const struct dt_flow *f);
    /* Does a small amount of other work, if it can without waiting. Returns whether it did, and
     * whether the work waits for other ranks of this host instead of for frames. NULL: there is
     * none. */
    enum dt_flow_work (*work)(void *arg);
    void *arg;
};

enum {
    DT_FLOW_SEGMENT = 128 * 1024, /* data bytes of a frame, if a block takes several */
    DT_FLOW_BATCH = 16,
};

/* Frames that a block takes. At least one, so that the peer hears of an empty block. */
static inline size_t dt_flow_segments(size_t bytes)
{
    return bytes ? (bytes + DT_FLOW_SEGMENT - 1) / DT_FLOW_SEGMENT : 1;
}

/* The data of its frame k; nothing past its end. */
static inline struct iovec dt_flow_segment(const void *block, size_t bytes, size_t k)
{
    size_t at = k * DT_FLOW_SEGMENT < bytes ? k * DT_FLOW_SEGMENT : bytes;
    size_t left = bytes - at;

    return (struct iovec){ at ? (uint8_t *)(uintptr_t)block + at : (void *)(uintptr_t)block,
                           left < DT_FLOW_SEGMENT ? left : DT_FLOW_SEGMENT };
}

/* Runs all flows. Connects with the peers first, like dt_mesh_need. */
dt_result_t dt_flow_run(struct dt_mesh *m, const struct dt_traffic *t);

/* Tells all connected peers why nothing more will come, and closes the connections. Bounded in
 * time. */
void dt_flow_fail(struct dt_mesh *m, dt_result_t why);

#endif
