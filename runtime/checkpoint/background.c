#include "runtime/checkpoint/background.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/api/context.h"
#include "runtime/api/request.h"
#include "runtime/api/split.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/snapshot.h"
#include "runtime/comm/slots.h"

static const char call_name[] = "dt_checkpoint_isave";

static struct {
    struct dt_comm *comm;              /* NULL: no save has been made in the background */
    _Atomic(const dt_comm_t *) handle; /* of comm; DT_WORLD if there is none */
    struct dt_snapshot snapshot;
    dt_background_save_f save;
} dti_background;

/* A rank that lacks memory before it waits for others would end world. */
dt_result_t dt_background_open(struct dt_comm *world, const struct dt_group *g)
{
    struct dt_split_word *words;
    dt_result_t r;

    if (dti_background.comm)
        return DT_OK;
    words = dt_split_alloc(world);
    r = dt_group_agree(g,
                       words ? DT_OK : dt_fail(DT_ERR_NOMEM, "out of memory for a communicator"));
    if (r != DT_OK) {
        free(words);
        return r;
    }
    r = dt_comm_split_into(world, DT_CALL_ISAVE, 1, 0, words, &dti_background.comm);
    if (r == DT_OK)
        dti_background.handle = dti_background.comm->slot->handle;
    return r;
}

dt_result_t dt_background_prepare(const struct dt_comm *world, const struct dt_buffers *buffers,
                                  dt_request_t *request)
{
    dt_result_t r = dt_async_start(&dti_background.comm->slot->async);

    if (r == DT_OK)
        r = dt_context_set_limit(call_name, dti_background.handle, world->limit_ms);
    if (r == DT_OK)
        r = dt_request_reserve(call_name, request);
    return r == DT_OK ? dt_snapshot_take(&dti_background.snapshot, buffers) : r;
}

static void visit_stop(struct dt_comm *world, void *failed)
{
    const struct dt_comm *c = failed;

    dt_comm_stop(world, c->failed, c->coll_error.rank, c->error.message);
}

static dt_result_t run_save(struct dt_comm *c, const struct dt_operation *o)
{
    dt_result_t r = dti_background.save(c, &dti_background.snapshot.buffers);

    if (c->failed != DT_OK)
        dt_context_visit(o->kind->name, DT_WORLD, visit_stop, c);
    return r;
}

static const struct dt_operation_kind isave_kind = { call_name, DT_CALL_ISAVE, NULL, run_save };

/* The other ranks already wait for this one in the save. */
dt_result_t dt_background_start(struct dt_comm *world, dt_background_save_f save,
                                dt_request_t *request)
{
    struct dt_operation o = { .kind = &isave_kind, .comm = dti_background.comm->slot->handle };
    dt_result_t r;

    dti_background.save = save;
    r = dt_request_submit_reserved(call_name, &o, world->size, request);
    return r == DT_OK ? r : dt_comm_fail(world, r);
}

void dt_background_await(void)
{
    const dt_comm_t *handle = dti_background.handle;
    struct dt_comm *c;

    if (handle != DT_WORLD && dt_context_enter(call_name, handle, &c) == DT_OK)
        dt_context_leave(c);
}

void dt_background_end(void)
{
    dt_snapshot_free(&dti_background.snapshot);
}
