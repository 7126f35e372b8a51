#include "runtime/api/view.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/api/context.h"
#include "runtime/api/enqueue.h"
#include "runtime/api/request.h"
#include "runtime/base/inflight.h"
#include "runtime/comm/async.h"
#include "runtime/comm/collective.h"
#include "runtime/comm/views.h"
#include "runtime/gpu/device/pinned.h"
#include "runtime/gpu/device/stream.h"
#include "runtime/gpu/devicecall.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/nvidia/cudafail.h"

/* A view is used by one thread at a time. */
struct view {
    dt_comm_t *handle;
    dt_comm_t *comm;
    struct dt_gpu_stream stream;
    struct dt_inflight inflight; /* counts enqueued calls, also those without a request */
    dt_request_t *requests;      /* of calls not known to be done, in order */
    size_t n;
    size_t room;
    dt_result_t failed; /* the first failure of a call; DT_OK: none */
    dt_error_info_t error;
};

static void visit_shut(struct dt_comm *c, void *arg)
{
    *(bool *)arg = c->shut;
}

/* Counts the call before it looks at the communicator. So either dt_finalize sees this call and is
 * refused, or this call sees that dt_finalize has shut the communicator. After DT_OK the caller
 * must call dt_views_leave. */
static dt_result_t enter_views(const char *name, const dt_comm_t *comm)
{
    bool shut = false;
    dt_result_t r;

    dt_views_enter();
    r = dt_context_visit(name, comm, visit_shut, &shut);
    if (r == DT_OK && shut)
        r = dt_fail(DT_ERR_STATE,
                    "%s: another thread is freeing this communicator "
                    "(dt_comm_free, dt_finalize)",
                    name);
    if (r != DT_OK)
        dt_views_leave();
    return r;
}

/* Likewise, after DT_OK the caller must call dt_views_leave. */
static dt_result_t find_view(const char *name, const dt_comm_t *handle, struct view **v)
{
    dt_result_t r = enter_views(name, dt_views_have_issued(handle) ? DT_WORLD : handle);

    if (r != DT_OK)
        return r;
    *v = dt_views_find(handle);
    if (*v)
        return DT_OK;
    dt_views_leave();
    if (dt_views_have_issued(handle))
        return dt_fail(DT_ERR_STATE, "%s: this view of a communicator has been freed", name);
    return dt_fail(DT_ERR_ARG, "%s: this is not a view of a communicator (dt_comm_on_stream)",
                   name);
}

/* ---- results of enqueued calls ---- */

static void keep_failure(struct view *v, dt_result_t r)
{
    if (r == DT_OK || v->failed != DT_OK)
        return;
    v->failed = r;
    dt_error_save(&v->error);
}

/* Forgets the first n requests, which are done. */
static void forget_requests(struct view *v, size_t n)
{
    memmove(v->requests, v->requests + n, (v->n - n) * sizeof *v->requests);
    v->n -= n;
}

/* Takes the results of requests that are done and, if wait is set, waits for the others. */
static void collect_results(struct view *v, bool wait)
{
    size_t n = 0;
    int done = 1;

    while (n < v->n && done) {
        keep_failure(v, wait ? dt_wait(&v->requests[n]) : dt_test(&v->requests[n], &done));
        n += done != 0;
    }
    if (n)
        forget_requests(v, n);
}

/* A final failure is returned by all later calls, any other failure only once. */
static dt_result_t return_failure(struct view *v)
{
    dt_result_t r = v->failed;

    if (r == DT_OK)
        return r;
    if (!dt_result_is_final(r))
        v->failed = DT_OK;
    return dt_error_restore(&v->error);
}

/* Whether calls can be enqueued through the view. */
static dt_result_t check_view(const char *name, struct view *v)
{
    collect_results(v, false);
    return v->failed != DT_OK ? return_failure(v) : dt_context_status(name, v->comm);
}

/* ---- calls ---- */

static bool grow_requests(struct view *v)
{
    size_t room = v->room ? 2 * v->room : 16;
    dt_request_t *requests;

    if (v->n < v->room)
        return true;
    requests = realloc(v->requests, room * sizeof *requests);
    if (!requests)
        return false;
    v->requests = requests;
    v->room = room;
    return true;
}

static dt_result_t enqueue_on_view(struct view *v, const char *name, struct dt_operation *o,
                                   dt_request_t *request)
{
    dt_request_t kept = { 0 };
    dt_result_t r = check_view(name, v);

    if (r == DT_OK && !grow_requests(v))
        r = dt_fail(DT_ERR_NOMEM, "%s: out of memory", name);
    if (r != DT_OK)
        return r;
    o->comm = v->comm;
    o->inflight = &v->inflight;
    r = dt_enqueue(name, o, &v->stream, request ? request : &kept);
    if (r == DT_OK && !request)
        v->requests[v->n++] = kept;
    return r;
}

static dt_result_t find_and_enqueue(const char *name, struct dt_operation *o, dt_request_t *request)
{
    struct view *v;
    dt_result_t r = find_view(name, o->comm, &v);

    if (r != DT_OK)
        return r;
    r = enqueue_on_view(v, name, o, request);
    dt_views_leave();
    return r;
}

dt_result_t dt_view_make(struct dt_operation *o)
{
    return dt_views_have_issued(o->comm) ? find_and_enqueue(o->kind->name, o, NULL)
                                         : dt_operation_make(o);
}

