/* Buckets: combine many small all-reduces into a few large ones while the program computes.
 *
 * A pushed buffer is copied behind the ones before it until the bucket is full. Then the bucket is
 * sent as one task, and the next one is filled. The communicator's thread reduces it and copies the
 * results back. A buffer that fills a bucket by itself is reduced in place.
 *
 * If all ranks share a host, a bucket that is in use for a while gets memory that all ranks can
 * reach (dt_mem_alloc). The allocation is a collective call: the thread makes it before the same
 * bucket on all ranks. Ordinary memory is used before that, when more buckets are under way than
 * this memory holds, and when it cannot be allocated. */
#include <stdlib.h>

#include "runtime/api/calls.h"
#include "runtime/api/checks.h"
#include "runtime/api/context.h"
#include "runtime/base/copy.h"
#include "runtime/base/reduceoptions.h"
#include "runtime/comm/collective.h"
#include "runtime/comm/error_report.h"
#include "runtime/comm/slots.h"
#include "runtime/kernels/dtype.h"

enum {
    DEFAULT_CAP = 1024 * 1024,
    SETTLED = 8,                 /* buckets sent before shared memory is allocated */
    SLOTS = 8,                   /* buckets that the shared memory holds at most, */
    OWN_MOST = 64 * 1024 * 1024, /* its bytes for each rank at most, */
    ALL_MOST = 8 * OWN_MOST,     /* and for all ranks: every rank maps all of it */
};

struct piece {
    void *buf;
    size_t bytes;
};

struct flight {
    struct dt_task task; /* first: the task is cast to its flight */
    struct flight *next;
    struct dt_bucket *bucket;
    uint8_t *data; /* the buffers, one after the other; NULL: one buffer, reduced in place: */
    struct dt_operation in_place;
    size_t bytes;
    struct piece *pieces;
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
    struct flight *filling; /* NULL: no bucket is being filled */
    struct flight *first;   /* buckets that were sent, in order */
    struct flight *last;
    struct flight *spare; /* with memory, for reuse */
    uint32_t left;        /* buckets sent, counted by the thread up to SETTLED */
    _Atomic(uint8_t *)
        slots; /* set by the thread; NULL: no shared memory yet, and the next two are empty */
    uint32_t nslots;
    uint32_t free_slots; /* one bit for each slot */
    dt_result_t failed;  /* the first failure */
    dt_error_info_t error;
};

/* ---- in the communicator's thread ---- */

/* Stores the number of ranks if all of them share this host and there are several; else 0. */
static void see_sharing(struct dt_comm *c, void *ranks)
{
    *(uint32_t *)ranks = c->nodes == 1 && c->size > 1 && !c->announce ? (uint32_t)c->size : 0;
}

static uint32_t slots_for(size_t cap, uint32_t ranks)
{
    size_t most = ALL_MOST / ranks < OWN_MOST ? ALL_MOST / ranks : OWN_MOST;

    return most / cap < SLOTS ? (uint32_t)(most / cap) : SLOTS;
}

/* The outcome is the same on all ranks. If it ends the communicator, the next call reports that. */
static void share_memory(struct dt_bucket *b)
{
    uint32_t ranks = 0, n;
    void *slots;

    if (b->left == SETTLED)
        return;
    (void)dt_context_see("dt_bucket_push", b->comm, see_sharing, &ranks);
    if (!ranks || ++b->left < SETTLED)
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
static dt_result_t reduce_pieces(const struct flight *f)
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
        mark = dt_reduceoptions_mark_piece(mark, f->pieces[i].bytes);
    r = dt_comm_all_reduce_with(c, f->data, f->data, count, b->dtype, b->op, how ? how : &plain,
                                mark);
    dt_context_leave(c);
    return r;
}

