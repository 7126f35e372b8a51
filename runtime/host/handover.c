#include "runtime/host/handover.h"

#include <string.h>

#include "runtime/host/pipe.h"
#include "runtime/host/rounds.h"
#include "runtime/host/segment.h"

enum { LEAST_OPEN = 2 * 1024 }; /* bytes that are worth to be told where they are */

struct opening {
    struct dt_call call;
    struct dt_place place; /* of the buffer */
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

/* Both copy a half; then each tells the other that its own is done. */
static dt_result_t copy_halves(struct dt_shm *s, struct handover *h, void *buf, size_t bytes,
                               bool giving)
{
    size_t half = bytes / 2, at = giving ? 0 : half, mine = giving ? half : bytes - half;
    uint8_t *theirs, ours = 1;

    dt_segment_hold();
    theirs = dt_segment_find(h->in.opening.place);
    if (theirs && giving)
        memcpy(theirs + at, (const uint8_t *)buf + at, mine);
    else if (theirs)
        memcpy((uint8_t *)buf + at, theirs + at, mine);
    dt_segment_release();
    if (!theirs)
        return dt_trouble(s->trouble, DT_ERR_INTERNAL, s->ranks[h->peer]);
    h->out.buf = h->in.buf = &ours;
    h->out.bytes = h->in.bytes = 1;
    return move(s, h);
}

/* Both have told their call before either can fail for the other's. */
static dt_result_t hand_over(struct dt_shm *s, struct handover *h, const struct dt_call *call,
                             void *buf, size_t bytes, bool giving)
{
    struct way *data = giving ? &h->out : &h->in;
    dt_result_t r;

    h->out.opening.call = *call;
    if (bytes >= LEAST_OPEN)
        h->out.opening.place = dt_segment_place(s->comm, buf, bytes);
    r = move(s, h);
    if (r != DT_OK)
        return r;
    if (!dt_call_equal(call, &h->in.opening.call)) {
        dt_trouble(s->trouble, DT_ERR_MISMATCH, s->ranks[h->peer]);
        s->trouble->theirs = h->in.opening.call;
        return DT_ERR_MISMATCH;
    }
    if (h->out.opening.place.segment && h->in.opening.place.segment)
        return copy_halves(s, h, buf, bytes, giving);
    data->buf = buf;
    data->bytes = bytes;
    return move(s, h);
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