dt_result_t dt_view_start(struct dt_operation *o, dt_request_t *request)
{
    char name[DT_REQUEST_NAME];

    if (!dt_views_have_issued(o->comm) || !request)
        return dt_request_start(o, request);
    *request = (dt_request_t){ 0 };
    return find_and_enqueue(dt_request_name(o, name), o, request);
}

/* ---- making and freeing ---- */

/* Collective. Compares the ranks' calls before they choose an algorithm together. Some drivers make
 * no stream before the GPU is idle: the limit of calls applies to that, too. */
static dt_result_t prepare_communicator(const char *name, dt_comm_t *comm, struct dt_gpu_stream *s)
{
    const struct dt_gpu_order order = { .context = s->context, .device = s->device };
    const struct dt_call call = { .root = -1 };
    struct dt_comm *c;
    dt_result_t r = dt_context_enter(name, comm, &c);

    if (r != DT_OK)
        return r;
    r = dt_comm_match(c, DT_CALL_ON_STREAM, call);
    dt_comm_watch(c, true);
    if (r == DT_OK)
        r = dt_gpu_prepare(c, &order, &s->copies);
    dt_comm_watch(c, false);
    dt_context_leave(c);
    return r;
}

static dt_result_t make_view_with_memory(const char *name, dt_comm_t *comm, void *stream,
                                         dt_comm_t **view)
{
    struct dt_gpu_stream s;
    struct view *v;
    dt_result_t r = dt_cuda_check(name);

    if (r == DT_OK)
        r = dt_context_pass_on(comm, dt_gpu_stream_find(&s, name, stream));
    if (r == DT_OK)
        r = prepare_communicator(name, comm, &s);
    if (r != DT_OK)
        return r;
    v = calloc(1, sizeof *v);
    if (v) {
        *v = (struct view){ .comm = comm, .stream = s };
        v->handle = dt_views_add(comm, v);
    }
    if (!v || !v->handle) {
        free(v);
        return dt_fail(DT_ERR_NOMEM, "%s: out of memory, or there are %d views already", name,
                       DT_VIEWS);
    }
    *view = v->handle;
    return DT_OK;
}

/* Keeps the pinned memory allocated while the view exists. */
static dt_result_t make_view(const char *name, dt_comm_t *comm, void *stream, dt_comm_t **view)
{
    dt_result_t r;

    dt_pinned_hold();
    r = make_view_with_memory(name, comm, stream, view);
    if (r != DT_OK)
        dt_pinned_let_go();
    return r;
}

dt_result_t dt_comm_on_stream(dt_comm_t *comm, void *stream, dt_comm_t **view)
{
    static const char name[] = "dt_comm_on_stream";
    dt_result_t r;

    if (!view)
        return dt_fail(DT_ERR_ARG, "%s: the pointer to the view is NULL", name);
    *view = DT_COMM_NULL;
    r = enter_views(name, comm);
    if (r != DT_OK)
        return r;
    r = make_view(name, comm, stream, view);
    dt_views_leave();
    return r;
}

static void free_view(struct view *v)
{
    dt_inflight_await(&v->inflight);
    dt_views_remove(v->handle);
    dt_gpu_stream_close(&v->stream);
    dt_pinned_let_go();
    free(v->requests);
    free(v);
}

dt_result_t dt_view_free(dt_comm_t *handle)
{
    struct view *v;
    dt_result_t r = find_view("dt_comm_free", handle, &v);

    if (r != DT_OK)
        return r;
    collect_results(v, true);
    r = return_failure(v);
    free_view(v);
    dt_views_leave();
    return r;
}

void dt_view_free_all(void)
{
    dt_comm_t *handle;

    while ((handle = dt_views_any())) {
        struct view *v = dt_views_find(handle);

        collect_results(v, true);
        free_view(v);
    }
}

/* ---- waiting ---- */

/* Waits in its turn: all collectives that were enqueued before have been executed by then. */
static dt_result_t await_stream(const char *name, struct view *v, struct dt_gpu_order *order)
{
    struct dt_cuda_scope scope;
    CUresult result;
    struct dt_comm *c;
    dt_result_t r = dt_context_enter(name, v->comm, &c);

    if (r != DT_OK)
        return r;
    result = dt_cuda_enter(&scope, v->stream.context);
    if (result) {
        r = dt_context_pass_on(v->comm, dt_cuda_fail(name, scope.failed, result));
    } else {
        r = dt_gpu_await_event(c, order->events[0]);
        if (r == DT_OK)
            dt_gpu_stream_make_missing(&v->stream);
        dt_cuda_leave(&scope);
    }
    dt_context_leave(c);
    return r;
}

/* Once the communicator has been stopped, its streams go on without their calls (gate.h), which may
 * learn of the stop later. */
static dt_result_t await_view(const char *name, struct view *v)
{
    static const struct dt_buffer_pair none;
    struct dt_gpu_order order;
    dt_result_t r = dt_gpu_order_take_on(&order, name, &none, &v->stream);

    if (r != DT_OK)
        return dt_context_pass_on(v->comm, r);
    r = await_stream(name, v, &order);
    dt_gpu_order_drop(&order);
    dt_async_await_ends(); /* the stream goes on just before its last call's result is known */
    collect_results(v, false);
    if (v->failed != DT_OK)
        return return_failure(v);
    return r == DT_OK ? dt_context_status(name, v->comm) : r;
}

dt_result_t dt_stream_wait(dt_comm_t *view)
{
    static const char name[] = "dt_stream_wait";
    struct view *v;
    dt_result_t r = find_view(name, view, &v);

    if (r != DT_OK)
        return r;
    r = await_view(name, v);
    dt_views_leave();
    return r;
}
