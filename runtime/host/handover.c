#include "runtime/host/handover.h"

#include "runtime/host/pipe.h"
#include "runtime/host/rounds.h"

struct way { /* the call, then the data, of which this much has moved */
    struct dt_call call;
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
    return sizeof w->call + w->bytes - w->done;
}

/* The rest of the call, or, once that is through, of the data. */
static struct iovec rest(struct way *w)
{
    size_t call = sizeof w->call;

    if (w->done < call)
        return (struct iovec){ (uint8_t *)&w->call + w->done, call - w->done };
    return (struct iovec){ (uint8_t *)w->buf + (w->done - call), left(w) };
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

/* Both have told their call before either can fail for the other's. */
static dt_result_t hand_over(struct dt_shm *s, struct handover *h, const struct dt_call *call,
                             size_t out, size_t in)
{
    dt_result_t r;

    h->out.call = *call;
    r = move(s, h);
    if (r != DT_OK)
        return r;
    if (!dt_call_equal(call, &h->in.call)) {
        dt_trouble(s->trouble, DT_ERR_MISMATCH, s->ranks[h->peer]);
        s->trouble->theirs = h->in.call;
        return DT_ERR_MISMATCH;
    }
    h->out.bytes = out;
    h->in.bytes = in;
    return move(s, h);
}

dt_result_t dt_handover_give(struct dt_shm *s, const struct dt_call *call, const void *buf,
                             size_t bytes, uint32_t peer)
{
    struct handover h = { .s = s, .peer = peer, .out = { .buf = (void *)(uintptr_t)buf } };

    return hand_over(s, &h, call, bytes, 0);
}

dt_result_t dt_handover_take(struct dt_shm *s, const struct dt_call *call, void *buf, size_t bytes,
                             uint32_t peer)
{
    struct handover h = { .s = s, .peer = peer, .in = { .buf = buf } };

    return hand_over(s, &h, call, 0, bytes);
}
