#include "runtime/context.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/collective.h"
#include "runtime/dtype.h"
#include "runtime/host/reduce.h"
#include "runtime/request.h"
#include "runtime/ticketlock.h"
#include "runtime/wire/env.h"

enum state { BEFORE, READY, AFTER };

static struct {
    _Atomic int state;   /* enum state; any thread may ask for the numbers below */
    _Atomic bool forked; /* this process is a child of the one that called dt_init */
    struct dt_world job; /* its numbers stay readable after dt_finalize */
    struct dt_comm world;
    struct dt_ticketlock lock; /* of world, and of changes of the state */
    struct dt_async async;     /* of world */
} dti_context;

static void in_child(void)
{
    dti_context.forked = true;
}

/* Before the lock is touched: in a child it may be held by a thread that is not there. */
static dt_result_t check_process(const char *name)
{
    if (!dti_context.forked)
        return DT_OK;
    return dt_fail(DT_ERR_STATE,
                   "%s: this process was forked from a rank and is none itself; only the process "
                   "that called dt_init can make this call",
                   name);
}

static dt_result_t check_state(const char *name)
{
    if (dti_context.state == READY)
        return DT_OK;
    return dt_fail(DT_ERR_STATE, "%s was called %s", name,
                   dti_context.state == BEFORE ? "before dt_init" : "after dt_finalize");
}

void dt_context_leave(struct dt_comm *c)
{
    (void)c;
    if (!dt_async_is_inside())
        dt_ticketlock_leave(&dti_context.lock);
}

static dt_result_t check_comm(const char *name, const dt_comm_t *comm)
{
    dt_result_t r = check_process(name);

    if (r == DT_OK && comm != DT_WORLD)
        r = dt_fail(DT_ERR_ARG, "%s: comm must be DT_WORLD", name);
    return r;
}

dt_result_t dt_context_enter(const char *name, const dt_comm_t *comm, struct dt_comm **c)
{
    dt_result_t r = check_comm(name, comm);

    if (r != DT_OK)
        return r;
    if (!dt_async_is_inside())
        dt_ticketlock_take(&dti_context.lock);
    *c = &dti_context.world;
    r = check_state(name);
    if (r != DT_OK)
        dt_context_leave(*c);
    return r;
}

dt_result_t dt_context_hand_in(const char *name, const dt_comm_t *comm, struct dt_task *task)
{
    dt_result_t r = check_comm(name, comm);

    if (r == DT_OK)
        r = check_state(name);
    return r == DT_OK ? dt_async_hand_in(&dti_context.async, task) : r;
}

/* ---- what a device backend asks of its host ---- */

static dt_result_t host_broadcast(void *ctx, void *buf, size_t bytes, int root)
{
    struct dt_comm *c = ctx;
    size_t words = bytes / 4;

    if (bytes % 4)
        return dt_fail(DT_ERR_INTERNAL, "a device backend's message is not in whole words");
    return dt_comm_broadcast(c, buf, words, DT_I32, root);
}

static dt_result_t host_min(void *ctx, int32_t *value)
{
    return dt_comm_all_reduce(ctx, value, value, 1, DT_I32, DT_MIN);
}

static bool host_aborted(void *ctx, int *culprit)
{
    struct dt_comm *c = ctx;
    uint32_t rank = 0;
    bool stopped = dt_hostshm_stopped(&c->shm.map, &rank) != 0;

    *culprit = stopped && rank <= INT32_MAX ? (int)rank : -1;
    return stopped;
}

static dt_result_t host_fail(void *ctx, dt_result_t result, const char *text)
{
    return dt_comm_fail(ctx, dt_fail(result, "%s", text));
}

/* ---- the public calls ---- */

static dt_result_t choose_kernels(void)
{
    const char *isa = getenv(DT_ENV_ISA);
    char choices[64];

    if (dt_reduce_use(isa))
        return DT_OK;
    return dt_fail(DT_ERR_ARG, "dt_init: " DT_ENV_ISA "=%s is none of this processor's: %s", isa,
                   dt_reduce_choices(choices, sizeof choices));
}

static dt_result_t join(struct dt_world *w, struct dt_comm *c)
{
    struct dt_agentenv env;
    dt_result_t r = dt_agentenv_read(&env);

    if (r == DT_OK)
        r = env.fd >= 0 ? dt_world_join(w, &env) : dt_world_alone(w);
    if (r != DT_OK)
        return r;
    r = dt_comm_open(c, w);
    if (r != DT_OK)
        dt_world_leave(w);
    return r;
}

