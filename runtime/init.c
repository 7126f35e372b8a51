/* dt_init and dt_finalize, the only functions that know all parts of the library. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "runtime/api/context.h"
#include "runtime/api/create.h"
#include "runtime/api/split.h"
#include "runtime/api/view.h"
#include "runtime/base/tuningfile.h"
#include "runtime/checkpoint/background.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/comm/async.h"
#include "runtime/comm/error_report.h"
#include "runtime/comm/slots.h"
#include "runtime/diag/recorder.h"
#include "runtime/gpu/device/gate.h"
#include "runtime/gpu/direct.h"

/* A child that is forked before dt_init, or after dt_init failed, may become a rank. A child that
 * is forked during dt_init or later may not. */
static void in_child(void)
{
    if (dti_context.state != DT_CONTEXT_BEFORE || dt_slot_is_held(DT_WORLD))
        dti_context.forked = true;
    dt_checkpoint_forked();
}

struct stop {
    uint64_t comm;
    int code;
    uint32_t culprit;
};

/* The agent sets the abort word only in memory that it provided; this sets it in all others. */
static void pass_on(struct dt_comm *c, void *arg)
{
    const struct stop *stop = arg;

    if (stop->comm != 0 && stop->comm != c->id)
        return;
    dt_hostshm_stop(&c->shm.map, stop->code, stop->culprit);
    dt_comm_wake(c);
}

static void on_stop(void *arg, uint64_t comm, int code, uint32_t culprit)
{
    struct stop stop = { comm, code, culprit };

    (void)arg;
    dt_slots_visit(pass_on, &stop);
}

/* Tells the host's other ranks why this rank fails: the agent, which still runs, does not know. */
static void pass_on_loss(struct dt_comm *c, void *why)
{
    dt_hostshm_stop_because(&c->shm.map, DT_ERR_IO, (uint32_t)c->world->rank, why);
    dt_comm_wake(c);
}

static void on_lost(void *arg, int error)
{
    char why[DT_ERROR_TEXT];

    (void)arg;
    snprintf(why, sizeof why,
             "its socket to dtrun-agent, descriptor %d, cannot be read any more: %s; the program "
             "must leave it open",
             dti_context.job.agent.fd, strerror(error));
    dt_slots_visit(pass_on_loss, why);
}

static dt_result_t meet_agent(struct dt_world *w)
{
    struct dt_agentenv env;
    dt_result_t r = dt_agentenv_read(&env);

    dt_world_none(w);
    w->agent.stop = on_stop;
    w->agent.lost = on_lost;
    if (r != DT_OK)
        return r;
    return env.fd >= 0 ? dt_world_join(w, &env) : dt_world_alone(w);
}

static void leave_job(void)
{
    dt_comm_release(&dti_context.world);
    dt_world_leave(&dti_context.job);
}

static dt_result_t join(struct dt_slot *s)
{
    struct dt_comm *c = &dti_context.world;
    struct dt_world *w = &dti_context.job;
    dt_result_t r = dt_comm_create(c, w, 0, NULL, (uint32_t)w->size);

    c->slot = s;
    dt_slot_set_world(c);
    if (r == DT_OK)
        r = dt_comm_join(c, DT_CALL_INIT);
    if (r == DT_OK)
        return r;
    dt_slot_clear(s);
    leave_job();
    return r;
}

static void warn(void *arg, const char *text)
{
    struct dt_world *w = arg;

    dt_agentlink_note(&w->agent, text);
}

/* A failure before the communicator exists names no call yet. */
static void name_init(void)
{
    if (!*dt_error_details()->operation)
        dt_error_report_call(DT_CALL_INIT);
}

static dt_result_t init(struct dt_slot *s, const dt_config_t *config)
{
    struct dt_world *w = &dti_context.job;
    dt_result_t r = dt_config_read(config, &w->settings);

    if (r == DT_OK) {
        dt_recorder_start(w->settings.recorder_calls);
        r = meet_agent(w);
    }
    if (r == DT_OK && w->rank == 0)
        dt_tuningfile_read(&w->tuning, warn, w);
    if (r == DT_OK)
        r = join(s);
    if (r == DT_OK)
        dti_context.state = DT_CONTEXT_READY;
    else
        name_init();
    return r;
}

/* Two threads may both register in_child. It then runs twice, which does no harm. */
static dt_result_t watch_forks(void)
{
    static _Atomic bool watched;

    if (!watched && pthread_atfork(NULL, NULL, in_child) != 0) {
        dt_result_t r = dt_fail(DT_ERR_NOMEM, "dt_init: out of memory");

        name_init();
        return r;
    }
    watched = true;
    return DT_OK;
}

dt_result_t dt_init_with(const dt_config_t *config)
{
    dt_result_t r = dt_context_check_process("dt_init");
    struct dt_slot *s;
    uint32_t limit_ms;

    if (r == DT_OK)
        r = watch_forks();
    if (r != DT_OK)
        return r;
    s = dt_slot_enter(DT_WORLD, &limit_ms);
    if (dti_context.state == DT_CONTEXT_BEFORE)
        r = init(s, config);
    else
        r = dt_fail(DT_ERR_STATE, "dt_init was called %s",
                    dti_context.state == DT_CONTEXT_READY ? "twice" : "after dt_finalize");
    dt_slot_leave(s);
    return r;
}

dt_result_t dt_init(void)
{
    return dt_init_with(NULL);
}

static void take_completed(struct dt_comm *c, void *arg)
{
    struct dt_task **list = arg;

    *list = dt_p2p_take_all_completed(c, *list);
}

/* The program may take a receive for complete that is parked and needs only a copy. */
static void finish_completed(void)
{
    struct dt_task *list = NULL;

    dt_slots_visit(take_completed, &list);
    while (list) {
        struct dt_task *task = list;

        list = task->next;
        dt_p2p_run(task);
    }
}

/* Holds DT_WORLD meanwhile, because another thread may be in dt_finalize. */
static bool world_gpu_is_done(void)
{
    bool done = dt_context_hold_job() && dt_direct_all_done(&dti_context.world);

    dt_context_release_job();
    return done;
}

static void drop(struct dt_comm *c)
{
    if (c->id == 0)
        leave_job();
    else
        dt_comm_destroy(c);
}

dt_result_t dt_finalize(void)
{
    dt_result_t r = dt_context_check_process("dt_finalize");

    if (r != DT_OK)
        return r;
    finish_completed();
    dt_background_await();
    if (world_gpu_is_done())
        dt_slot_await_ahead(DT_WORLD);
    dt_async_await_ends();
    if (!dt_slots_enter_all())
        return dt_fail(DT_ERR_STATE, "dt_finalize: another thread is inside a dtrun call, or a "
                                     "request or bucket, or a call on a view, is not done; wait "
                                     "for it first");
    r = dt_context_check_state("dt_finalize");
    if (r == DT_OK) {
        dti_context.world.limit_ms = dti_context.world.slot->limit_ms;
        r = dt_comm_leave(&dti_context.world);
        dt_checkpoint_end();
        dti_context.state = DT_CONTEXT_AFTER;
        dt_context_await_holders();
        dt_view_free_all();
        dt_gpu_gates_end();
        dt_slots_clear_all(drop);
    }
    dt_slots_leave_all();
    return r;
}
