/* Sends data from one rank of a host to another, through their pipes. If both buffers are in
 * segments (segment.h), or the ranks can access each other's memory (cma.h), each side copies half
 * of the data directly.
 *
 * The two ranks first exchange their calls, so both detect a mismatch; then nothing is written to
 * the receiver's buffer. A call returns when the other rank has made its own. The buffer then
 * belongs to the caller again, even if the call has failed. Data that fit into the pipe follow the
 * sender's call at once, so a side that has sent everything need not do anything for the other to
 * finish. */
#ifndef DT_SHM_SENDRECV_H
#define DT_SHM_SENDRECV_H

#include "runtime/shm/segment.h"
#include "runtime/shm/shm.h"

struct dt_sendrecv_opening {
    struct dt_call call;
    struct dt_place place; /* of the buffer */
    /* Of the buffer, for a peer that can access this rank's memory; 0: it cannot. */
    uint64_t address;
    /* Not 0: use the pipe. The sender's data follow, or the receiver expects them there. */
    uint64_t piped;
};

/* One direction: the opening, then the data. */
struct dt_sendrecv_stream {
    struct dt_sendrecv_opening opening;
    void *buf;
    size_t bytes; /* of the data */
    size_t done;  /* bytes of both that have moved */
};

struct dt_sendrecv {
    struct dt_shm *s;
    uint32_t peer;
    bool sending;
    uint8_t *buf;
    size_t bytes;
    struct dt_sendrecv_stream out;
    struct dt_sendrecv_stream in;
};

/* Whether data of this size go through the pipe, and all that this rank has to send fits into it
 * now. */
bool dt_sendrecv_fits_pipe(const struct dt_shm *s, const void *buf, size_t bytes, uint32_t peer,
                           bool sending);
/* peer is a local rank. Both sides pass an equal call. */
void dt_sendrecv_begin(struct dt_sendrecv *h, struct dt_shm *s, const struct dt_call *call,
                       void *buf, size_t bytes, uint32_t peer, bool sending);
/* Moves what can be moved without waiting. */
void dt_sendrecv_step(struct dt_sendrecv *h);
/* After a step: whether the peer needs nothing more from this rank; and whether dt_sendrecv_end
 * will not wait. */
bool dt_sendrecv_has_sent_all(const struct dt_sendrecv *h);
bool dt_sendrecv_is_over(const struct dt_sendrecv *h);
/* Waits for the end of the transfer. */
dt_result_t dt_sendrecv_end(struct dt_sendrecv *h);

#endif
