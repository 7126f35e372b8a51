/* The public calls that save and restore. Keeps the store that the environment names. */
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/api/context.h"
#include "runtime/api/request.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/background.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/registry.h"
#include "runtime/checkpoint/store.h"
#include "runtime/comm/collective.h"
#include "runtime/comm/error_report.h"
#include "runtime/wire/env.h"

/* The ranks that agree on the steps of a save or restore. */
struct checkpoint_ranks {
    struct dt_comm *comm;
    enum dt_call_kind call; /* in progress */
};

/* A save or restore in progress. */
struct checkpoint_call {
    uint64_t number; /* of the first call that it consists of */
    uint64_t at_ns;
    dt_error_info_t before; /* this thread's last error before it */
};

/* While a save is under way in the background, all this belongs to its thread. */
static struct {
    struct checkpoint_ranks ranks;
    struct { /* the save in the background */
        int64_t step;
        struct checkpoint_call call;
    } background;
    bool ready;              /* the following fields are set */
    char path[2 * PATH_MAX]; /* may be too long for the kernel, which then says so */
    char job_id[NAME_MAX + 1];
    char host[HOST_NAME_MAX + 1];
    struct dt_store store;
} dti_checkpoint;

static dt_result_t group_min(void *ctx, int64_t *v, size_t n)
{
    const struct checkpoint_ranks *ranks = ctx;

    return dt_comm_all_reduce_words(ranks->comm, ranks->call, v, n, DT_MIN);
}

static dt_result_t group_sum(void *ctx, int64_t *v, size_t n)
{
    const struct checkpoint_ranks *ranks = ctx;

    return dt_comm_all_reduce_words(ranks->comm, ranks->call, v, n, DT_SUM);
}

static dt_result_t group_broadcast(void *ctx, void *buf, size_t bytes, uint32_t root)
{
    const struct checkpoint_ranks *ranks = ctx;

    return dt_comm_broadcast_bytes(ranks->comm, ranks->call, buf, bytes, (int)root);
}

/* Tells dtrun, through the agent, what happened to the step. If the agent is gone, the next call
 * reports that. */
static void report_step(struct dt_comm *c, int64_t step, enum dt_commit_kind kind)
{
    if (c->rank == 0)
        dt_agentlink_commit(&c->world->agent, step, (uint8_t)kind);
}

static void on_committed(void *arg, int64_t step)
{
    report_step(arg, step, DT_COMMITTED);
}

static void log_note(void *arg, const char *text)
{
    struct dt_comm *c = arg;

    dt_agentlink_note(&c->world->agent, text);
}

static const char *env_or_empty(const char *name)
{
    const char *value = getenv(name);

    return value ? value : "";
}

/* The program may change its working directory later. */
static dt_result_t set_directory(void)
{
    const char *dir = env_or_empty(DT_ENV_CHECKPOINT_DIR);
    char here[PATH_MAX] = "";

    if (dir[0] != '/' && !getcwd(here, sizeof here))
        return dt_fail_errno(DT_ERR_IO, errno,
                             "the working directory, below which checkpoints would go, has no name "
                             "(is it gone?); set " DT_ENV_CHECKPOINT_DIR
                             " (--checkpoint-dir) to an absolute path, or start the program in "
                             "another directory");
    if (strcmp(here, "/") == 0)
        here[0] = '\0';
    if (dir[0])
        snprintf(dti_checkpoint.path, sizeof dti_checkpoint.path, "%s%s%s", here,
                 dir[0] == '/' ? "" : "/", dir);
    else
        snprintf(dti_checkpoint.path, sizeof dti_checkpoint.path, "%s/checkpoints/%s", here,
                 program_invocation_short_name);
    return DT_OK;
}

/* A job that was started by hand is another one each time: in a container, host and process often
 * have the same names. */
