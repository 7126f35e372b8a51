#include "launcher/io/filereader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "runtime/wire/thread.h"

struct dt_filereader {
    uv_async_t woken;
    bool opens; /* fd is its own */
    int fd;     /* -1: no file is open */
    dt_filereader_read_f read;
    void *arg;
    bool started;
    bool asked;   /* the callback is due */
    bool calling; /* it is being called: its data must not change */
    size_t limit; /* of the next read */
    /* These, and fd, belong to the thread while busy. */
    char *path; /* of the file to open, or NULL: it is open */
    char data[DT_FILEREADER_MAX];
    size_t begin, end; /* what the callee has not taken */
    int error;
    pthread_mutex_t lock; /* guards busy and closed */
    pthread_cond_t changed;
    bool busy, closed;
    atomic_uint users; /* the loop and the thread; the last one frees everything */
};

static void close_own_file(struct dt_filereader *r)
{
    if (r->opens && r->fd >= 0)
        close(r->fd);
    r->fd = -1;
}

static void release_reader(struct dt_filereader *r)
{
    if (--r->users > 0)
        return;
    close_own_file(r);
    free(r->path);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static void read_once(struct dt_filereader *r)
{
    ssize_t n = -1;
    char *path = r->path;

    if (path) {
        close_own_file(r);
        r->fd = open(path, O_RDONLY | O_CLOEXEC);
        r->path = NULL;
    }
    while (r->fd >= 0 && (n = read(r->fd, r->data, r->limit)) < 0 && errno == EINTR)
        continue;
    r->error = n < 0 ? errno : 0;
    r->begin = 0;
    r->end = n < 0 ? 0 : (size_t)n;
    free(path);
}

static void *read_file(void *arg)
{
    struct dt_filereader *r = arg;

    pthread_mutex_lock(&r->lock);
    while (!r->closed) {
        if (!r->busy) {
            pthread_cond_wait(&r->changed, &r->lock);
            continue;
        }
        pthread_mutex_unlock(&r->lock);
        read_once(r);
        pthread_mutex_lock(&r->lock);
        r->busy = false;
        if (!r->closed)
            uv_async_send(&r->woken);
    }
    pthread_mutex_unlock(&r->lock);
    close_own_file(r); /* not in the loop, which it could block */
    release_reader(r);
    return NULL;
}

static void start_reader_thread(struct dt_filereader *r)
{
    pthread_t thread;

    r->users++; /* before the thread can count down */
    if (dt_thread_start(&thread, read_file, r) != 0) {
        r->users--;
        return;
    }
    pthread_detach(thread);
    r->started = true;
}

static void submit_read(struct dt_filereader *r)
{
    if (!r->started)
        start_reader_thread(r);
    if (!r->started) {
        read_once(r);
        uv_async_send(&r->woken);
        return;
    }
    pthread_mutex_lock(&r->lock);
    r->busy = true;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static bool is_busy(struct dt_filereader *r)
{
    bool busy;

    pthread_mutex_lock(&r->lock);
    busy = r->busy;
    pthread_mutex_unlock(&r->lock);
    return busy;
}

static void proceed(struct dt_filereader *r)
{
    if (r->begin < r->end)
        uv_async_send(&r->woken);
    else
        submit_read(r);
}

static void on_file_read(uv_async_t *woken)
{
    struct dt_filereader *r = woken->data;

    if (!r->asked || is_busy(r))
        return;
    r->asked = false;
    r->calling = true;
    r->begin += r->read(r->arg, r->data + r->begin, r->end - r->begin, r->error);
    r->calling = false;
    if (r->asked && !uv_is_closing((uv_handle_t *)woken))
        proceed(r);
}

struct dt_filereader *dt_filereader_open(uv_loop_t *loop, int fd, dt_filereader_read_f read,
                                         void *arg)
{
    struct dt_filereader *r = dt_xcalloc(1, sizeof *r);

    r->fd = fd;
    r->read = read;
    r->arg = arg;
    r->users = 1;
    uv_async_init(loop, &r->woken, on_file_read);
    r->woken.data = r;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    return r;
}

struct dt_filereader *dt_filereader_open_paths(uv_loop_t *loop, dt_filereader_read_f read,
                                               void *arg)
{
    struct dt_filereader *r = dt_filereader_open(loop, -1, read, arg);

    r->opens = true;
    return r;
}

void dt_filereader_switch(struct dt_filereader *r, const char *path)
{
    free(r->path);
    r->path = dt_xstrdup(path);
}

void dt_filereader_start(struct dt_filereader *r, size_t n)
{
    if (r->asked)
        return;
    r->asked = true;
    r->limit = n < DT_FILEREADER_MAX ? n : DT_FILEREADER_MAX;
    if (!r->calling)
        proceed(r);
}

static void on_reader_closed(uv_handle_t *handle)
{
    release_reader(handle->data);
}

void dt_filereader_close(struct dt_filereader *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->closed = true;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
    uv_close((uv_handle_t *)&r->woken, on_reader_closed);
}
