#include "launcher/agent/io/stdinfeed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/bytequeue.h"
#include "launcher/base/mem.h"
#include "runtime/wire/thread.h"
#include "runtime/wire/writeall.h"

/* A dying rank closes its pipe before the kernel tells the agent of its death. */
enum { DYING_MS = 1000 };

enum { PIECE = 16 * 1024 };

struct reader {
    struct dt_stdinfeed *feed;
    int fd;    /* belongs to the reader's thread once that runs */
    bool open; /* it may read more; the feed's lock guards this and at */
    size_t at; /* how many of the waiting bytes the pipe has taken */
};

struct dt_stdinfeed {
    struct dt_channel *channel;
    uint32_t generation;
    bool begun;
    uv_async_t changed; /* a reader has taken bytes or is gone; points to this struct */
    uv_timer_t dying;   /* runs while the last reader may be dying; points to this struct */
    uint32_t n;
    atomic_uint users;    /* threads, and handles that libuv still uses */
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t more;
    bool eof;
    bool destroyed;
    bool broken;                 /* the last reader is gone although it has not read everything */
    struct dt_bytequeue waiting; /* bytes that not every reader has taken yet */
    struct reader readers[];
};

static void let_go(struct dt_stdinfeed *f)
{
    if (--f->users > 0)
        return;
    pthread_cond_destroy(&f->more);
    pthread_mutex_destroy(&f->lock);
    dt_bytequeue_free(&f->waiting);
    free(f);
}

static void on_handle_closed(uv_handle_t *handle)
{
    let_go(handle->data);
}

static bool anybody_reads(const struct dt_stdinfeed *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        if (f->readers[i].open)
            return true;
    }
    return false;
}

/* Waits for bytes that the reader has not got, and copies a piece of them. Returns its length, or 0
 * if nothing more will come. */
static size_t await_piece(struct reader *r, char piece[PIECE])
{
    struct dt_stdinfeed *f = r->feed;
    size_t n;

    while (!f->destroyed && !f->eof && r->at == f->waiting.len)
        pthread_cond_wait(&f->more, &f->lock);
    if (f->destroyed)
        return 0;
    n = f->waiting.len - r->at;
    n = n < PIECE ? n : PIECE;
    if (n > 0)
        memcpy(piece, dt_bytequeue_head(&f->waiting) + r->at, n);
    return n;
}

static void tell_loop(struct dt_stdinfeed *f)
{
    if (!f->destroyed)
        uv_async_send(&f->changed);
}

/* Writing may wait for long, and closing, too: whoever splices a pipe locks it meanwhile. */
static void *feed_reader(void *arg)
{
    struct reader *r = arg;
    struct dt_stdinfeed *f = r->feed;
    char piece[PIECE];
    bool failed = false;
    size_t n;

    pthread_mutex_lock(&f->lock);
    while (!failed && (n = await_piece(r, piece)) > 0) {
        pthread_mutex_unlock(&f->lock);
        failed = dt_write_all(r->fd, piece, n) < 0;
        pthread_mutex_lock(&f->lock);
        r->at += n;
        tell_loop(f);
    }
    r->open = false;
    f->broken = failed && !anybody_reads(f);
    tell_loop(f);
    pthread_mutex_unlock(&f->lock);
    close(r->fd);
    let_go(f);
    return NULL;
}

static void on_dying_over(uv_timer_t *timer);

/* Drops the bytes that every reader has taken, and returns their number. While the last reader may
 * be dying it does nothing: the launcher would send more, which restarted ranks would miss. */
static size_t drop_taken(struct dt_stdinfeed *f)
{
    size_t taken = f->waiting.len;

    if (f->broken)
        uv_timer_start(&f->dying, on_dying_over, DYING_MS, 0);
    f->broken = false;
    if (uv_is_active((uv_handle_t *)&f->dying))
        return 0;
    for (uint32_t i = 0; i < f->n; i++) {
        if (f->readers[i].open && f->readers[i].at < taken)
            taken = f->readers[i].at;
    }
    dt_bytequeue_consume(&f->waiting, taken);
    for (uint32_t i = 0; i < f->n; i++)
        f->readers[i].at -= f->readers[i].open ? taken : 0;
    return taken;
}

static void return_credit(struct dt_stdinfeed *f)
{
    struct dt_msg_stdin_credit m = { .generation = f->generation };

    pthread_mutex_lock(&f->lock);
    m.bytes = (uint32_t)drop_taken(f);
    pthread_mutex_unlock(&f->lock);
    if (m.bytes > 0)
        dt_channel_send(f->channel, DT_MSG_STDIN_CREDIT, &m);
}

static void on_dying_over(uv_timer_t *timer)
{
    return_credit(timer->data);
}

static void on_changed(uv_async_t *changed)
{
    return_credit(changed->data);
}

struct dt_stdinfeed *dt_stdinfeed_create(uv_loop_t *loop, struct dt_channel *channel,
                                         uint32_t generation, uint32_t readers)
{
    struct dt_stdinfeed *f = dt_xcalloc(1, sizeof *f + readers * sizeof f->readers[0]);

    f->channel = channel;
    f->generation = generation;
    uv_async_init(loop, &f->changed, on_changed);
    uv_timer_init(loop, &f->dying);
    f->changed.data = f->dying.data = f;
    f->users = 2;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->more, NULL);
    return f;
}

void dt_stdinfeed_add(struct dt_stdinfeed *f, int fd)
{
    f->readers[f->n++] = (struct reader){ .feed = f, .fd = fd, .open = true };
}

static int start_thread(struct reader *r)
{
    pthread_t thread;
    int error;

    r->feed->users++;
    error = dt_thread_start(&thread, feed_reader, r);
    if (error)
        let_go(r->feed);
    else
        pthread_detach(thread);
    return error;
}

int dt_stdinfeed_begin(struct dt_stdinfeed *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        int error = start_thread(&f->readers[i]);

        if (error) {
            for (; i < f->n; i++)
                close(f->readers[i].fd);
            return error;
        }
    }
    f->begun = true;
    return_credit(f);
    return 0;
}

bool dt_stdinfeed_put(struct dt_stdinfeed *f, const void *data, size_t n)
{
    bool fits;

    pthread_mutex_lock(&f->lock);
    fits = n <= (size_t)DT_STDIN_CREDIT - f->waiting.len;
    if (fits && !f->eof)
        dt_bytequeue_add(&f->waiting, data, n);
    pthread_cond_broadcast(&f->more);
    pthread_mutex_unlock(&f->lock);
    if (f->begun)
        return_credit(f);
    return fits;
}

void dt_stdinfeed_eof(struct dt_stdinfeed *f)
{
    pthread_mutex_lock(&f->lock);
    f->eof = true;
    pthread_cond_broadcast(&f->more);
    pthread_mutex_unlock(&f->lock);
}

void dt_stdinfeed_destroy(struct dt_stdinfeed *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->destroyed = true;
    pthread_cond_broadcast(&f->more);
    pthread_mutex_unlock(&f->lock);
    uv_close((uv_handle_t *)&f->changed, on_handle_closed);
    uv_close((uv_handle_t *)&f->dying, on_handle_closed);
}
