/* Buckets: combine many small all-reduces into a few large ones while the program computes.
 *
 * A pushed buffer is copied behind the ones before it until the bucket is full. Then the bucket is
 * sent as one task, and the next one is filled. The communicator's thread reduces it and copies the
 * results back. A buffer that fills a bucket by itself is reduced in place.
 *
 * Of buffers in GPU memory only the place in the program's GPU work is noted; the thread makes the
 * copies (gpu/fuse.h). A bucket that is sent has buffers of one kind of memory.
 *
 * If all ranks share a host, a bucket that is in use for a while gets memory that all ranks can
 * reach (dt_mem_alloc). The allocation is a collective call: the thread makes it before the same
 * bucket on all ranks. Ordinary memory is used before that, when more buckets are under way than
 * this memory holds, and when it cannot be allocated. */
#include <stdlib.h>

#include "runtime/api/allreduce.h"
#include "runtime/api/checks.h"
#include "runtime/api/context.h"
#include "runtime/base/copy.h"
#include "runtime/base/reduceoptions.h"
#include "runtime/comm/collective.h"
#include "runtime/comm/error_report.h"
#include "runtime/comm/slots.h"
#include "runtime/gpu/fuse.h"
#include "runtime/kernels/dtype.h"

enum {
    DEFAULT_CAP = 1024 * 1024,
    SETTLED = 8, /* shared memory is allocated when a bucket is sent for this many-th time */
    /* What the shared memory holds at most: buckets, bytes for each rank, and bytes for all ranks,
     * since every rank maps all of it. */
    SLOTS = 8,
    RANK_BYTES_MAX = 64 * 1024 * 1024,
    ALL_BYTES_MAX = 8 * RANK_BYTES_MAX,
};

struct bucket_buffer {
    void *buf;
    size_t bytes;
};

struct bucket_task {
    struct dt_task task; /* first: the task is cast to its bucket_task */
    struct bucket_task *next;
    struct dt_bucket *bucket;
    uint8_t *data; /* the buffers, one after the other; NULL: these are operations */
    struct dt_operation *operations; /* in place; if there are several, all in GPU memory */
    struct bucket_buffer *buffers;
    size_t bytes;
    size_t n;
    size_t room;
};

/* Where calls on the bucket fail, for dt_last_error_info. */
struct owner {
    const struct dt_world *world; /* NULL: there is no such communicator */
    uint64_t comm;
};

struct dt_bucket {
    dt_comm_t *comm;
    struct owner owner;
    size_t cap;
    dt_dtype_t dtype;
    dt_op_t op;
    struct bucket_task *filling; /* NULL: no bucket is being filled */
    struct bucket_task *first;   /* buckets that were sent, in order */
    struct bucket_task *last;
    struct bucket_task *spare; /* with memory, for reuse */
    uint32_t sent;             /* how many times, counted by the thread up to SETTLED */
    /* Set by the thread. NULL: there is no shared memory yet, and the next two are 0. */
    _Atomic(uint8_t *) slots;
    uint32_t nslots;
    uint32_t free_slots; /* one bit for each slot */
    struct dt_gpu_fuse fuse;
    CUcontext context;  /* of the buffers in GPU memory that are reduced as one; NULL: none yet */
    dt_result_t failed; /* the first failure */
    dt_error_info_t error;
};

/* ---- in the communicator's thread ---- */

/* Stores the number of ranks if all of them share this host and there are several; else 0. */
static void visit_sharing(struct dt_comm *c, void *ranks)
{
    *(uint32_t *)ranks = c->nodes == 1 && c->size > 1 && !c->announce ? (uint32_t)c->size : 0;
}

static uint32_t slots_for(size_t cap, uint32_t ranks)
{
    size_t most = ALL_BYTES_MAX / ranks < RANK_BYTES_MAX ? ALL_BYTES_MAX / ranks : RANK_BYTES_MAX;

    return most / cap < SLOTS ? (uint32_t)(most / cap) : SLOTS;
}

