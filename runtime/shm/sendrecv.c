#include "runtime/shm/sendrecv.h"

#include "runtime/base/min.h"
#include "runtime/shm/pipe.h"
#include "runtime/shm/rounds.h"
#include "runtime/shm/segment.h"

enum {
    PLACE_MIN = 2 * 1024,  /* bytes from which on the opening names the data's place, if any */
    PIPED_MAX = 32 * 1024, /* bytes up to which data follow the opening at once, through the pipe */
};

static size_t bytes_left(const struct dt_sendrecv_stream *w)
{
    return sizeof w->opening + w->bytes - w->done;
}

/* The rest of the opening or, after that, of the data. */
static struct iovec rest_of_stream(struct dt_sendrecv_stream *w)
{
    size_t opening = sizeof w->opening;

    if (w->done < opening)
        return (struct iovec){ (uint8_t *)&w->opening + w->done, opening - w->done };
    return (struct iovec){ (uint8_t *)w->buf + (w->done - opening), bytes_left(w) };
}

static bool advance_stream(struct dt_sendrecv_stream *w, ssize_t moved)
{
    w->done += moved > 0 ? (size_t)moved : 0;
    return moved > 0;
}

static bool write_pipe(struct dt_sendrecv *h)
{
    struct iovec v = rest_of_stream(&h->out);

    return bytes_left(&h->out) && advance_stream(&h->out, dt_pipe_write(h->s, h->peer, &v, 1));
}

static bool read_pipe(struct dt_sendrecv *h)
{
    struct iovec v = rest_of_stream(&h->in);

    return bytes_left(&h->in) && advance_stream(&h->in, dt_pipe_read(h->s, h->peer, &v, 1));
}

static bool pipe_may_move(const void *arg)
{
    const struct dt_sendrecv *h = arg;

    return (bytes_left(&h->out) && dt_pipe_may_write(h->s, h->peer)) ||
           (bytes_left(&h->in) && dt_pipe_may_read(h->s, h->peer));
}

static dt_result_t move_through_pipes(struct dt_sendrecv *h)
{
    dt_result_t r = DT_OK;

    while (r == DT_OK && (bytes_left(&h->out) || bytes_left(&h->in))) {
        bool moved = write_pipe(h);

        if (!read_pipe(h) && !moved)
            r = dt_shm_wait(h->s, pipe_may_move, h);
    }
    return r;
}

/* ---- each side copies half ---- */

struct half { /* the half that this rank copies */
    uint8_t *ours;
    size_t at; /* offset in both buffers */
    size_t bytes;
};

static struct half own_half(const struct dt_sendrecv *h)
{
    size_t first = h->bytes / 2;

    return h->sending ? (struct half){ h->buf, 0, first }
                      : (struct half){ h->buf + first, first, h->bytes - first };
}

static struct dt_hostshm_target *direct_target(const struct dt_sendrecv *h)
{
    const struct dt_shm *s = h->s;
    uint32_t sender = h->sending ? s->me : h->peer, receiver = h->sending ? h->peer : s->me;

    return &dt_hostshm_pipe(&s->map, s->pipes, sender, receiver)->target;
}

/* Whether the peer has said that it has finished, or never will say so. */
static bool has_peer_finished(void *arg)
{
    struct dt_sendrecv *h = arg;

    return bytes_left(&h->in) == 0 || read_pipe(h) || dt_shm_is_dead(h->s, h->peer);
}

/* If the call failed, the sender may still be writing to the receiver's buffer, which must not
 * change once it belongs to the program again. The sender says when it has finished. */
static void await_sender_end(struct dt_sendrecv *h)
{
    dt_cma_refuse(direct_target(h));
    dt_shm_outlast(has_peer_finished, h);
}

/* Tells the peer whether this half is complete, and learns whether the other is. A sender whose
 * call fails keeps its buffer until everything has been stopped, so what the receiver has read
 * before that is valid. */