static dt_result_t set_job_id(void)
{
    const char *job = env_or_empty(DT_ENV_JOB_ID);
    uint32_t random;

    if (gethostname(dti_checkpoint.host, sizeof dti_checkpoint.host - 1) != 0)
        strcpy(dti_checkpoint.host, "unknown");
    if (!job[0] && getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return dt_fail_errno(DT_ERR_IO, errno, "getrandom");
    if (job[0])
        snprintf(dti_checkpoint.job_id, sizeof dti_checkpoint.job_id, "%s", job);
    else
        snprintf(dti_checkpoint.job_id, sizeof dti_checkpoint.job_id, "%.64s-pid%ld-%08x",
                 dti_checkpoint.host, (long)getpid(), (unsigned)random);
    return DT_OK;
}

/* dtrun's default has the name of the job. Nobody has asked for it, and the job may never save. */
static bool is_chosen_directory(void)
{
    const char *slash = strrchr(dti_checkpoint.path, '/');

    return !slash || strcmp(slash + 1, dti_checkpoint.job_id) != 0;
}

/* Collective until it has succeeded once. */
static dt_result_t set_up_store(struct dt_comm *c)
{
    dt_result_t result;

    if (dti_checkpoint.ready)
        return DT_OK;
    result = set_directory();
    if (result == DT_OK)
        result = set_job_id();
    dti_checkpoint.store = (struct dt_store){
        .group = { (uint32_t)c->rank, (uint32_t)c->size, &dti_checkpoint.ranks, group_min,
                   group_sum, group_broadcast },
        .path = dti_checkpoint.path,
        .host = dti_checkpoint.host,
        .leads_host = c->local_rank == 0,
        .hosts = c->nodes,
        .chosen = is_chosen_directory(),
        .owner = { dti_checkpoint.job_id, c->world->generation },
        /* dtrun sets these two until it knows of a commit */
        .fresh = strcmp(env_or_empty(DT_ENV_FRESH), "1") == 0,
        .resume = strcmp(env_or_empty(DT_ENV_RESUME), "1") == 0,
        .arg = c,
        .committed = on_committed,
        .note = log_note,
    };
    result = dt_group_agree(&dti_checkpoint.store.group, result);
    dti_checkpoint.ready = result == DT_OK;
    if (result == DT_OK)
        dt_registry_close();
    return result;
}

void dt_checkpoint_end(void)
{
    dt_store_release(&dti_checkpoint.store);
    dt_background_end();
    dt_registry_free();
}

void dt_checkpoint_forked(void)
{
    dt_owner_forget(&dti_checkpoint.store.ownership);
}

static dt_result_t begin_checkpoint_call(enum dt_call_kind kind, struct dt_comm **c,
                                         struct checkpoint_call *call)
{
    dt_result_t result = dt_context_enter(dt_hostshm_call_name(kind), DT_WORLD, c);

    if (result != DT_OK)
        return dt_error_report_refusal(NULL, 0, kind, result);
    dt_background_await();
    dti_checkpoint.ranks = (struct checkpoint_ranks){ *c, kind };
    *call = (struct checkpoint_call){ .number = (*c)->calls + 1, .at_ns = dt_clock_ns() };
    dt_error_save(&call->before);
    return DT_OK;
}

/* Completes the store's error. A failure of DT_WORLD itself has already been described. */
static void complete_failure(const struct dt_comm *c, const struct checkpoint_call *call)
{
    dt_error_info_t *e = dt_error_details();

    if (e->operation[0])
        return;
    dt_error_report_call(dti_checkpoint.ranks.call);
    dt_comm_name(c->id, e->comm);
    e->call = call->number;
    e->seconds = (double)(dt_clock_ns() - call->at_ns) / 1e9;
    if (e->rank >= 0)
        snprintf(e->host, sizeof e->host, "%s", dt_world_host(c->world, (uint32_t)e->rank));
    if (e->code == DT_ERR_NOMEM && !e->error)
        e->error = ENOMEM;
}

static dt_result_t end_checkpoint_call(struct dt_comm *c, const struct checkpoint_call *call,
                                       dt_result_t result)
{
    if (result == DT_OK) /* errors inside a call that succeeded do not count */
        dt_error_restore(&call->before);
    else
        complete_failure(c, call);
    dt_context_leave(c);
    return result;
}

dt_result_t dt_checkpoint_save(int64_t step)
{
    struct checkpoint_call call;
    struct dt_comm *c;
    dt_result_t result = begin_checkpoint_call(DT_CALL_SAVE, &c, &call);

    if (result != DT_OK)
        return result;
    result = set_up_store(c);
    if (result == DT_OK)
        result = dt_store_save(&dti_checkpoint.store, dt_registry_buffers(c, DT_CALL_SAVE), step);
    return end_checkpoint_call(c, &call, result);
}

/* In the background thread. c is a communicator of its own, but the program's call was on
 * DT_WORLD. */
static dt_result_t save_in_background(struct dt_comm *c, const struct dt_buffers *copies)
{
    dt_result_t result;

    dti_checkpoint.ranks.comm = c;
    result = dt_store_save(&dti_checkpoint.store, copies, dti_checkpoint.background.step);
    if (result != DT_OK)
        complete_failure(dti_checkpoint.store.arg, &dti_checkpoint.background.call);
    return result;
}

/* Copies nothing in a job that has been stopped, because the copies might wait for ever for a GPU.
 */
static dt_result_t prepare_isave(struct dt_comm *c, int64_t step, dt_request_t *request)
{
    dt_result_t result = dt_comm_check(c);

    if (result == DT_OK && step < 0)
        result = dt_store_fail_step(step);
    if (result != DT_OK)
        return result;
    return dt_background_prepare(c, dt_registry_buffers(c, DT_CALL_ISAVE), request);
}

/* All ranks begin the save, or none does. */
static dt_result_t begin_isave(struct dt_comm *c, const struct checkpoint_call *call, int64_t step,
                               dt_request_t *request)
{
    const struct dt_group *g = &dti_checkpoint.store.group;
    dt_result_t result = set_up_store(c);

    if (result == DT_OK)
        result = dt_background_open(c, g);
    if (result == DT_OK)
        result = dt_group_agree(g, prepare_isave(c, step, request));
    if (result != DT_OK) {
        dt_request_release(request);
        return result;
    }
    dti_checkpoint.background.step = step;
    dti_checkpoint.background.call = *call;
    return dt_background_start(c, save_in_background, request);
}

dt_result_t dt_checkpoint_isave(int64_t step, dt_request_t *request)
{
    struct checkpoint_call call;
    struct dt_comm *c;
    dt_result_t result;

    if (!request) {
        result = dt_fail(DT_ERR_ARG, "dt_checkpoint_isave: the pointer to the request is NULL");
        return dt_error_report_refusal(NULL, 0, DT_CALL_ISAVE, result);
    }
    *request = (dt_request_t){ 0 };
    result = begin_checkpoint_call(DT_CALL_ISAVE, &c, &call);
    if (result != DT_OK)
        return result;
    return end_checkpoint_call(c, &call, begin_isave(c, &call, step, request));
}

dt_result_t dt_checkpoint_restore(int64_t *step)
{
    struct checkpoint_call call;
    struct dt_comm *c;
    dt_result_t result;

    if (!step) {
        result = dt_fail(DT_ERR_ARG, "dt_checkpoint_restore: the pointer to the step is NULL");
        return dt_error_report_refusal(NULL, 0, DT_CALL_RESTORE, result);
    }
    result = begin_checkpoint_call(DT_CALL_RESTORE, &c, &call);
    if (result != DT_OK)
        return result;
    report_step(c, -1, DT_RESTORE_BEGUN);
    result = set_up_store(c);
    if (result == DT_OK)
        result =
            dt_store_restore(&dti_checkpoint.store, dt_registry_buffers(c, DT_CALL_RESTORE), step);
    if (result == DT_OK)
        report_step(c, *step, DT_RESTORED);
    return end_checkpoint_call(c, &call, result);
}
