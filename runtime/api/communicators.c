/* The public calls that make and free communicators. */
#include <stdio.h>
#include <string.h>

#include "runtime/api/context.h"
#include "runtime/api/create.h"
#include "runtime/api/split.h"
#include "runtime/api/view.h"
#include "runtime/comm/collective.h"
#include "runtime/comm/error_report.h"
#include "runtime/comm/slots.h"
#include "runtime/comm/views.h"
#include "runtime/dtrun_tune.h"

static dt_result_t split_communicator(const char *name, dt_comm_t *parent, enum dt_call_kind kind,
                                      int color, int key, dt_comm_t **out)
{
    struct dt_comm *c, *fresh;
    dt_result_t r;

    if (!out)
        return dt_fail(DT_ERR_ARG, "%s: the pointer to the communicator is NULL", name);
    *out = DT_COMM_NULL;
    r = dt_context_enter(name, parent, &c);
    if (r != DT_OK)
        return r;
    c->world->was_split = true;
    r = dt_comm_split_into(c, kind, color < 0 ? 0 : (uint64_t)color + 1, key, dt_split_alloc(c),
                           &fresh);
    if (r == DT_OK && fresh)
        *out = fresh->slot->handle;
    dt_context_leave(c);
    return r;
}

static dt_result_t split_and_report(const char *name, dt_comm_t *parent, enum dt_call_kind kind,
                                    int color, int key, dt_comm_t **out)
{
    dt_result_t r = split_communicator(name, parent, kind, color, key, out);

    if (r != DT_OK && !*dt_error_details()->operation)
        dt_error_report_call(kind);
    return r;
}

dt_result_t dt_comm_split(dt_comm_t *parent, int color, int key, dt_comm_t **out)
{
    return split_and_report("dt_comm_split", parent, DT_CALL_SPLIT, color, key, out);
}

dt_result_t dt_comm_dup(dt_comm_t *comm, dt_comm_t **out)
{
    return split_and_report("dt_comm_dup", comm, DT_CALL_DUP, 0, 0, out);
}

dt_result_t dt_comm_free(dt_comm_t *comm)
{
    dt_error_info_t error;
    struct dt_slot *s;
    struct dt_comm *c;
    dt_result_t r;

    if (dt_views_have_issued(comm))
        return dt_view_free(comm);
    if (comm == DT_WORLD)
        return dt_fail(DT_ERR_ARG, "dt_comm_free: DT_WORLD cannot be freed; dt_finalize ends it");
    r = dt_context_enter("dt_comm_free", comm, &c);
    if (r != DT_OK)
        return r;
    s = c->slot;
    r = dt_comm_leave(c);
    dt_error_save(&error); /* a nonblocking call that is made now may fail and replace the error */
    dt_comm_mark_handled(c);
    dt_comm_destroy(c);
    dt_slot_leave(s);
    return r == DT_OK ? DT_OK : dt_error_restore(&error);
}

static void keep_first_error(void *arg, unsigned line, const char *why)
{
    char *text = arg;

    if (!*text)
        snprintf(text, DT_ERROR_TEXT, "line %u: %s", line, why);
}

/* Other threads make channels, which read these thresholds. So the thresholds change under the
 * slots' mutex. */
static void apply_tuning(struct dt_comm *c, void *arg)
{
    const struct dt_tuning_table *table = arg;

    dt_comm_add_tuning(c, table);
}

static void visit_apply_tuning(struct dt_comm *c, void *table)
{
    dt_slot_visit(c->slot->handle, apply_tuning, table);
}

dt_result_t dt_comm_tune(dt_comm_t *comm, const char *lines)
{
    struct dt_tuning_table table = { 0 };
    char why[DT_ERROR_TEXT] = "";
    struct dt_comm *c;
    dt_result_t r = dt_context_enter("dt_comm_tune", comm, &c);

    if (r != DT_OK)
        return r;
    if (c->rank == 0 && lines)
        dt_tuning_read(&table, lines, strlen(lines), keep_first_error, why);
    if (*why)
        table.n = UINT64_MAX; /* tells all ranks that the lines are wrong */
    r = dt_comm_first_barrier(c, DT_CALL_TUNE, &table, sizeof table, visit_apply_tuning);
    dt_context_leave(c);
    if (r == DT_OK && table.n > DT_TUNING_ENTRIES)
        r = dt_fail(DT_ERR_ARG, "dt_comm_tune: %s", *why ? why : "the lines of rank 0 are wrong");
    return r;
}

