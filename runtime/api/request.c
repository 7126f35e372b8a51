#include "runtime/api/request.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/api/context.h"
#include "runtime/comm/async.h"
#include "runtime/comm/error_report.h"
#include "runtime/comm/slots.h"
#include "runtime/gpu/launchorder.h"

struct request {
    struct dt_task task; /* first: the task is cast to its request */
    struct dt_operation operation;
    struct dt_unlaunched unlaunched;
    size_t *counts; /* a copy of the operation's counts */
    uint32_t uses;  /* odd while the request may be waited for */
    uint32_t next_free;
};

enum { NONE = UINT32_MAX };
/* The longest wait of dt_wait_for: 30 years, so that its sums do not overflow. */
enum { WAIT_MAX_S = 1000 * 1000 * 1000 };

/* Requests never move, because channels and threads point to their tasks. */
static struct {
    pthread_mutex_t mutex;
    struct request **all;
    uint32_t n;
    uint32_t room;
    uint32_t free; /* the first free one */
} dti_requests = { .mutex = PTHREAD_MUTEX_INITIALIZER, .free = NONE };

static bool grow_requests(void)
{
    uint32_t room = dti_requests.room ? dti_requests.room * 2 : 16;
    struct request **all = realloc(dti_requests.all, room * sizeof *all);

    if (!all)
        return false;
    dti_requests.all = all;
    dti_requests.room = room;
    return true;
}

/* The index of a free request; NONE: out of memory. */
static uint32_t alloc_request(void)
{
    uint32_t i = dti_requests.free;

    if (i != NONE) {
        dti_requests.free = dti_requests.all[i]->next_free;
    } else if (dti_requests.n < dti_requests.room || grow_requests()) {
        struct request *fresh = calloc(1, sizeof *fresh);

        if (!fresh)
            return NONE;
        i = dti_requests.n++;
        dti_requests.all[i] = fresh;
    } else {
        return NONE;
    }
    dti_requests.all[i]->uses++;
    return i;
}

static void free_request(uint32_t i)
{
    pthread_mutex_lock(&dti_requests.mutex);
    free(dti_requests.all[i]->counts);
    dti_requests.all[i]->counts = NULL;
    dti_requests.all[i]->next_free = dti_requests.free;
    dti_requests.free = i;
    pthread_mutex_unlock(&dti_requests.mutex);
}

/* Returns NULL if the request was waited for already, or never existed. After detach no other
 * thread can find it. */
static struct request *find_request(dt_request_t request, uint32_t *i, bool detach)
{
    uint32_t uses = (uint32_t)(request.id >> 32);
    struct request *found = NULL;

    *i = (uint32_t)request.id - 1;
    pthread_mutex_lock(&dti_requests.mutex);
    if (*i < dti_requests.n && dti_requests.all[*i]->uses == uses && uses % 2 == 1) {
        found = dti_requests.all[*i];
        found->uses += detach;
    }
    pthread_mutex_unlock(&dti_requests.mutex);
    return found;
}

static dt_result_t run_request(struct dt_task *task)
{
    struct request *q = (struct request *)task;
    dt_result_t r = dt_operation_run(&q->operation, task);

    dt_unlaunched_end(&q->unlaunched);
    return r;
}

/* The program may reuse its arrays of counts when the call returns, so they are copied. */
static bool copy_counts(struct request *q, size_t n)
{
    struct dt_blocks *of[] = { &q->operation.given, &q->operation.taken };
    size_t *at;

    if (!of[0]->counts && !of[1]->counts)
        return true;
    q->counts = at = calloc(2 * n, sizeof *at);
    for (int i = 0; at && i < 2; i++, at += n) {
        if (of[i]->counts)
            of[i]->counts = memcpy(at, of[i]->counts, n * sizeof *at);
    }
    return q->counts != NULL;
}