static dt_result_t init(void)
{
    struct dt_comm *c = &dti_context.world;
    dt_result_t r = choose_kernels();

    if (r == DT_OK)
        r = join(&dti_context.job, c);
    if (r != DT_OK)
        return r;
    if (pthread_atfork(NULL, NULL, in_child) != 0) {
        dt_comm_close(c);
        dt_world_leave(&dti_context.job);
        return dt_fail(DT_ERR_NOMEM, "dt_init: out of memory");
    }
    c->device_host = (struct dt_device_host){ .rank = c->rank,
                                              .size = c->size,
                                              .ctx = c,
                                              .broadcast = host_broadcast,
                                              .min = host_min,
                                              .aborted = host_aborted,
                                              .fail = host_fail };
    dt_async_open(&dti_context.async, &dti_context.lock);
    dti_context.state = READY;
    return DT_OK;
}

dt_result_t dt_init(void)
{
    dt_result_t r = check_process("dt_init");

    if (r != DT_OK)
        return r;
    dt_ticketlock_take(&dti_context.lock);
    if (dti_context.state == BEFORE)
        r = init();
    else
        r = dt_fail(DT_ERR_STATE, "dt_init was called %s",
                    dti_context.state == READY ? "twice" : "after dt_finalize");
    dt_ticketlock_leave(&dti_context.lock);
    return r;
}

dt_result_t dt_finalize(void)
{
    dt_result_t r = check_process("dt_finalize");

    if (r != DT_OK)
        return r;
    if (!dt_ticketlock_try(&dti_context.lock))
        return dt_fail(DT_ERR_STATE, "dt_finalize: another thread is inside a dtrun call, or a "
                                     "request or bucket is not done; wait for it first");
    r = check_state("dt_finalize");
    if (r == DT_OK) {
        dt_async_close(&dti_context.async);
        r = dt_comm_close(&dti_context.world);
        dt_world_leave(&dti_context.job);
        dti_context.state = AFTER;
    }
    dt_ticketlock_leave(&dti_context.lock);
    return r;
}

int dt_rank(void)
{
    return dti_context.state == BEFORE ? -1 : dti_context.job.rank;
}

int dt_size(void)
{
    return dti_context.state == BEFORE ? -1 : dti_context.job.size;
}

int dt_local_rank(void)
{
    return dti_context.state == BEFORE ? -1 : dti_context.job.local_rank;
}

int dt_local_size(void)
{
    return dti_context.state == BEFORE ? -1 : dti_context.job.local_size;
}

int dt_generation(void)
{
    return dti_context.state == BEFORE ? -1 : (int)dti_context.job.generation;
}

void dt_step(int64_t step)
{
    struct dt_world *w = &dti_context.job;

    if (dti_context.state != READY || dti_context.forked)
        return;
    struct dt_hostshm_rank *me = &w->shm.ranks[w->local_rank];
    atomic_store_explicit(&me->step, step, memory_order_relaxed);
    int64_t watched = atomic_load_explicit(&me->watch_step, memory_order_relaxed);
    if (step >= watched && watched != DT_HOSTSHM_NO_STEP)
        dt_agentlink_hold(&w->agent, step);
}

static bool overlap(const void *a, const void *b, size_t bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return x < y ? y - x < bytes : x - y < bytes;
}

static dt_result_t check_buffer(const char *name, const void *buf, size_t count, dt_dtype_t dtype)
{
    size_t size = dt_dtype_size(dtype);

    if (!size)
        return dt_fail(DT_ERR_ARG, "%s: %d is no dt_dtype_t", name, (int)dtype);
    if (count > PTRDIFF_MAX / size)
        return dt_fail(DT_ERR_ARG, "%s: count %zu is larger than memory", name, count);
    if (count && (!buf || buf == DT_IN_PLACE))
        return dt_fail(DT_ERR_ARG, "%s: no buffer was given", name);
    return DT_OK;
}

