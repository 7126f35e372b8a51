#include "runtime/api/bucket_task.h"

#include <stdlib.h>

#include "runtime/api/context.h"
#include "runtime/api/operation.h"
#include "runtime/base/copy.h"
#include "runtime/base/reduceoptions.h"
#include "runtime/comm/collective.h"
#include "runtime/kernels/dtype.h"

/* ---- in the communicator's thread ---- */

static const char pushing[] = "dt_bucket_push";

/* The call states the size of each buffer: ranks that push the same number of elements in another
 * order must get an error instead of sums of unrelated elements. */
static dt_result_t reduce_copies(const struct dt_bucket_task *t)
{
    static const dt_all_reduce_options_t plain = DT_ALL_REDUCE_OPTIONS_INIT;
    const struct dt_bucket_common *b = t->common;
    size_t count = t->bytes / dt_dtype_size(b->dtype);
    const dt_all_reduce_options_t *how = dt_reduceoptions_default(count, b->dtype, b->op);
    uint64_t mark = 0;
    struct dt_comm *c;
    dt_result_t r = dt_context_enter(pushing, b->comm, &c);

    if (r != DT_OK)
        return r;
    for (size_t i = 1; i < t->n; i++)
        mark = dt_reduceoptions_mark_buffer(mark, t->buffers[i].bytes);
    r = dt_comm_all_reduce_with(c, t->data, t->data, count, b->dtype, b->op, how ? how : &plain,
                                mark);
    dt_context_leave(c);
    return r;
}

static dt_result_t run_copied(struct dt_bucket_task *t)
{
    const uint8_t *from = t->data;
    dt_result_t r;

    dt_bucket_slots_count_task(&t->common->slots, t->common->comm);
    r = reduce_copies(t);
    for (size_t i = 0; r == DT_OK && i < t->n; i++) {
        dt_copy(t->buffers[i].buf, from, t->buffers[i].bytes);
        from += t->buffers[i].bytes;
    }
    return r;
}

/* The driver may block the thread between two calls: see make_collective (operation.c). */
static dt_result_t run_fused(const struct dt_bucket_task *t)
{
    struct dt_comm *c;
    dt_result_t r = dt_context_enter(pushing, t->common->comm, &c);

    if (r != DT_OK)
        return r;
    dt_comm_watch(c, true);
    r = dt_gpu_fuse_make(c, &t->common->fuse, t->operations, t->n);
    dt_comm_watch(c, false);
    dt_context_leave(c);
    return r;
}

static dt_result_t run_task(struct dt_task *task)
{
    struct dt_bucket_task *t = (struct dt_bucket_task *)task;
    dt_result_t r;

    if (t->kind == DT_BUCKET_COPIED)
        return run_copied(t);
    if (t->kind == DT_BUCKET_FUSED && t->n > 1)
        r = run_fused(t);
    else
        r = dt_operation_run(t->operations, task);
    dt_unlaunched_end(&t->unlaunched);
    return r;
}

/* ---- in the thread that uses the bucket ---- */

struct dt_bucket_task *dt_bucket_task_create(struct dt_bucket_common *common,
                                             enum dt_bucket_kind kind)
{
    struct dt_bucket_task *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->task.run = run_task;
    t->kind = kind;
    t->common = common;
    if (kind != DT_BUCKET_COPIED)
        return t;
    t->data = dt_bucket_slots_take(&common->slots);
    if (!t->data)
        t->data = malloc(common->bytes);
    if (t->data)
        return t;
    free(t);
    return NULL;
}

void dt_bucket_task_free(struct dt_bucket_task *t)
{
    if (!t)
        return;
    if (!dt_bucket_slots_release(&t->common->slots, t->data))
        free(t->data);
    for (size_t i = 0; t->operations && i < t->n; i++)
        dt_gpu_order_drop(&t->operations[i].order);
    free(t->operations);
    free(t->buffers);
    free(t);
}

/* Returns the array with room for another item, or NULL if memory has run out. */
static void *grow_array(struct dt_bucket_task *t, void *array, size_t item)
{
    size_t room = t->room ? 2 * t->room : 8;
    void *larger = t->n < t->room ? array : realloc(array, room * item);

    if (larger && t->n == t->room)
        t->room = room;
    return larger;
}

bool dt_bucket_task_add_buffer(struct dt_bucket_task *t, void *buf, size_t bytes)
{
    struct dt_bucket_buffer *buffers = grow_array(t, t->buffers, sizeof *buffers);

    if (!buffers)
        return false;
    t->buffers = buffers;
    dt_copy(t->data + t->bytes, buf, bytes);
    t->buffers[t->n++] = (struct dt_bucket_buffer){ buf, bytes };
    t->bytes += bytes;
    return true;
}

bool dt_bucket_task_add_operation(struct dt_bucket_task *t, const struct dt_operation *o)
{
    struct dt_operation *operations = grow_array(t, t->operations, sizeof *operations);

    if (!operations)
        return false;
    t->operations = operations;
    t->operations[t->n++] = *o;
    t->bytes += o->count * dt_dtype_size(o->dtype);
    return true;
}

void dt_bucket_task_remove_operation(struct dt_bucket_task *t)
{
    t->n = 0;
}

/* If the operations are made one by one, the task is launched with the last of them. */
void dt_bucket_task_begin(struct dt_bucket_task *t)
{
    struct dt_operation *last = t->operations ? &t->operations[t->n - 1] : NULL;

    if (!last || last->memory != DT_MEMORY_DEVICE)
        return;
    last->unlaunched = &t->unlaunched;
    dt_unlaunched_begin(&t->unlaunched);
}

void dt_bucket_task_cancel(struct dt_bucket_task *t)
{
    dt_unlaunched_end(&t->unlaunched);
}

/* A task with ordinary memory is not kept once there are slots: its successor may get one. */
bool dt_bucket_task_reuse(struct dt_bucket_task *t)
{
    const struct dt_bucket_slots *slots = &t->common->slots;

    if (t->kind != DT_BUCKET_COPIED ||
        (dt_bucket_slots_exist(slots) && !dt_bucket_slots_contain(slots, t->data)))
        return false;
    t->n = t->bytes = 0;
    return true;
}
