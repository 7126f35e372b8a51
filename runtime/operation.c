#include "runtime/operation.h"

#include <string.h>

#include "runtime/blame.h"
#include "runtime/context.h"
#include "runtime/request.h"
#include "runtime/ways.h"

enum { NAME = 32 }; /* of a public call */

struct place {
    int rank;
    int size;
    uint64_t comm;
    const struct dt_world *world; /* NULL: there is no such communicator */
};

static struct place place_in(const struct dt_comm *c)
{
    return (struct place){ c->rank, c->size, c->id, c->world };
}

static void see_place(struct dt_comm *c, void *arg)
{
    *(struct place *)arg = place_in(c);
}

static dt_result_t tell(const struct dt_operation *o, const struct place *p, dt_result_t r)
{
    return dt_blame_refusal(p->world, p->comm, o->kind->call, r);
}

/* What ends a communicator has been told with more. */
static dt_result_t tell_refusal(const struct dt_operation *o, const struct place *p, dt_result_t r)
{
    return dt_result_is_final(r) ? r : tell(o, p, r);
}

static dt_result_t check(struct dt_operation *o, int rank, int size)
{
    return o->kind->check ? o->kind->check(o, rank, size) : DT_OK;
}

static dt_result_t see_and_check(struct dt_operation *o, struct place *p)
{
    dt_result_t r;

    *p = (struct place){ 0 };
    r = dt_context_see(o->kind->name, o->comm, see_place, p);
    if (r == DT_OK)
        r = check(o, p->rank, p->size);
    return tell_refusal(o, p, r);
}

/* ---- between two ranks ---- */

static bool is_between_two(const struct dt_operation *o)
{
    return !o->kind->make;
}

static struct dt_end end_of(const struct dt_operation *o)
{
    return (struct dt_end){ o->root, o->kind->call == DT_CALL_SEND };
}

static dt_result_t pass(struct dt_operation *o)
{
    struct dt_way *way;
    struct place p;
    dt_result_t r = see_and_check(o, &p);

    if (r == DT_OK)
        r = dt_context_enter_way(o->kind->name, o->comm, end_of(o), &way);
    if (r != DT_OK)
        return r;
    r = dt_way_pass(way, o->out, o->count, o->dtype, true);
    dt_context_leave_way(way);
    return r;
}

static dt_result_t run_on_way(const struct dt_operation *o, struct dt_way *way)
{
    dt_result_t r = dt_way_pass(way, o->out, o->count, o->dtype, false);

    dt_way_passed(way->comm);
    return r;
}

/* ---- of all ranks ---- */

static dt_result_t make_checked(const struct dt_operation *o)
{
    struct dt_comm *c;
    dt_result_t r = dt_context_enter(o->kind->name, o->comm, &c);

    if (r != DT_OK)
        return r;
    r = o->kind->make(c, o);
    dt_context_leave(c);
    return r;
}

dt_result_t dt_operation_make(struct dt_operation *o)
{
    struct place p = { 0 };
    struct dt_comm *c;
    dt_result_t r;

    if (is_between_two(o))
        return pass(o);
    r = dt_context_enter(o->kind->name, o->comm, &c);
    if (r != DT_OK)
        return tell_refusal(o, &p, r);
    r = check(o, c->rank, c->size);
    if (r == DT_OK)
        r = o->kind->make(c, o);
    if (r != DT_OK)
        p = place_in(c);
    dt_context_leave(c);
    return tell_refusal(o, &p, r);
}

/* ---- later ---- */

dt_result_t dt_operation_hand_in(const char *name, const struct dt_operation *o,
                                 struct dt_task *task)
{
    const struct dt_parcel parcel = { o->out, o->count, o->dtype };

    if (is_between_two(o))
        return dt_context_hand_in_way(name, o->comm, end_of(o), &parcel, task);
    return dt_context_hand_in(name, o->comm, task);
}

dt_result_t dt_operation_run(const struct dt_operation *o, struct dt_task *task)
{
    return is_between_two(o) ? run_on_way(o, task->way) : make_checked(o);
}

/* What is wrong is told of the call that the program made: dt_iall_reduce, not dt_all_reduce. */
dt_result_t dt_operation_start(struct dt_operation *o, dt_request_t *request)
{
    const struct dt_operation_kind *kind = o->kind;
    struct dt_operation_kind written = *kind;
    char name[NAME] = "dt_i";
    struct place p;
    dt_result_t r;

    strcpy(name + strlen("dt_i"), kind->name + strlen("dt_"));
    written.name = name;
    if (!request)
        return dt_fail(DT_ERR_ARG, "%s: there is nowhere to put the request", name);
    *request = (dt_request_t){ 0 };
    o->kind = &written;
    r = see_and_check(o, &p);
    o->kind = kind;
    return r == DT_OK ? tell(o, &p, dt_request_start(name, o, p.size, request)) : r;
}
