/* Each lookup has its own thread, because nothing can stop a getaddrinfo that waits for a silent
 * name server. Such a thread is abandoned, and ends with the process at the latest. (libuv's own
 * lookups would run two at a time, and exit would wait for them.) */
#include "launcher/remote/resolve.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "runtime/wire/thread.h"

struct lookup { /* shared with the thread; the last of the two frees it */
    pthread_mutex_t lock;
    uv_async_t *waker; /* NULL: the result is no longer wanted */
    bool answered;
    char *hostname;
    char service[16];
    int rc; /* the result of getaddrinfo */
    int error;
    struct addrinfo *list;
};

struct dt_resolve {
    uv_async_t waker;
    struct lookup *lookup; /* NULL once answered or cancelled */
    struct addrinfo *list;
    const char *why;
    dt_resolve_f done;
    void *arg;
};

static void free_lookup(struct lookup *l)
{
    pthread_mutex_destroy(&l->lock);
    if (l->list)
        freeaddrinfo(l->list);
    free(l->hostname);
    free(l);
}

static void ask(struct lookup *l, int flags)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags };

    l->rc = getaddrinfo(l->hostname, l->service, &hints, &l->list);
    l->error = errno;
}

static void *run(void *arg)
{
    struct lookup *l = arg;
    bool wanted;

    ask(l, 0);
    pthread_mutex_lock(&l->lock);
    wanted = l->waker != NULL;
    l->answered = true;
    if (wanted)
        uv_async_send(l->waker);
    pthread_mutex_unlock(&l->lock);
    if (!wanted)
        free_lookup(l);
    return NULL;
}

static void on_lookup_closed(uv_handle_t *handle)
{
    struct dt_resolve *r = handle->data;

    r->done(r->arg, r->list, r->why);
    free(r);
}

static void on_answer(uv_async_t *waker)
{
    struct dt_resolve *r = waker->data;
    struct lookup *l = r->lookup;

    if (!l)
        return;
    r->lookup = NULL;
    pthread_mutex_lock(&l->lock); /* waits until the thread has released it */
    pthread_mutex_unlock(&l->lock);
    if (l->rc)
        r->why = l->rc == EAI_SYSTEM ? strerror(l->error) : gai_strerror(l->rc);
    else
        r->list = l->list;
    l->list = NULL;
    free_lookup(l);
    uv_close((uv_handle_t *)waker, on_lookup_closed);
}

static int start_thread(struct lookup *l)
{
    pthread_t thread;
    int rc = dt_thread_start(&thread, run, l);

    if (rc == 0)
        pthread_detach(thread);
    return rc;
}

/* A numeric address resolves at once; a name needs the thread. */
static bool begin_lookup(struct lookup *l)
{
    int failed;

    ask(l, AI_NUMERICHOST | AI_NUMERICSERV);
    if (l->rc == 0)
        return false;
    failed = start_thread(l);
    if (failed) {
        l->rc = EAI_SYSTEM;
        l->error = failed;
    }
    return !failed;
}

struct dt_resolve *dt_resolve_open(uv_loop_t *loop, const char *hostname, int port,
                                   dt_resolve_f done, void *arg)
{
    struct dt_resolve *r = dt_xcalloc(1, sizeof *r);
    struct lookup *l = dt_xcalloc(1, sizeof *l);

    r->lookup = l;
    r->done = done;
    r->arg = arg;
    uv_async_init(loop, &r->waker, on_answer);
    r->waker.data = r;
    pthread_mutex_init(&l->lock, NULL);
    l->waker = &r->waker;
    l->hostname = dt_xstrdup(hostname);
    snprintf(l->service, sizeof l->service, "%d", port);
    if (!begin_lookup(l)) {
        l->answered = true;
        uv_async_send(&r->waker);
    }
    return r;
}

void dt_resolve_cancel(struct dt_resolve *r)
{
    struct lookup *l = r->lookup;
    bool answered;

    if (!l)
        return;
    r->lookup = NULL;
    r->why = "the lookup was cancelled";
    pthread_mutex_lock(&l->lock);
    l->waker = NULL;
    answered = l->answered;
    pthread_mutex_unlock(&l->lock);
    if (answered)
        free_lookup(l);
    uv_close((uv_handle_t *)&r->waker, on_lookup_closed);
}