dt_result_t dt_request_reserve(const char *name, dt_request_t *request)
{
    uint32_t i;

    pthread_mutex_lock(&dti_requests.mutex);
    i = alloc_request();
    *request =
        (dt_request_t){ i == NONE ? 0 : (uint64_t)dti_requests.all[i]->uses << 32 | (i + 1) };
    pthread_mutex_unlock(&dti_requests.mutex);
    return i == NONE ? dt_fail(DT_ERR_NOMEM, "%s: out of memory", name) : DT_OK;
}

void dt_request_release(dt_request_t *request)
{
    uint32_t i;

    if (find_request(*request, &i, true))
        free_request(i);
    *request = (dt_request_t){ 0 };
}

/* The operation outlives the program's call, so the request has copies of what is the program's. */
dt_result_t dt_request_submit_reserved(const char *name, const struct dt_operation *o, int size,
                                       dt_request_t *request)
{
    uint32_t i;
    struct request *q = find_request(*request, &i, false);
    dt_result_t r;

    q->operation = *o;
    q->task.run = run_request;
    q->operation.unlaunched = &q->unlaunched;
    q->task.ahead = o->direct != NULL;
    if (o->memory == DT_MEMORY_DEVICE && !o->direct && !dt_operation_is_p2p(o))
        dt_unlaunched_begin(&q->unlaunched);
    r = copy_counts(q, (size_t)size) ? dt_operation_submit(name, o, &q->task)
                                     : dt_fail(DT_ERR_NOMEM, "%s: out of memory", name);
    if (r == DT_OK)
        return r;
    dt_unlaunched_end(&q->unlaunched);
    dt_request_release(request);
    return r;
}

dt_result_t dt_request_submit(const char *name, const struct dt_operation *o, int size,
                              dt_request_t *request)
{
    dt_result_t r = dt_request_reserve(name, request);

    return r == DT_OK ? dt_request_submit_reserved(name, o, size, request) : r;
}

/* Errors name the call that the program made. */
const char *dt_request_name(const struct dt_operation *o, char name[DT_REQUEST_NAME])
{
    snprintf(name, DT_REQUEST_NAME, "dt_i%s", o->kind->name + strlen("dt_"));
    return name;
}

dt_result_t dt_request_start(struct dt_operation *o, dt_request_t *request)
{
    char name[DT_REQUEST_NAME];
    dt_result_t r;
    int size;

    dt_request_name(o, name);
    if (!request)
        return dt_error_report_refusal(
            NULL, 0, o->kind->call,
            dt_fail(DT_ERR_ARG, "%s: the pointer to the request is NULL", name));
    *request = (dt_request_t){ 0 };
    r = dt_operation_prepare_as(o, name, &size);
    if (r != DT_OK)
        return r;
    r = dt_request_submit(name, o, size, request);
    if (r == DT_OK)
        return r;
    dt_gpu_order_drop(&o->order);
    return dt_operation_refuse(o, r);
}

static dt_result_t check_and_find(const char *name, const dt_request_t *request, bool detach,
                                  struct request **found, uint32_t *i)
{
    dt_result_t r = dt_context_check_process(name);

    *found = NULL;
    if (r != DT_OK)
        return r;
    if (!request)
        return dt_fail(DT_ERR_ARG, "%s: no request was given", name);
    if (request->id)
        *found = find_request(*request, i, detach);
    if (request->id && !*found)
        return dt_fail(DT_ERR_ARG, "%s: this is not a request, or one that was already waited for",
                       name);
    return DT_OK;
}

/* ---- sends and receives: the thread that waits executes what is parked on the channel ---- */

struct request_visit {
    struct dt_task *task;
    struct dt_p2p_watcher watch;
    bool taken;
    dt_result_t result;
};

static void take_parked_and_watch(struct dt_comm *c, void *arg)
{
    struct request_visit *v = arg;

    v->taken = dt_p2p_take_parked(v->task->channel, v->task, false);
    dt_p2p_watch(c, &v->watch);
}

