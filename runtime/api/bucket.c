/* Buckets: combine many small all-reduces into a few large ones while the program computes.
 *
 * A bucket adds pushed buffers to a task (bucket_task.h). When the next buffer is of another kind,
 * or would make the task larger than the bucket, it sends the task to the communicator's thread and
 * begins another. A buffer that is as large as the bucket, or in managed memory, gets a task of its
 * own. */
#include <stdlib.h>

#include "runtime/api/allreduce.h"
#include "runtime/api/bucket_task.h"
#include "runtime/api/checks.h"
#include "runtime/api/context.h"
#include "runtime/api/operation.h"
#include "runtime/comm/error_report.h"
#include "runtime/comm/slots.h"
#include "runtime/kernels/dtype.h"

enum { DEFAULT_BYTES = 1024 * 1024 };

/* Where calls on the bucket fail, for dt_last_error_info. */
struct owner {
    const struct dt_world *world; /* NULL: there is no such communicator */
    uint64_t comm;
};

struct dt_bucket {
    struct dt_bucket_common common;
    struct owner owner;
    struct dt_bucket_task *filling; /* the task that is being filled, or NULL */
    struct dt_bucket_task *first;   /* tasks that were sent, in order */
    struct dt_bucket_task *last;
    struct dt_bucket_task *spare; /* empty tasks, for reuse */
    CUcontext context;            /* of the buffers in fused tasks; NULL: there was none yet */
    dt_result_t failed;           /* the first failure */
    dt_error_info_t error;
};

static dt_result_t keep_failure(struct dt_bucket *b, dt_result_t r)
{
    if (r != DT_OK && b->failed == DT_OK) {
        b->failed = r;
        dt_error_save(&b->error);
    }
    return r;
}

/* Waits for the oldest task that was sent, and removes it. */
static void collect_oldest(struct dt_bucket *b)
{
    struct dt_bucket_task *t = b->first;
    dt_result_t r = dt_task_await(&t->task);

    dt_slot_settle(b->common.comm);
    b->first = t->next;
    keep_failure(b, r);
    if (dt_bucket_task_reuse(t)) {
        t->next = b->spare;
        b->spare = t;
    } else {
        dt_bucket_task_free(t);
    }
}

/* Returns an empty task, or NULL if memory has run out. */
static struct dt_bucket_task *get_task(struct dt_bucket *b, enum dt_bucket_kind kind)
{
    struct dt_bucket_task *t = b->spare;

    if (!t || t->kind != kind)
        return dt_bucket_task_create(&b->common, kind);
    b->spare = t->next;
    t->next = NULL;
    return t;
}

static dt_result_t report_refusal(const struct owner *o, dt_result_t r)
{
    return dt_error_report_refusal(o->world, o->comm, DT_CALL_ALL_REDUCE, r);
}

/* name is the public call's, here and below. */
static dt_result_t submit_task(const char *name, struct dt_bucket *b, struct dt_bucket_task *t)
{
    dt_result_t r;

    dt_bucket_task_begin(t);
    r = dt_context_submit(name, b->common.comm, &t->task);
    if (r != DT_OK) {
        dt_bucket_task_cancel(t);
        return report_refusal(&b->owner, r);
    }
    if (b->first)
        b->last->next = t;
    else
        b->first = t;
    b->last = t;
    return DT_OK;
}

/* Sends the task that is being filled. If it is empty, there was no memory for its first buffer,
 * and no other rank waits for it. */
static dt_result_t flush_bucket(const char *name, struct dt_bucket *b)
{
    dt_result_t r = DT_OK;

    if (b->filling && b->filling->n > 0)
        r = submit_task(name, b, b->filling);
    else
        dt_bucket_task_free(b->filling);
    if (r == DT_OK)
        b->filling = NULL;
    return r;
}

static const char pushing[] = "dt_bucket_push";

static dt_result_t out_of_memory(const struct dt_bucket *b)
{
    return report_refusal(&b->owner, dt_fail(DT_ERR_NOMEM, "%s: out of memory", pushing));
}

