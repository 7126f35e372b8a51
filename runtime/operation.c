#include "runtime/operation.h"

#include "runtime/context.h"
#include "runtime/request.h"

struct place {
    int rank;
    int size;
};

static void see_place(struct dt_comm *c, void *arg)
{
    *(struct place *)arg = (struct place){ c->rank, c->size };
}

static dt_result_t check(struct dt_operation *o, int rank, int size)
{
    return o->kind->check ? o->kind->check(o, rank, size) : DT_OK;
}

dt_result_t dt_operation_make(struct dt_operation *o)
{
    struct dt_comm *c;
    dt_result_t r = dt_context_enter(o->kind->name, o->comm, &c);

    if (r != DT_OK)
        return r;
    r = check(o, c->rank, c->size);
    if (r == DT_OK)
        r = o->kind->make(c, o);
    dt_context_leave(c);
    return r;
}

dt_result_t dt_operation_make_checked(const struct dt_operation *o)
{
    struct dt_comm *c;
    dt_result_t r = dt_context_enter(o->kind->name, o->comm, &c);

    if (r != DT_OK)
        return r;
    r = o->kind->make(c, o);
    dt_context_leave(c);
    return r;
}

dt_result_t dt_operation_start(struct dt_operation *o, dt_request_t *request)
{
    struct place p;
    dt_result_t r;

    if (!request)
        return dt_fail(DT_ERR_ARG, "%s: there is nowhere to put the request", o->kind->name);
    *request = (dt_request_t){ 0 };
    r = dt_context_see(o->kind->name, o->comm, see_place, &p);
    if (r == DT_OK)
        r = check(o, p.rank, p.size);
    return r == DT_OK ? dt_request_start(o, p.size, request) : r;
}