static dt_result_t compare_results(struct dt_sendrecv *h, bool done, bool *both)
{
    uint8_t ours = done && (h->sending || dt_shm_check(h->s) == DT_OK), theirs = 0;
    dt_result_t r;

    h->out.buf = &ours;
    h->in.buf = &theirs;
    h->out.bytes = h->in.bytes = 1;
    r = move_through_pipes(h);
    if (r != DT_OK && !h->sending)
        await_sender_end(h);
    *both = ours && theirs;
    return r;
}

static dt_result_t copy_mapped(struct dt_sendrecv *h, const struct half *half, bool *both)
{
    struct dt_shm *s = h->s;
    bool done = false;
    uint8_t *theirs;
    dt_result_t r;

    dt_segment_hold();
    theirs = dt_segment_find(h->in.opening.place);
    if (theirs)
        done = h->sending ? dt_shm_copy(s, theirs + half->at, half->ours, half->bytes)
                          : dt_shm_copy(s, half->ours, theirs + half->at, half->bytes);
    dt_segment_release();
    s->algorithm = "shm-mapped";
    r = compare_results(h, done, both);
    return theirs ? r : dt_coll_error(s->coll_error, DT_ERR_INTERNAL, s->ranks[h->peer]);
}

/* The kernel may be unable to copy some memory of a program. */
static dt_result_t copy_direct(struct dt_sendrecv *h, const struct half *half, bool *both)
{
    struct dt_shm *s = h->s;
    const struct dt_hostshm_card *card = &s->map.ranks[h->peer].card;
    uint64_t theirs = h->in.opening.address + half->at;
    bool done = h->sending
                    ? dt_cma_write(&s->map, card, direct_target(h), theirs, half->ours, half->bytes)
                    : dt_cma_read(&s->map, card, half->ours, theirs, half->bytes);
    dt_result_t r = compare_results(h, done, both);

    if (*both)
        s->algorithm = "shm-direct";
    else
        s->reach = DT_CMA_REFUSED;
    return r;
}

/* ---- the whole transfer ---- */

static bool cma_reaches(struct dt_shm *s, uint32_t peer)
{
    if (s->reach == DT_CMA_UNTRIED)
        s->reach = dt_cma_reaches(&s->map, s->me, peer) ? DT_CMA_REACHED : DT_CMA_REFUSED;
    return s->reach == DT_CMA_REACHED;
}

static dt_result_t transfer_by_pipes(struct dt_sendrecv *h)
{
    struct dt_sendrecv_stream *data = h->sending ? &h->out : &h->in;

    h->out.done = h->in.done = sizeof h->out.opening;
    h->out.bytes = h->in.bytes = 0;
    data->buf = h->buf;
    data->bytes = h->bytes;
    return move_through_pipes(h);
}

static dt_result_t transfer_directly(struct dt_sendrecv *h)
{
    const struct dt_sendrecv_opening *ours = &h->out.opening, *theirs = &h->in.opening;
    const struct half half = own_half(h);
    bool both = false;
    dt_result_t r = DT_OK;

    if (ours->place.segment && theirs->place.segment)
        r = copy_mapped(h, &half, &both);
    else if (ours->address && theirs->address)
        r = copy_direct(h, &half, &both);
    return r == DT_OK && !both ? transfer_by_pipes(h) : r;
}

static bool has_peer_opening(const struct dt_sendrecv *h)
{
    return h->in.done >= sizeof h->in.opening;
}

static bool calls_match(const struct dt_sendrecv *h)
{
    return dt_call_equal(&h->out.opening.call, &h->in.opening.call);
}

/* Lets a receiver read the data from the pipe once it knows that they come this way. */
static void expect_piped_data(struct dt_sendrecv *h)
{
    bool piped = h->in.opening.piped || h->out.opening.piped;

    if (h->sending || !has_peer_opening(h) || !calls_match(h) || !piped)
        return;
    h->in.buf = h->buf;
    h->in.bytes = h->bytes;
}

static struct dt_place find_place(const struct dt_shm *s, const void *buf, size_t bytes)
{
    return bytes >= PLACE_MIN ? dt_segment_place(s->comm, buf, bytes) : (struct dt_place){ 0 };
}