static dt_result_t check_all_reduce(const void *in, const void *out, size_t count, dt_dtype_t dtype,
                                    dt_op_t op, enum dt_memory *memory)
{
    dt_result_t r = check_buffer("dt_all_reduce", out, count, dtype);

    if (r != DT_OK)
        return r;
    if ((unsigned)op >= DT_OP_MAX)
        return dt_fail(DT_ERR_ARG, "dt_all_reduce: %d is no dt_op_t", (int)op);
    if (!dt_op_applies(op, dtype))
        return dt_fail(DT_ERR_ARG, "dt_all_reduce: %s folds the bits of integers, not %s",
                       dt_op_name(op), dt_dtype_name(dtype));
    if (count && !in)
        return dt_fail(DT_ERR_ARG, "dt_all_reduce: no input was given (DT_IN_PLACE to use out)");
    if (in != out && overlap(in, out, count * dt_dtype_size(dtype)))
        return dt_fail(DT_ERR_ARG, "dt_all_reduce: in and out overlap in part");
    *memory = count ? dt_device_memory(in, out) : DT_MEMORY_HOST;
    if (*memory == DT_MEMORY_MIXED)
        return dt_fail(DT_ERR_ARG, "dt_all_reduce: one of in and out is GPU memory, the other is "
                                   "not");
    return DT_OK;
}

dt_result_t dt_all_reduce(dt_comm_t *comm, const void *in, void *out, size_t count,
                          dt_dtype_t dtype, dt_op_t op)
{
    const void *from = in == DT_IN_PLACE ? out : in;
    enum dt_memory memory;
    struct dt_comm *c;
    dt_result_t r = check_all_reduce(from, out, count, dtype, op, &memory);

    if (r == DT_OK)
        r = dt_context_enter("dt_all_reduce", comm, &c);
    if (r != DT_OK)
        return r;
    if (memory == DT_MEMORY_DEVICE) {
        r = dt_comm_match(c, DT_CALL_ALL_REDUCE, count, dtype, op, -1);
        if (r == DT_OK)
            r = dt_device_all_reduce(&c->device, &c->device_host, from, out, count, dtype, op);
    } else {
        r = dt_comm_all_reduce(c, from, out, count, dtype, op);
    }
    dt_context_leave(c);
    return r;
}

static dt_result_t make_all_reduce(const struct dt_request_call *a)
{
    return dt_all_reduce(a->comm, a->in, a->out, a->count, a->dtype, a->op);
}

dt_result_t dt_iall_reduce(dt_comm_t *comm, const void *in, void *out, size_t count,
                           dt_dtype_t dtype, dt_op_t op, dt_request_t *request)
{
    const struct dt_request_call call = { .make = make_all_reduce,
                                          .comm = comm,
                                          .in = in,
                                          .out = out,
                                          .count = count,
                                          .dtype = dtype,
                                          .op = op };
    enum dt_memory memory;
    dt_result_t r = check_all_reduce(in == DT_IN_PLACE ? out : in, out, count, dtype, op, &memory);

    return r == DT_OK ? dt_request_start("dt_iall_reduce", &call, request) : r;
}

dt_result_t dt_broadcast(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype, int root)
{
    struct dt_comm *c;
    dt_result_t r = check_buffer("dt_broadcast", buf, count, dtype);

    if (r == DT_OK)
        r = dt_context_enter("dt_broadcast", comm, &c);
    if (r != DT_OK)
        return r;
    if (root < 0 || root >= c->size) {
        r = dt_fail(DT_ERR_ARG, "dt_broadcast: root %d is not one of the %d ranks", root, c->size);
    } else if (count && dt_device_memory(buf, buf) == DT_MEMORY_DEVICE) {
        r = dt_comm_match(c, DT_CALL_BROADCAST, count, dtype, DT_SUM, root);
        if (r == DT_OK)
            r = dt_device_broadcast(&c->device, &c->device_host, buf, count, dtype, root);
    } else {
        r = dt_comm_broadcast(c, buf, count, dtype, root);
    }
    dt_context_leave(c);
    return r;
}

static dt_result_t make_broadcast(const struct dt_request_call *a)
{
    return dt_broadcast(a->comm, a->out, a->count, a->dtype, a->root);
}

dt_result_t dt_ibroadcast(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype, int root,
                          dt_request_t *request)
{
    const struct dt_request_call call = { .make = make_broadcast,
                                          .comm = comm,
                                          .out = buf,
                                          .count = count,
                                          .dtype = dtype,
                                          .root = root };
    dt_result_t r = check_buffer("dt_ibroadcast", buf, count, dtype);

    return r == DT_OK ? dt_request_start("dt_ibroadcast", &call, request) : r;
}

dt_result_t dt_barrier(dt_comm_t *comm)
{
    struct dt_comm *c;
    dt_result_t r = dt_context_enter("dt_barrier", comm, &c);

    if (r != DT_OK)
        return r;
    r = dt_comm_meet(c, DT_CALL_BARRIER);
    if (r == DT_OK && c->device.state)
        r = dt_device_barrier(&c->device);
    dt_context_leave(c);
    return r;
}