/* The outcome is the same on all ranks. If it ends the communicator, the next call reports that. */
static void alloc_shared_slots(struct dt_bucket *b)
{
    uint32_t ranks = 0, n;
    void *slots;

    if (b->sent == SETTLED)
        return;
    (void)dt_context_visit("dt_bucket_push", b->comm, visit_sharing, &ranks);
    if (!ranks || ++b->sent < SETTLED)
        return;
    n = slots_for(b->cap, ranks);
    if (n < 2 || dt_mem_alloc(b->comm, n * b->cap, &slots) != DT_OK)
        return;
    b->nslots = n;
    b->free_slots = (1U << n) - 1;
    atomic_store_explicit(&b->slots, slots, memory_order_release);
}

/* The call states the size of each buffer: ranks that push the same number of elements in another
 * order must get an error instead of sums of unrelated elements. */
static dt_result_t reduce_buffers(const struct bucket_task *f)
{
    static const dt_all_reduce_options_t plain = DT_ALL_REDUCE_OPTIONS_INIT;
    const struct dt_bucket *b = f->bucket;
    size_t count = f->bytes / dt_dtype_size(b->dtype);
    const dt_all_reduce_options_t *how = dt_reduceoptions_default(count, b->dtype, b->op);
    uint64_t mark = 0;
    struct dt_comm *c;
    dt_result_t r = dt_context_enter("dt_bucket_push", b->comm, &c);

    if (r != DT_OK)
        return r;
    for (size_t i = 1; i < f->n; i++)
        mark = dt_reduceoptions_mark_buffer(mark, f->buffers[i].bytes);
    r = dt_comm_all_reduce_with(c, f->data, f->data, count, b->dtype, b->op, how ? how : &plain,
                                mark);
    dt_context_leave(c);
    return r;
}

static dt_result_t run_operations(struct bucket_task *f)
{
    struct dt_comm *c;
    dt_result_t r;

    if (f->n == 1)
        return dt_operation_run(f->operations, &f->task);
    r = dt_context_enter("dt_bucket_push", f->bucket->comm, &c);
    if (r != DT_OK)
        return r;
    r = dt_gpu_fuse_make(c, &f->bucket->fuse, f->operations, f->n);
    dt_context_leave(c);
    return r;
}

static dt_result_t run_bucket(struct dt_task *task)
{
    struct bucket_task *f = (struct bucket_task *)task;
    const uint8_t *from = f->data;
    dt_result_t r;

    if (!f->data)
        return run_operations(f);
    alloc_shared_slots(f->bucket);
    r = reduce_buffers(f);
    for (size_t i = 0; r == DT_OK && i < f->n; i++) {
        dt_copy(f->buffers[i].buf, from, f->buffers[i].bytes);
        from += f->buffers[i].bytes;
    }
    return r;
}

/* ---- memory ---- */

/* The slot that data is in; SLOTS: in none. */
static uint32_t slot_of(const struct dt_bucket *b, const uint8_t *data)
{
    const uint8_t *slots = atomic_load_explicit(&b->slots, memory_order_acquire);

    for (uint32_t i = 0; slots && i < b->nslots; i++) {
        if (data == slots + i * b->cap)
            return i;
    }
    return SLOTS;
}

/* NULL: there are no slots, or all are taken. */
static uint8_t *take_slot(struct dt_bucket *b)
{
    uint8_t *slots = atomic_load_explicit(&b->slots, memory_order_acquire);
    int i = slots ? __builtin_ffs((int)b->free_slots) - 1 : -1;

    if (i < 0)
        return NULL;
    b->free_slots &= ~(1U << i);
    return slots + (size_t)i * b->cap;
}

static void release_data(struct dt_bucket *b, uint8_t *data)
{
    uint32_t i = slot_of(b, data);

    if (i < SLOTS)
        b->free_slots |= 1U << i;
    else
        free(data);
}

static void bucket_task_free(struct bucket_task *f)
{
    if (!f)
        return;
    release_data(f->bucket, f->data);
    for (size_t i = 0; f->operations && i < f->n; i++)
        dt_gpu_order_drop(&f->operations[i].order);
    free(f->operations);
    free(f->buffers);
    free(f);
}

/* NULL: out of memory. */
static struct bucket_task *bucket_task_create(struct dt_bucket *b, bool copied)
{
    struct bucket_task *f = calloc(1, sizeof *f);

