/* A task of a bucket: buffers that the communicator's thread reduces with one call. The thread that
 * uses the bucket creates the task, adds buffers and submits it. */
#ifndef DT_API_BUCKET_TASK_H
#define DT_API_BUCKET_TASK_H

#include "runtime/api/bucket_slots.h"
#include "runtime/comm/async.h"
#include "runtime/gpu/fuse.h"
#include "runtime/gpu/launchorder.h"
#include "runtime/gpu/operation.h"

enum dt_bucket_kind {
    DT_BUCKET_COPIED, /* buffers in host memory, which are copied into memory of the task */
    DT_BUCKET_FUSED,  /* buffers in GPU memory, which gpu/fuse.h copies when the task runs */
    DT_BUCKET_ALONE,  /* a single buffer, which is reduced in place */
};

struct dt_bucket_common { /* what all tasks of a bucket have in common */
    dt_comm_t *comm;
    size_t bytes; /* the most that a task of several buffers holds */
    dt_dtype_t dtype;
    dt_op_t op;
    struct dt_bucket_slots slots; /* memory for tasks with copied buffers */
    struct dt_gpu_fuse fuse;      /* GPU memory for fused tasks */
};

struct dt_bucket_buffer {
    void *buf;
    size_t bytes;
};

struct dt_bucket_task {
    struct dt_task task; /* first: the task is cast to its dt_bucket_task */
    enum dt_bucket_kind kind;
    struct dt_bucket_task *next; /* for the bucket's lists */
    struct dt_bucket_common *common;
    uint8_t *data;                    /* COPIED: the contents of the buffers, in order */
    struct dt_bucket_buffer *buffers; /* COPIED */
    struct dt_operation *operations;  /* FUSED, ALONE: an all-reduce in place for each buffer */
    size_t n;                         /* buffers or operations */
    size_t room;                      /* for buffers or operations, in the array */
    size_t bytes;                     /* in all buffers */
    struct dt_unlaunched unlaunched;  /* FUSED, ALONE */
};

/* Returns NULL if memory has run out. common must outlive the task. */
struct dt_bucket_task *dt_bucket_task_create(struct dt_bucket_common *common,
                                             enum dt_bucket_kind kind);
void dt_bucket_task_free(struct dt_bucket_task *t); /* accepts NULL */

/* Copies a buffer, for which there must be room. Returns false if memory has run out. */
bool dt_bucket_task_add_buffer(struct dt_bucket_task *t, void *buf, size_t bytes);
/* Takes over the operation's order (gpu/device/order.h). Returns false, and takes nothing, if
 * memory has run out. */
bool dt_bucket_task_add_operation(struct dt_bucket_task *t, const struct dt_operation *o);
/* Removes the only operation. The caller owns its order again. */
void dt_bucket_task_remove_operation(struct dt_bucket_task *t);
/* Before the task is submitted: counts its launch among those that are left to other threads. */
void dt_bucket_task_begin(struct dt_bucket_task *t);
/* The task was not submitted after all. */
void dt_bucket_task_cancel(struct dt_bucket_task *t);
/* Empties a task that is done. Returns false if the task is not worth keeping. */
bool dt_bucket_task_reuse(struct dt_bucket_task *t);

#endif