/* Finds the communicator that a view stands for. In a forked child it does not look for views,
 * because a thread that exists only in the parent may hold their lock. */
static dt_result_t find_communicator(const char *name, dt_comm_t *comm, dt_comm_t **real)
{
    dt_result_t r = dt_context_check_process(name);

    *real = r == DT_OK ? dt_views_comm(comm) : comm;
    return r;
}

static void visit_abort(struct dt_comm *c, void *arg)
{
    char name[DT_WORLD_NAME], why[DT_ERROR_TEXT];

    (void)arg;
    snprintf(why, sizeof why, "%s called dt_comm_abort",
             dt_world_name(c->world, (uint32_t)c->world->rank, name));
    dt_comm_stop(c, DT_ERR_ABORTED, (uint32_t)c->world->rank, why);
    dt_comm_mark_handled(c);
}

/* Stops the communicator in this process at once. The agent tells all processes, but this one may
 * not read the agent's message for a while. */
static void visit_abort_with_world(struct dt_comm *c, void *arg)
{
    (void)arg;
    dt_hostshm_stop(&c->shm.map, DT_ERR_ABORTED, (uint32_t)c->world->rank);
    dt_comm_wake(c);
    dt_comm_mark_handled(c);
}

dt_result_t dt_comm_abort(dt_comm_t *comm)
{
    static const char name[] = "dt_comm_abort";
    dt_comm_t *real;
    dt_result_t r = find_communicator(name, comm, &real);

    if (r == DT_OK)
        r = dt_context_visit(name, real, visit_abort, NULL);
    if (r == DT_OK && real == DT_WORLD)
        dt_slots_visit(visit_abort_with_world, NULL);
    return r;
}

enum { TIMEOUT_MAX_S = 1000 * 1000 };

static bool read_timeout(double seconds, uint32_t *ms)
{
    if (seconds == DT_TIMEOUT_DEFAULT)
        *ms = 0;
    else if (seconds == 0)
        *ms = DT_HOSTSHM_NO_LIMIT;
    else if (seconds >= 0.1 && seconds <= TIMEOUT_MAX_S)
        *ms = (uint32_t)(seconds * 1000);
    else
        return false;
    return true;
}

dt_result_t dt_comm_set_timeout(dt_comm_t *comm, double seconds)
{
    static const char name[] = "dt_comm_set_timeout";
    dt_comm_t *real;
    uint32_t ms;
    dt_result_t r = find_communicator(name, comm, &real);

    if (r != DT_OK)
        return r;
    if (read_timeout(seconds, &ms))
        return dt_context_set_limit(name, real, ms);
    return dt_fail(DT_ERR_ARG,
                   "%s: %.10g is not a number of seconds from 0.1 to %d, nor 0 (never) or "
                   "DT_TIMEOUT_DEFAULT",
                   name, seconds, TIMEOUT_MAX_S);
}

dt_result_t dt_comm_status(dt_comm_t *comm)
{
    static const char name[] = "dt_comm_status";
    dt_comm_t *real;
    dt_result_t r = find_communicator(name, comm, &real);

    if (r != DT_OK)
        return r;
    dt_context_poll_agent();
    return dt_context_status(name, real);
}

static void visit_rank(struct dt_comm *c, void *arg)
{
    *(int *)arg = c->rank;
}

static void visit_size(struct dt_comm *c, void *arg)
{
    *(int *)arg = c->size;
}

static int visit_number(const char *name, dt_comm_t *comm,
                        void (*visit)(struct dt_comm *c, void *arg))
{
    dt_comm_t *real;
    int number = -1;

    if (find_communicator(name, comm, &real) == DT_OK)
        dt_context_visit(name, real, visit, &number);
    return number;
}

int dt_comm_rank(dt_comm_t *comm)
{
    return visit_number("dt_comm_rank", comm, visit_rank);
}

int dt_comm_size(dt_comm_t *comm)
{
    return visit_number("dt_comm_size", comm, visit_size);
}