static bool is_piped(const struct dt_shm *s, const struct dt_place *place, size_t bytes)
{
    size_t room = dt_pipe_capacity(s) - sizeof(struct dt_sendrecv_opening);

    return !place->segment && bytes <= dt_min(room, PIPED_MAX);
}

bool dt_sendrecv_fits_pipe(const struct dt_shm *s, const void *buf, size_t bytes, uint32_t peer,
                           bool sending)
{
    const struct dt_place place = find_place(s, buf, bytes);
    size_t to_send = sizeof(struct dt_sendrecv_opening) + (sending ? bytes : 0);

    return is_piped(s, &place, bytes) && to_send <= dt_pipe_room(s, peer);
}

/* If the peer could access the data directly, the opening names their address. */
static void offer_address(struct dt_sendrecv *h)
{
    struct dt_sendrecv_opening *o = &h->out.opening;

    o->place = find_place(h->s, h->buf, h->bytes);
    o->piped = is_piped(h->s, &o->place, h->bytes);
    if (!o->piped && h->bytes >= h->s->least_direct && cma_reaches(h->s, h->peer))
        o->address = (uintptr_t)h->buf;
}

void dt_sendrecv_begin(struct dt_sendrecv *h, struct dt_shm *s, const struct dt_call *call,
                       void *buf, size_t bytes, uint32_t peer, bool sending)
{
    *h = (struct dt_sendrecv){
        .s = s, .peer = peer, .sending = sending, .buf = buf, .bytes = bytes
    };
    h->out.opening.call = *call;
    offer_address(h);
    if (sending && h->out.opening.piped) {
        h->out.buf = buf;
        h->out.bytes = bytes;
    }
}

void dt_sendrecv_step(struct dt_sendrecv *h)
{
    bool moved;

    do {
        moved = write_pipe(h);
        moved = read_pipe(h) || moved;
        expect_piped_data(h);
    } while (moved);
}

static bool is_mismatch(const struct dt_sendrecv *h)
{
    return has_peer_opening(h) && !calls_match(h);
}

bool dt_sendrecv_has_sent_all(const struct dt_sendrecv *h)
{
    return h->out.opening.piped && bytes_left(&h->out) == 0 && !is_mismatch(h);
}

bool dt_sendrecv_is_over(const struct dt_sendrecv *h)
{
    return is_mismatch(h) || (bytes_left(&h->out) == 0 && bytes_left(&h->in) == 0) ||
           dt_hostshm_stopped(&h->s->map, NULL);
}

/* Whether the sender may have begun to write to this receiver's buffer before everything was
 * stopped. */
static bool may_be_written_to(struct dt_sendrecv *h)
{
    const struct dt_sendrecv_opening *o = &h->out.opening;

    if (h->sending || bytes_left(&h->out) || !(o->place.segment || o->address))
        return false;
    dt_shm_fence(h->s);
    while (!has_peer_opening(h) && read_pipe(h))
        ;
    return has_peer_opening(h) && calls_match(h);
}

/* A sender that has not learnt where to write has written nothing. The receiver waits until it is
 * told whether that is so. */
static void tell_nothing_written(struct dt_sendrecv *h)
{
    uint8_t done = false;

    if (h->out.opening.piped || bytes_left(&h->out))
        return;
    h->out.buf = &done;
    h->out.bytes = 1;
    write_pipe(h);
}

/* Each side sends its own call before it fails because of the other's, so that both detect a
 * mismatch. */
dt_result_t dt_sendrecv_end(struct dt_sendrecv *h)
{
    dt_result_t r = move_through_pipes(h);

    if (r != DT_OK && h->sending)
        tell_nothing_written(h);
    if (r != DT_OK && !may_be_written_to(h))
        return r;
    if (!calls_match(h)) {
        dt_coll_error(h->s->coll_error, DT_ERR_MISMATCH, h->s->ranks[h->peer]);
        h->s->coll_error->theirs = h->in.opening.call;
        return DT_ERR_MISMATCH;
    }
    expect_piped_data(h);
    if (h->in.bytes || (h->sending && h->out.opening.piped))
        return move_through_pipes(h);
    return transfer_directly(h);
}
