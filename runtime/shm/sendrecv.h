/* Data from one rank of a host to another, through the pipes between them; or, where both buffers
 * stand in segments (segment.h) or the ranks reach each other's memory (cma.h), straight, a half by
 * each of the two.
 *
 * Both ranks first tell each other their call, so that both learn where the two do not fit; what
 * does not is never written to the taker's buffer. A call returns when the other rank has made its
 * own, and buf belongs to the caller again, even if it fails. What a pipe holds follows the giver's
 * call at once: so a side that has told all it has to tell need do nothing for the other to come to
 * its end. */
#ifndef DT_SHM_SENDRECV_H
#define DT_SHM_SENDRECV_H

#include "runtime/shm/segment.h"
#include "runtime/shm/shm.h"

struct dt_sendrecv_opening {
    struct dt_call call;
    struct dt_place place; /* of the buffer */
    uint64_t address;      /* likewise, for one who reaches this rank's memory; 0: for nobody */
    uint64_t piped;        /* not 0: neither; the giver's data follow, or the taker's have room */
};

struct dt_sendrecv_way { /* the opening, then the data, of which this much has moved */
    struct dt_sendrecv_opening opening;
    void *buf;
    size_t bytes;
    size_t done;
};

struct dt_sendrecv {
    struct dt_shm *s;
    uint32_t peer;
    bool giving;
    uint8_t *buf;
    size_t bytes;
    struct dt_sendrecv_way out;
    struct dt_sendrecv_way in;
};

/* Whether such data follow their call through the pipe, whether the taker has come or not, and what
 * this rank has to tell of both fits into it now. */
bool dt_sendrecv_fits_in(const struct dt_shm *s, const void *buf, size_t bytes, uint32_t peer,
                         bool giving);
/* peer: a local rank. call is the same on both sides. */
void dt_sendrecv_begin(struct dt_sendrecv *h, struct dt_shm *s, const struct dt_call *call,
                       void *buf, size_t bytes, uint32_t peer, bool giving);
/* Moves what can be moved without waiting. */
void dt_sendrecv_step(struct dt_sendrecv *h);
/* After a step: whether the peer needs nothing more of this rank; whether the end will not wait. */
bool dt_sendrecv_has_told(const struct dt_sendrecv *h);
bool dt_sendrecv_is_over(const struct dt_sendrecv *h);
/* Waits for the end. */
dt_result_t dt_sendrecv_end(struct dt_sendrecv *h);

#endif