static dt_result_t push_alone(struct dt_bucket *b, const struct dt_operation *o)
{
    struct dt_bucket_task *t = get_task(b, DT_BUCKET_ALONE);
    dt_result_t r;

    if (!t || !dt_bucket_task_add_operation(t, o)) {
        dt_bucket_task_free(t);
        return out_of_memory(b);
    }
    r = flush_bucket(pushing, b);
    if (r == DT_OK)
        r = submit_task(pushing, b, t);
    if (r == DT_OK)
        return r;
    dt_bucket_task_remove_operation(t);
    dt_bucket_task_free(t);
    return r;
}

/* Makes sure that a task of this kind is being filled and has room for this many bytes more. */
static dt_result_t make_room(struct dt_bucket *b, size_t bytes, enum dt_bucket_kind kind)
{
    dt_result_t r = DT_OK;

    if (b->filling && (b->filling->kind != kind || b->filling->bytes + bytes > b->common.bytes))
        r = flush_bucket(pushing, b);
    if (r == DT_OK && !b->filling)
        b->filling = get_task(b, kind);
    return r == DT_OK && !b->filling ? out_of_memory(b) : r;
}

static dt_result_t push_copied(struct dt_bucket *b, void *buf, size_t bytes)
{
    dt_result_t r = make_room(b, bytes, DT_BUCKET_COPIED);

    return r != DT_OK || dt_bucket_task_add_buffer(b->filling, buf, bytes) ? r : out_of_memory(b);
}

/* Does nothing if the communicator has failed: its GPU work may never end, and the driver might
 * wait for that. */
static void open_fuse(struct dt_bucket *b, const struct dt_gpu_order *order)
{
    if (!b->common.fuse.opened && dt_context_status(pushing, b->common.comm) == DT_OK)
        dt_gpu_fuse_open(&b->common.fuse, order, b->common.bytes);
}

static dt_result_t check_context(struct dt_bucket *b, const struct dt_gpu_order *order)
{
    if (!b->context)
        b->context = order->context;
    if (b->context == order->context)
        return DT_OK;
    return report_refusal(&b->owner,
                          dt_fail(DT_ERR_ARG,
                                  "%s: the buffer belongs to another device or context than "
                                  "earlier buffers of this bucket: use a bucket for each",
                                  pushing));
}

static dt_result_t push_fused(struct dt_bucket *b, const struct dt_operation *o, size_t bytes)
{
    dt_result_t r = check_context(b, &o->order);

    if (r == DT_OK)
        r = make_room(b, bytes, DT_BUCKET_FUSED);
    if (r == DT_OK && !dt_bucket_task_add_operation(b->filling, o))
        r = out_of_memory(b);
    if (r == DT_OK && b->filling->n > 1)
        open_fuse(b, &o->order);
    return r;
}

static dt_result_t push_in_place(struct dt_bucket *b, void *buf, size_t count, size_t bytes)
{
    struct dt_operation o =
        dt_allreduce_in_place(b->common.comm, buf, count, b->common.dtype, b->common.op);
    dt_result_t r = dt_operation_prepare(&o);

    if (r != DT_OK)
        return r;
    r = o.memory == DT_MEMORY_DEVICE && bytes < b->common.bytes ? push_fused(b, &o, bytes)
                                                                : push_alone(b, &o);
    if (r != DT_OK)
        dt_gpu_order_drop(&o.order);
    return r;
}

/* In a forked child the bucket's memory is shared with the rank, and no thread executes its
 * calls. */
static dt_result_t check_bucket(const char *name, const struct dt_bucket *b)
{
    static const struct owner nobody;

    if (!b)
        return report_refusal(&nobody, dt_fail(DT_ERR_ARG, "%s: no bucket was given", name));
    return report_refusal(&b->owner, dt_context_check_process(name));
}

static void visit_owner(struct dt_comm *c, void *owner)
{
    *(struct owner *)owner = (struct owner){ c->world, c->id };
}

/* Refuses a buffer that cannot be reduced any more. Otherwise only dt_bucket_wait would report
 * that. */