    if (!f)
        return NULL;
    f->task.run = run_bucket;
    f->bucket = b;
    if (copied)
        f->data = take_slot(b);
    if (copied && !f->data)
        f->data = malloc(b->cap);
    if (!copied || f->data)
        return f;
    free(f);
    return NULL;
}

/* Returns a spare one if it can. NULL: out of memory. */
static struct bucket_task *bucket_task_get(struct dt_bucket *b, bool copied)
{
    struct bucket_task *f = b->spare;

    if (!copied || !f)
        return bucket_task_create(b, copied);
    b->spare = f->next;
    f->next = NULL;
    f->bytes = f->n = 0;
    return f;
}

/* Memory of its own is freed, to make room for one with a slot. */
static void bucket_task_recycle(struct dt_bucket *b, struct bucket_task *f)
{
    if (!f->data || (atomic_load(&b->slots) && slot_of(b, f->data) == SLOTS)) {
        bucket_task_free(f);
        return;
    }
    f->next = b->spare;
    b->spare = f;
}

/* ---- pushing ---- */

/* Returns the array with room for another item; NULL: out of memory. */
static void *grow_array(struct bucket_task *f, void *array, size_t item)
{
    size_t room = f->room ? 2 * f->room : 8;
    void *larger = f->n < f->room ? array : realloc(array, room * item);

    if (larger && f->n == f->room)
        f->room = room;
    return larger;
}

static bool add_buffer(struct bucket_task *f, void *buf, size_t bytes)
{
    struct bucket_buffer *buffers = grow_array(f, f->buffers, sizeof *buffers);

    if (!buffers)
        return false;
    f->buffers = buffers;
    dt_copy(f->data + f->bytes, buf, bytes);
    f->buffers[f->n++] = (struct bucket_buffer){ buf, bytes };
    f->bytes += bytes;
    return true;
}

/* The task takes the operation's order. */
static bool add_operation(struct bucket_task *f, const struct dt_operation *o)
{
    struct dt_operation *operations = grow_array(f, f->operations, sizeof *operations);

    if (!operations)
        return false;
    f->operations = operations;
    f->operations[f->n++] = *o;
    f->bytes += o->count * dt_dtype_size(o->dtype);
    return true;
}

/* Ends the oldest bucket that was sent; it is done. */
static void collect_oldest(struct dt_bucket *b)
{
    struct bucket_task *f = b->first;
    dt_result_t r = dt_task_await(&f->task);

    dt_slot_settle(b->comm);
    b->first = f->next;
    if (r != DT_OK && b->failed == DT_OK) {
        b->failed = r;
        dt_error_keep(&b->error);
    }
    bucket_task_recycle(b, f);
}

static dt_result_t report_refusal(const struct owner *o, dt_result_t r)
{
    return dt_error_report_refusal(o->world, o->comm, DT_CALL_ALL_REDUCE, r);
}

/* name is the public call's, here and below. */
static dt_result_t submit_bucket(const char *name, struct dt_bucket *b, struct bucket_task *f)
{
    dt_result_t r = dt_context_submit(name, b->comm, &f->task);

    if (r != DT_OK)
        return report_refusal(&b->owner, r);
    if (b->first)
        b->last->next = f;
    else
        b->first = f;
    b->last = f;
    return DT_OK;
}

/* A bucket whose first buffer found no memory is empty, and no other rank waits for it. */
static dt_result_t flush_bucket(const char *name, struct dt_bucket *b)
{
    dt_result_t r = DT_OK;

    if (b->filling && b->filling->n > 0)
        r = submit_bucket(name, b, b->filling);
    else
        bucket_task_free(b->filling);
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
    struct bucket_task *f = bucket_task_get(b, false);
    dt_result_t r;

    if (!f || !add_operation(f, o)) {
        bucket_task_free(f);
        return out_of_memory(b);
    }
    r = flush_bucket(pushing, b);
    if (r == DT_OK)
        r = submit_bucket(pushing, b, f);
    if (r == DT_OK)
        return r;
    f->n = 0; /* the caller drops the order */
    bucket_task_free(f);
    return r;
}