static void take_completed(struct dt_comm *c, void *arg)
{
    struct request_visit *v = arg;

    (void)c;
    v->taken = dt_p2p_take_parked(v->task->channel, v->task, true);
}

/* A wait with a time limit leaves the call to the channel's thread. */
static void take_completed_or_unpark(struct dt_comm *c, void *arg)
{
    struct request_visit *v = arg;

    take_completed(c, arg);
    if (v->task->channel->parked != v->task || dt_p2p_unpark(v->task->channel) == DT_OK)
        return;
    v->result =
        dt_error_report_refusal(c->world, c->id, v->watch.sending ? DT_CALL_SEND : DT_CALL_RECV,
                                dt_context_fail_thread("dt_wait_for"));
}

/* Does nothing if the request is done. */
static void visit_channel(struct request *q, struct request_visit *v,
                          void (*what)(struct dt_comm *c, void *arg))
{
    const struct dt_operation *o = &q->operation;

    *v = (struct request_visit){ .task = &q->task,
                                 .watch = { .peer = o->root,
                                            .sending = o->kind->call == DT_CALL_SEND,
                                            .ticket = q->task.number,
                                            .limit_ms = q->task.limit_ms } };
    if (!o->kind->make && !dt_task_is_done(&q->task))
        dt_slot_visit(o->comm, what, v);
    if (v->taken)
        dt_p2p_run(&q->task);
}

/* A collective counts as waiting from when it begins. A send or receive counts only when a thread
 * waits for it: the program may have posted it long in advance. */
static dt_result_t await_request(struct request *q)
{
    struct request_visit v;
    dt_result_t result;

    visit_channel(q, &v, take_parked_and_watch);
    dt_slot_wake(q->operation.comm);
    result = dt_task_await(&q->task);
    dt_p2p_unwatch(&v.watch);
    return result;
}

static bool request_is_done(struct request *q)
{
    struct request_visit v;

    visit_channel(q, &v, take_completed);
    return dt_task_is_done(&q->task);
}

dt_result_t dt_wait(dt_request_t *request)
{
    struct request *found;
    uint32_t i;
    dt_result_t r = check_and_find("dt_wait", request, true, &found, &i);

    if (r != DT_OK || !found)
        return r;
    r = await_request(found);
    dt_slot_settle(found->operation.comm);
    *request = (dt_request_t){ 0 };
    free_request(i);
    return r;
}

/* A program that tests in a loop must not keep the CPU from the thread that makes the call, or from
 * another rank. */
static bool yield_unless(bool done)
{
    if (!done)
        sched_yield();
    return done;
}

dt_result_t dt_test(dt_request_t *request, int *done)
{
    struct request *found;
    uint32_t i;
    dt_result_t r = check_and_find("dt_test", request, false, &found, &i);

    if (r == DT_OK && !done)
        r = dt_fail(DT_ERR_ARG, "dt_test: the pointer to the answer is NULL");
    if (r != DT_OK)
        return r;
    *done = yield_unless(!found || request_is_done(found));
    return found && *done ? dt_wait(request) : DT_OK;
}

dt_result_t dt_wait_for(dt_request_t *request, double seconds, int *done)
{
    struct request *found;
    struct request_visit v;
    uint32_t i;
    dt_result_t r = check_and_find("dt_wait_for", request, false, &found, &i);

    if (r == DT_OK && !done)
        r = dt_fail(DT_ERR_ARG, "dt_wait_for: the pointer to the answer is NULL");
    if (r == DT_OK && !(seconds >= 0 && seconds <= WAIT_MAX_S))
        r = dt_fail(DT_ERR_ARG, "dt_wait_for: %.10g is not a number of seconds from 0 to %d",
                    seconds, WAIT_MAX_S);
    if (r != DT_OK)
        return r;
    if (found) {
        visit_channel(found, &v, seconds > 0 ? take_completed_or_unpark : take_completed);
        if (v.result != DT_OK)
            return v.result;
    }
    *done = yield_unless(!found || dt_task_await_for(&found->task, (uint64_t)(seconds * 1e9)));
    return found && *done ? dt_wait(request) : DT_OK;
}

