#include "runtime/host/handover.h"

#include <string.h>

#include "runtime/host/pipe.h"
#include "runtime/host/rounds.h"
#include "runtime/host/segment.h"

enum { LEAST_OPEN = 2 * 1024 }; /* bytes that are worth to be told where they are */

struct opening {
    struct dt_call call;
    struct dt_place place; /* of the buffer */
    uint64_t address;      /* likewise, for one who reaches this rank's memory; 0: for nobody */
};

struct way { /* the opening, then the data, of which this much has moved */
    struct opening opening;
    void *buf;
    size_t bytes;
    size_t done;
};

struct handover {
    const struct dt_shm *s;
    uint32_t peer;
    struct way out;
    struct way in;
};

static size_t left(const struct way *w)
{
    return sizeof w->opening + w->bytes - w->done;
}

/* The rest of the opening, or, once that is through, of the data. */
static struct iovec rest(struct way *w)
{
    size_t opening = sizeof w->opening;

    if (w->done < opening)
        return (struct iovec){ (uint8_t *)&w->opening + w->done, opening - w->done };
    return (struct iovec){ (uint8_t *)w->buf + (w->done - opening), left(w) };
}

static bool advance(struct way *w, ssize_t moved)
{
    w->done += moved > 0 ? (size_t)moved : 0;
    return moved > 0;
}

static bool write_some(struct handover *h)
{
    struct iovec v = rest(&h->out);

    return left(&h->out) && advance(&h->out, dt_pipe_write(h->s, h->peer, &v, 1));
}

static bool read_some(struct handover *h)
{
    struct iovec v = rest(&h->in);

    return left(&h->in) && advance(&h->in, dt_pipe_read(h->s, h->peer, &v, 1));
}

static bool may_go_on(const void *arg)
{
    const struct handover *h = arg;

    return (left(&h->out) && dt_pipe_may_write(h->s, h->peer)) ||
           (left(&h->in) && dt_pipe_may_read(h->s, h->peer));
}

static dt_result_t move(struct dt_shm *s, struct handover *h)
{
    dt_result_t r = DT_OK;

    while (r == DT_OK && (left(&h->out) || left(&h->in))) {
        bool moved = write_some(h);

        if (!read_some(h) && !moved)
            r = dt_shm_wait(s, may_go_on, h);
    }
    return r;
}

/* ---- a half by each of the two ---- */

struct halves {
    uint8_t *buf; /* this rank's */
    size_t at;    /* of the half that this rank copies */
    size_t bytes;
    bool giving;
};

static struct halves halve(void *buf, size_t bytes, bool giving)
{
    size_t half = bytes / 2;

    return giving ? (struct halves){ buf, 0, half, true }
                  : (struct halves){ buf, half, bytes - half, false };
}

/* Each tells the other whether its half is done. */
static dt_result_t compare_ends(struct dt_shm *s, struct handover *h, bool done, bool *both)
{
    uint8_t ours = done, theirs = 0;
    dt_result_t r;

    h->out.buf = &ours;
    h->in.buf = &theirs;
    h->out.bytes = h->in.bytes = 1;
    r = move(s, h);
    *both = ours && theirs;
    return r;
}

static dt_result_t copy_mapped(struct dt_shm *s, struct handover *h, const struct halves *x)
{
    uint8_t *theirs;
    bool both;

    s->way = "shm-mapped";
    dt_segment_hold();
    theirs = dt_segment_find(h->in.opening.place);
    if (theirs && x->giving)
        memcpy(theirs + x->at, x->buf + x->at, x->bytes);
    else if (theirs)
        memcpy(x->buf + x->at, theirs + x->at, x->bytes);
    dt_segment_release();
    return theirs ? compare_ends(s, h, true, &both)
                  : dt_trouble(s->trouble, DT_ERR_INTERNAL, s->ranks[h->peer]);
}

/* The memory of a program may be such that the kernel copies none of it. */
static dt_result_t copy_direct(struct dt_shm *s, struct handover *h, const struct halves *x,
                               bool *both)
{
    const struct dt_hostshm_card *card = &s->map.ranks[h->peer].card;
    uint64_t theirs = h->in.opening.address + x->at;
    bool done = x->giving ? dt_cma_write(&s->map, card, theirs, x->buf + x->at, x->bytes)
                          : dt_cma_read(&s->map, card, x->buf + x->at, theirs, x->bytes);
    dt_result_t r = compare_ends(s, h, done, both);

    if (*both)
        s->way = "shm-direct";
    else
        s->reach = DT_CMA_REFUSED;
    return r;
}

/* ---- the whole ---- */

static bool reaches(struct dt_shm *s, uint32_t peer)
{
    if (s->reach == DT_CMA_UNTRIED)
        s->reach = dt_cma_finds(&s->map.ranks[peer].card) ? DT_CMA_REACHED : DT_CMA_REFUSED;
    return s->reach == DT_CMA_REACHED;
}

static void open_with(struct dt_shm *s, struct handover *h, const struct dt_call *call,
                      const void *buf, size_t bytes)
{
    struct opening *o = &h->out.opening;

    o->call = *call;
    if (bytes >= LEAST_OPEN)
        o->place = dt_segment_place(s->comm, buf, bytes);
    if (bytes && bytes >= s->least_direct && reaches(s, h->peer))
        o->address = (uintptr_t)buf;
}

static dt_result_t through_pipes(struct dt_shm *s, struct handover *h, void *buf, size_t bytes,
                                 bool giving)
{
    struct way *data = giving ? &h->out : &h->in;

    h->out.done = h->in.done = sizeof h->out.opening;
    h->out.bytes = h->in.bytes = 0;
    data->buf = buf;
    data->bytes = bytes;
    return move(s, h);
}

static dt_result_t move_data(struct dt_shm *s, struct handover *h, void *buf, size_t bytes,
                             bool giving)
{
    const struct opening *ours = &h->out.opening, *theirs = &h->in.opening;
    const struct halves x = halve(buf, bytes, giving);
    bool both = false;
    dt_result_t r = DT_OK;

    if (ours->place.segment && theirs->place.segment)
        return copy_mapped(s, h, &x);
    if (ours->address && theirs->address)
        r = copy_direct(s, h, &x, &both);
    return r == DT_OK && !both ? through_pipes(s, h, buf, bytes, giving) : r;
}

/* Both have told their call before either can fail for the other's. */
static dt_result_t hand_over(struct dt_shm *s, struct handover *h, const struct dt_call *call,
                             void *buf, size_t bytes, bool giving)
{
    dt_result_t r;

    open_with(s, h, call, buf, bytes);
    r = move(s, h);
    if (r != DT_OK)
        return r;
    if (!dt_call_equal(call, &h->in.opening.call)) {
        dt_trouble(s->trouble, DT_ERR_MISMATCH, s->ranks[h->peer]);
        s->trouble->theirs = h->in.opening.call;
        return DT_ERR_MISMATCH;
    }
    return move_data(s, h, buf, bytes, giving);
}

dt_result_t dt_handover_give(struct dt_shm *s, const struct dt_call *call, const void *buf,
                             size_t bytes, uint32_t peer)
{
    struct handover h = { .s = s, .peer = peer };

    return hand_over(s, &h, call, (void *)(uintptr_t)buf, bytes, true);
}

dt_result_t dt_handover_take(struct dt_shm *s, const struct dt_call *call, void *buf, size_t bytes,
                             uint32_t peer)
{
    struct handover h = { .s = s, .peer = peer };

    return hand_over(s, &h, call, buf, bytes, false);
}