/* Makes sure that a bucket is being filled that has room for this many bytes more, of this kind. */
static dt_result_t make_room(struct dt_bucket *b, size_t bytes, bool copied)
{
    dt_result_t r = DT_OK;

    if (b->filling && (b->filling->bytes + bytes > b->cap || (b->filling->data != NULL) != copied))
        r = flush_bucket(pushing, b);
    if (r == DT_OK && !b->filling)
        b->filling = bucket_task_get(b, copied);
    return r == DT_OK && !b->filling ? out_of_memory(b) : r;
}

static dt_result_t push_copied(struct dt_bucket *b, void *buf, size_t bytes)
{
    dt_result_t r = make_room(b, bytes, true);

    return r != DT_OK || add_buffer(b->filling, buf, bytes) ? r : out_of_memory(b);
}

/* Once the communicator has failed, the GPU may stand still, and the driver would wait for it. */
static void open_fuse(struct dt_bucket *b, const struct dt_gpu_order *order)
{
    if (!b->fuse.opened && dt_context_status(pushing, b->comm) == DT_OK)
        dt_gpu_fuse_open(&b->fuse, order, b->cap);
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

static dt_result_t push_to_fuse(struct dt_bucket *b, const struct dt_operation *o, size_t bytes)
{
    dt_result_t r = check_context(b, &o->order);

    if (r == DT_OK)
        r = make_room(b, bytes, false);
    if (r == DT_OK && !add_operation(b->filling, o))
        r = out_of_memory(b);
    if (r == DT_OK && b->filling->n > 1)
        open_fuse(b, &o->order);
    return r;
}

static dt_result_t push_in_place(struct dt_bucket *b, void *buf, size_t count, size_t bytes)
{
    struct dt_operation o = dt_allreduce_in_place(b->comm, buf, count, b->dtype, b->op);
    dt_result_t r = dt_operation_prepare(&o);

    if (r != DT_OK)
        return r;
    r = o.memory == DT_MEMORY_DEVICE && bytes < b->cap ? push_to_fuse(b, &o, bytes)
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

/* Refuses a push if no bucket can be reduced any more: dt_bucket_wait would report it too late. */
static dt_result_t check_push(const struct dt_bucket *b, const void *buf, size_t count)
{
    dt_result_t r = check_bucket(pushing, b);
    struct owner owner;

    if (r == DT_OK)
        r = report_refusal(&b->owner, dt_context_visit(pushing, b->comm, visit_owner, &owner));
    if (r == DT_OK)
        r = report_refusal(&b->owner, dt_check_buffer(pushing, buf, count, b->dtype));
    if (r != DT_OK)
        return r;
    return b->failed == DT_OK ? DT_OK : dt_error_again(&b->error);
}

dt_result_t dt_bucket_push(dt_bucket_t *b, void *buf, size_t count)
{
    dt_result_t r = check_push(b, buf, count);
    size_t bytes;

    if (r != DT_OK || count == 0)
        return r;
    while (b->first && dt_task_is_done(&b->first->task))
        collect_oldest(b);
    bytes = count * dt_dtype_size(b->dtype);
    if (bytes >= b->cap || dt_memory_of(buf, buf) != DT_MEMORY_HOST)
        return push_in_place(b, buf, count, bytes);
    return push_copied(b, buf, bytes);
}

static dt_result_t flush_and_wait(const char *name, struct dt_bucket *b)
{
    dt_result_t r = flush_bucket(name, b);

    while (b->first)
        collect_oldest(b);
    return b->failed == DT_OK ? r : dt_error_again(&b->error);
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
    **bucket = (struct dt_bucket){
        .comm = comm, .owner = *owner, .cap = bytes ? bytes : DEFAULT_CAP, .dtype = dtype, .op = op
    };
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

static void free_bucket_tasks(struct bucket_task *f)
{
    while (f) {
        struct bucket_task *next = f->next;

        bucket_task_free(f);
        f = next;
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
    free_bucket_tasks(b->spare);
    bucket_task_free(b->filling);
    dt_mem_free(b->slots);
    dt_gpu_fuse_close(&b->fuse);
    free(b);
    return r;
}