/* ---- waiting for any of several ---- */

/* Like a wait for one request, but the channel's own thread executes what is parked. */
static void unpark_and_watch(struct dt_comm *c, void *arg)
{
    struct request_visit *v = arg;

    take_completed_or_unpark(c, v);
    if (!v->taken && v->result == DT_OK)
        dt_p2p_watch(c, &v->watch);
}

/* Stores the index of the first request that is done. If none is, stores n, and in *open how many
 * of them are not null. */
static dt_result_t find_done_request(dt_request_t *requests, size_t n, size_t *index, size_t *open)
{
    *index = n;
    *open = 0;
    for (size_t i = 0; i < n; i++) {
        struct request *found;
        uint32_t at;
        dt_result_t r = check_and_find("dt_wait_any", &requests[i], false, &found, &at);

        if (r != DT_OK)
            return r;
        *open += found != NULL;
        if (!found || !request_is_done(found))
            continue;
        *index = i;
        return DT_OK;
    }
    return DT_OK;
}

static dt_result_t sleep_until_any(dt_request_t *requests, size_t n, size_t *index)
{
    dt_result_t r;
    size_t open;

    dt_tasks_begin_any();
    for (;;) {
        uint32_t seen = dt_tasks_done();

        r = find_done_request(requests, n, index, &open);
        if (r != DT_OK || *index < n)
            break;
        dt_tasks_await_any(seen);
    }
    dt_tasks_end_any();
    return r;
}

/* No request is done yet. */
static dt_result_t await_any_request(dt_request_t *requests, size_t n, size_t *index)
{
    struct request_visit *visits = calloc(n, sizeof *visits);
    dt_result_t r = DT_OK;

    if (!visits)
        return dt_fail(DT_ERR_NOMEM, "dt_wait_any: out of memory");
    for (size_t i = 0; r == DT_OK && i < n; i++) {
        struct request *found;
        uint32_t at;

        r = check_and_find("dt_wait_any", &requests[i], false, &found, &at);
        if (r == DT_OK && found)
            visit_channel(found, &visits[i], unpark_and_watch);
        if (r == DT_OK)
            r = visits[i].result;
    }
    if (r == DT_OK)
        r = sleep_until_any(requests, n, index);
    for (size_t i = 0; i < n; i++)
        dt_p2p_unwatch(&visits[i].watch);
    free(visits);
    return r;
}

dt_result_t dt_wait_any(dt_request_t *requests, size_t n, size_t *index)
{
    dt_result_t r = dt_context_check_process("dt_wait_any");
    size_t open;

    if (r != DT_OK)
        return r;
    if ((n && !requests) || !index)
        return dt_fail(DT_ERR_ARG, "dt_wait_any: no %s",
                       index ? "requests were given" : "place for the index was given");
    r = find_done_request(requests, n, index, &open);
    if (r == DT_OK && *index == n && open)
        r = await_any_request(requests, n, index);
    return r == DT_OK && *index < n ? dt_wait(&requests[*index]) : r;
}

/* ---- waiting for all ---- */

dt_result_t dt_wait_all(dt_request_t *requests, size_t n)
{
    dt_result_t first = DT_OK;
    dt_error_info_t error;

    if (n && !requests)
        return dt_fail(DT_ERR_ARG, "dt_wait_all: no requests were given");
    for (size_t i = 0; i < n; i++) {
        dt_result_t r = dt_wait(&requests[i]);

        if (r == DT_OK || first != DT_OK)
            continue;
        first = r;
        dt_error_save(&error);
    }
    return first == DT_OK ? DT_OK : dt_error_restore(&error);
}