static dt_result_t reduce(struct dt_task *task)
{
    struct flight *f = (struct flight *)task;
    const uint8_t *from = f->data;
    dt_result_t r;

    if (!f->data)
        return dt_operation_run(&f->in_place, task);
    share_memory(f->bucket);
    r = reduce_pieces(f);
    for (size_t i = 0; r == DT_OK && i < f->n; i++) {
        dt_copy(f->pieces[i].buf, from, f->pieces[i].bytes);
        from += f->pieces[i].bytes;
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

static void give_data_back(struct dt_bucket *b, uint8_t *data)
{
    uint32_t i = slot_of(b, data);

    if (i < SLOTS)
        b->free_slots |= 1U << i;
    else
        free(data);
}

static void flight_free(struct flight *f)
{
    if (!f)
        return;
    give_data_back(f->bucket, f->data);
    dt_gpu_order_drop(&f->in_place.order);
    free(f->pieces);
    free(f);
}

/* NULL: out of memory. */
static struct flight *flight_make(struct dt_bucket *b, bool in_place)
{
    struct flight *f = calloc(1, sizeof *f);

    if (!f)
        return NULL;
    f->task.run = reduce;
    f->bucket = b;
    if (!in_place)
        f->data = take_slot(b);
    if (!in_place && !f->data)
        f->data = malloc(b->cap);
    if (in_place || f->data)
        return f;
    free(f);
    return NULL;
}

static struct flight *flight_new(struct dt_bucket *b, bool in_place)
{
    struct flight *f = b->spare;

    if (in_place || !f)
        return flight_make(b, in_place);
    b->spare = f->next;
    f->next = NULL;
    f->bytes = f->n = 0;
    return f;
}

/* Memory of its own is freed, to make room for a flight with a slot. */
static void flight_spare(struct dt_bucket *b, struct flight *f)
{
    if (!f->data || (atomic_load(&b->slots) && slot_of(b, f->data) == SLOTS)) {
        flight_free(f);
        return;
    }
    f->next = b->spare;
    b->spare = f;
}

/* ---- pushing ---- */

static bool add_piece(struct flight *f, void *buf, size_t bytes)
{
    if (f->n == f->room) {
        size_t room = f->room ? 2 * f->room : 8;
        struct piece *pieces = realloc(f->pieces, room * sizeof *pieces);

        if (!pieces)
            return false;
        f->pieces = pieces;
        f->room = room;
    }
    dt_copy(f->data + f->bytes, buf, bytes);
    f->pieces[f->n++] = (struct piece){ buf, bytes };
    f->bytes += bytes;
    return true;
}

/* Ends the oldest bucket that was sent; it is done. */
static void land(struct dt_bucket *b)
{
    struct flight *f = b->first;
    dt_result_t r = dt_task_await(&f->task);

    dt_slot_settle(b->comm);
    b->first = f->next;
    if (r != DT_OK && b->failed == DT_OK) {
        b->failed = r;
        dt_error_keep(&b->error);
    }
    flight_spare(b, f);
}

static dt_result_t refuse(const struct owner *o, dt_result_t r)
{
    return dt_error_report_refusal(o->world, o->comm, DT_CALL_ALL_REDUCE, r);
}

/* name is the public call's, here and below. */
static dt_result_t take_off(const char *name, struct dt_bucket *b, struct flight *f)
{
    dt_result_t r = dt_context_hand_in(name, b->comm, &f->task);

    if (r != DT_OK)
        return refuse(&b->owner, r);
    if (b->first)
        b->last->next = f;
    else
        b->first = f;
    b->last = f;
    return DT_OK;
}

/* A bucket whose first buffer found no memory is empty, and no other rank waits for it. */
static dt_result_t flush(const char *name, struct dt_bucket *b)
{
    dt_result_t r;

    if (!b->filling || b->filling->n == 0)
        return DT_OK;
    r = take_off(name, b, b->filling);
    if (r == DT_OK)
        b->filling = NULL;
    return r;
}

static const char pushing[] = "dt_bucket_push";

static dt_result_t out_of_memory(const struct dt_bucket *b)
{
    return refuse(&b->owner, dt_fail(DT_ERR_NOMEM, "%s: out of memory", pushing));
}

static dt_result_t push_alone(struct dt_bucket *b, void *buf, size_t count)
{
    struct flight *f = flight_new(b, true);
    dt_result_t r;

    if (!f)
        return out_of_memory(b);
    f->in_place = dt_calls_all_reduce(b->comm, buf, count, b->dtype, b->op);
    r = dt_operation_prepare(&f->in_place);
    if (r == DT_OK)
        r = flush(pushing, b);
    if (r == DT_OK)
        r = take_off(pushing, b, f);
    if (r != DT_OK)
        flight_free(f);
    return r;
}

static dt_result_t push_together(struct dt_bucket *b, void *buf, size_t bytes)
{
    dt_result_t r = DT_OK;

    if (b->filling && b->filling->bytes + bytes > b->cap)
        r = flush(pushing, b);
    if (r != DT_OK)
        return r;
    if (!b->filling)
        b->filling = flight_new(b, false);
    return b->filling && add_piece(b->filling, buf, bytes) ? DT_OK : out_of_memory(b);
}

/* In a forked child the bucket's memory is shared with the rank, and no thread executes its
 * calls. */
static dt_result_t check_bucket(const char *name, const struct dt_bucket *b)
{
    static const struct owner nobody;

    if (!b)
        return refuse(&nobody, dt_fail(DT_ERR_ARG, "%s: no bucket was given", name));
    return refuse(&b->owner, dt_context_check_process(name));
}

static void see_owner(struct dt_comm *c, void *owner)
{
    *(struct owner *)owner = (struct owner){ c->world, c->id };
}

/* Refuses a push if no bucket can be reduced any more: dt_bucket_wait would report it too late. */
static dt_result_t check_push(const struct dt_bucket *b, const void *buf, size_t count)
{
    dt_result_t r = check_bucket(pushing, b);
    struct owner owner;

    if (r == DT_OK)
        r = refuse(&b->owner, dt_context_see(pushing, b->comm, see_owner, &owner));
    if (r == DT_OK)
        r = refuse(&b->owner, dt_check_buffer(pushing, buf, count, b->dtype));
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
        land(b);
    bytes = count * dt_dtype_size(b->dtype);
    if (bytes >= b->cap || dt_memory_of(buf, buf) != DT_MEMORY_HOST)
        return push_alone(b, buf, count);
    return push_together(b, buf, bytes);
}

static dt_result_t empty(const char *name, struct dt_bucket *b)
{
    dt_result_t r = flush(name, b);

    while (b->first)
        land(b);
    return b->failed == DT_OK ? r : dt_error_again(&b->error);
}

dt_result_t dt_bucket_wait(dt_bucket_t *b)
{
    dt_result_t r = check_bucket("dt_bucket_wait", b);

    return r == DT_OK ? empty("dt_bucket_wait", b) : r;
}

static dt_result_t create(dt_comm_t *comm, size_t bytes, dt_dtype_t dtype, dt_op_t op,
                          struct owner *owner, dt_bucket_t **bucket)
{
    static const char name[] = "dt_bucket_create";
    dt_result_t r = dt_context_see(name, comm, see_owner, owner);

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
        return refuse(&owner, dt_fail(DT_ERR_ARG, "dt_bucket_create: no place was given for the "
                                                  "bucket"));
    *bucket = NULL;
    return refuse(&owner, create(comm, bytes, dtype, op, &owner, bucket));
}

static void free_all(struct flight *f)
{
    while (f) {
        struct flight *next = f->next;

        flight_free(f);
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
    r = empty("dt_bucket_free", b);
    free_all(b->spare);
    flight_free(b->filling);
    dt_mem_free(b->slots);
    free(b);
    return r;
}
