#include "launcher/io/filewriter.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"
#include "runtime/wire/thread.h"
#include "runtime/wire/writeall.h"

struct dt_filewriter_file {
    struct dt_filewriter *writer;
    int fd;
    dt_filewriter_wrote_f wrote;
    void *arg;
    struct dt_strbuf queue;   /* belongs to the loop */
    struct dt_strbuf writing; /* belongs to the thread while busy */
    bool busy;
    bool failed;
    int result;                          /* of the last write; belongs to the thread while busy */
    struct dt_filewriter_file *next;     /* in the list of all files */
    struct dt_filewriter_file *next_job; /* in todo or done */
};

struct jobs {
    struct dt_filewriter_file *first, **last;
};

struct dt_filewriter {
    uv_async_t woken;
    struct dt_filewriter_file *files;
    bool started;
    atomic_uint users;    /* the loop and the thread; the last one frees everything */
    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t changed;
    struct jobs todo, done;
    bool closed;
};

static void push_job(struct jobs *jobs, struct dt_filewriter_file *f)
{
    f->next_job = NULL;
    *jobs->last = f;
    jobs->last = &f->next_job;
}

static struct dt_filewriter_file *pop_job(struct jobs *jobs)
{
    struct dt_filewriter_file *f = jobs->first;

    if (f && !(jobs->first = f->next_job))
        jobs->last = &jobs->first;
    return f;
}

static void release_writer(struct dt_filewriter *w)
{
    if (--w->users > 0)
        return;
    for (struct dt_filewriter_file *f = w->files, *next; f; f = next) {
        next = f->next;
        dt_strbuf_free(&f->queue);
        dt_strbuf_free(&f->writing);
        free(f);
    }
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static void write_queue(struct dt_filewriter_file *f)
{
    f->result = dt_write_all(f->fd, f->writing.data, f->writing.len) < 0 ? errno : 0;
}

static void *write_files(void *arg)
{
    struct dt_filewriter *w = arg;
    struct dt_filewriter_file *f;

    pthread_mutex_lock(&w->lock);
    while (!w->closed) {
        f = pop_job(&w->todo);
        if (!f) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        pthread_mutex_unlock(&w->lock);
        write_queue(f);
        pthread_mutex_lock(&w->lock);
        push_job(&w->done, f);
        if (!w->closed)
            uv_async_send(&w->woken);
    }
    pthread_mutex_unlock(&w->lock);
    release_writer(w);
    return NULL;
}

static void start_thread(struct dt_filewriter *w)
{
    pthread_t thread;

    if (dt_thread_start(&thread, write_files, w) != 0)
        return;
    pthread_detach(thread);
    w->started = true;
    w->users++;
}

static void submit_write(struct dt_filewriter_file *f)
{
    struct dt_filewriter *w = f->writer;
    struct dt_strbuf empty = f->writing;

    f->writing = f->queue;
    f->queue = empty;
    f->queue.len = 0;
    f->busy = true;
    pthread_mutex_lock(&w->lock);
    push_job(&w->todo, f);
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    if (!w->started)
        uv_async_send(&w->woken);
}

static void on_written(struct dt_filewriter_file *f)
{
    size_t n = f->writing.len;
    int error = f->result; /* copied, because the next write may change it at once */

    if (error) {
        f->failed = true;
        n += f->queue.len;
        f->queue.len = 0;
    }
    f->writing.len = 0;
    f->busy = false;
    if (f->queue.len > 0)
        submit_write(f);
    f->wrote(f->arg, n, error);
}

/* Where no thread can be started, the loop writes: it may be held up, but nothing is lost. */
static struct dt_filewriter_file *next_done(struct dt_filewriter *w)
{
    struct dt_filewriter_file *f;

    pthread_mutex_lock(&w->lock);
    f = pop_job(w->started ? &w->done : &w->todo);
    pthread_mutex_unlock(&w->lock);
    if (f && !w->started)
        write_queue(f);
    return f;
}

static void on_woken(uv_async_t *woken)
{
    struct dt_filewriter *w = woken->data;
    struct dt_filewriter_file *f;

    while ((f = next_done(w)))
        on_written(f);
}

struct dt_filewriter *dt_filewriter_open(uv_loop_t *loop)
{
    struct dt_filewriter *w = dt_xcalloc(1, sizeof *w);

    uv_async_init(loop, &w->woken, on_woken);
    w->woken.data = w;
    w->todo.last = &w->todo.first;
    w->done.last = &w->done.first;
    w->users = 1;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    return w;
}

struct dt_filewriter_file *dt_filewriter_file(struct dt_filewriter *w, int fd,
                                              dt_filewriter_wrote_f wrote, void *arg)
{
    struct dt_filewriter_file *f = dt_xcalloc(1, sizeof *f);

    *f = (struct dt_filewriter_file){
        .writer = w, .fd = fd, .wrote = wrote, .arg = arg, .next = w->files
    };
    w->files = f;
    return f;
}

void dt_filewriter_add(struct dt_filewriter_file *f, const void *data, size_t n)
{
    if (f->failed) {
        f->wrote(f->arg, n, 0);
        return;
    }
    if (!f->writer->started)
        start_thread(f->writer);
    dt_strbuf_add(&f->queue, data, n);
    if (!f->busy)
        submit_write(f);
}

size_t dt_filewriter_pending(const struct dt_filewriter_file *f)
{
    return f->queue.len + (f->busy ? f->writing.len : 0);
}

static void on_writer_closed(uv_handle_t *handle)
{
    release_writer(handle->data);
}

void dt_filewriter_close(struct dt_filewriter *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->closed = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    uv_close((uv_handle_t *)&w->woken, on_writer_closed);
}