static dt_result_t check_push(struct dt_bucket *b, const void *buf, size_t count)
{
    dt_result_t r = check_bucket(pushing, b);
    struct owner owner;

    if (r == DT_OK) {
        r = dt_context_visit(pushing, b->common.comm, visit_owner, &owner);
        keep_failure(b, report_refusal(&b->owner, r));
    }
    if (r == DT_OK)
        r = report_refusal(&b->owner, dt_check_buffer(pushing, buf, count, b->common.dtype));
    if (r != DT_OK)
        return r;
    return b->failed == DT_OK ? DT_OK : dt_error_restore(&b->error);
}

dt_result_t dt_bucket_push(dt_bucket_t *b, void *buf, size_t count)
{
    dt_result_t r = check_push(b, buf, count);
    size_t bytes;

    if (r != DT_OK || count == 0)
        return r;
    while (b->first && dt_task_is_done(&b->first->task))
        collect_oldest(b);
    bytes = count * dt_dtype_size(b->common.dtype);
    if (bytes >= b->common.bytes || dt_memory_of(buf, buf) != DT_MEMORY_HOST)
        r = push_in_place(b, buf, count, bytes);
    else
        r = push_copied(b, buf, bytes);
    /* A program may look only at the result of dt_bucket_wait, and must not take a buffer for
     * reduced that was not added. */
    return r == DT_ERR_ARG ? r : keep_failure(b, r);
}

static dt_result_t flush_and_wait(const char *name, struct dt_bucket *b)
{
    keep_failure(b, flush_bucket(name, b));
    while (b->first)
        collect_oldest(b);
    return b->failed == DT_OK ? DT_OK : dt_error_restore(&b->error);
}

dt_result_t dt_bucket_wait(dt_bucket_t *b)
{
    dt_result_t r = check_bucket("dt_bucket_wait", b);

    return r == DT_OK ? flush_and_wait("dt_bucket_wait", b) : r;
}

static dt_result_t create_bucket(dt_comm_t *comm, size_t bytes, dt_dtype_t dtype, dt_op_t op,
                                 struct owner *owner, dt_bucket_t **bucket)
{
    static const char name[] = "dt_bucket_create";
    dt_result_t r = dt_context_visit(name, comm, visit_owner, owner);

    if (r == DT_OK)
        r = dt_check_buffer(name, NULL, 0, dtype);
    if (r == DT_OK)
        r = dt_check_op(name, dtype, op);
    if (r != DT_OK)
        return r;
    *bucket = calloc(1, sizeof **bucket);
    if (!*bucket)
        return dt_fail(DT_ERR_NOMEM, "%s: out of memory", name);
    bytes = bytes ? bytes : DEFAULT_BYTES;
    **bucket = (struct dt_bucket){ .common = { .comm = comm,
                                               .bytes = bytes,
                                               .dtype = dtype,
                                               .op = op,
                                               .slots = { .bytes = bytes } },
                                   .owner = *owner };
    return DT_OK;
}

dt_result_t dt_bucket_create(dt_comm_t *comm, size_t bytes, dt_dtype_t dtype, dt_op_t op,
                             dt_bucket_t **bucket)
{
    struct owner owner = { 0 };

    if (!bucket)
        return report_refusal(
            &owner, dt_fail(DT_ERR_ARG, "dt_bucket_create: the pointer to the bucket is NULL"));
    *bucket = NULL;
    return report_refusal(&owner, create_bucket(comm, bytes, dtype, op, &owner, bucket));
}

static void free_spare_tasks(struct dt_bucket *b)
{
    while (b->spare) {
        struct dt_bucket_task *t = b->spare;

        b->spare = t->next;
        dt_bucket_task_free(t);
    }
}

dt_result_t dt_bucket_free(dt_bucket_t *b)
{
    dt_result_t r;

    if (!b)
        return DT_OK;
    r = check_bucket("dt_bucket_free", b);
    if (r != DT_OK)
        return r;
    r = flush_and_wait("dt_bucket_free", b);
    free_spare_tasks(b);
    dt_bucket_task_free(b->filling);
    dt_bucket_slots_free(&b->common.slots);
    dt_gpu_fuse_close(&b->common.fuse);
    free(b);
    return r;
}
