#include "runtime/gpu/shared.h"

#include <stdio.h>
#include <string.h>

#include "runtime/comm/collective.h"
#include "runtime/gpu/device/errand.h"
#include "runtime/gpu/device/life.h"
#include "runtime/gpu/device/provision.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/devicecall.h"
#include "runtime/gpu/fold/steps.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/launchorder.h"
#include "runtime/gpu/nccl.h"
#include "runtime/gpu/ncclcalls.h"
#include "runtime/gpu/ncclinit.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/operation.h"
#include "runtime/gpu/sharedopen.h"
#include "runtime/kernels/dtype.h"

enum {
    /* bytes of a slot, equal on all ranks */
    SLOT_MIN = 1024 * 1024,
    SLOT_MAX = 16 * 1024 * 1024,
    SETTLE_MS = 1000,
    FREE_MS = 200,
    STEPS_AHEAD = 8, /* that the driver's queue takes, however many ranks share the GPU */
};

/* ---- whether a device can be shared ---- */

static bool has_attribute(CUdevice device, CUdevice_attribute attribute)
{
    int value = 0;

    return dt_cuda()->cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS && value;
}

/* Only the device's name shows this: "NVIDIA A100-SXM4-40GB MIG 1g.5gb". */
static bool is_mig(CUdevice device)
{
    char name[256] = "";

    return dt_cuda()->cuDeviceGetName(name, sizeof name, device) || strstr(name, " MIG ");
}

enum dt_gpu_unable dt_shared_unable(CUdevice device)
{
    if (!has_attribute(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
        return DT_GPU_NO_VIRTUAL_MEMORY;
    if (!has_attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
        return DT_GPU_NO_DESCRIPTORS;
    if (!has_attribute(device, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS))
        return DT_GPU_NO_STREAM_WORDS;
    return is_mig(device) ? DT_GPU_MIG : DT_GPU_ABLE;
}

/* NCCL only combines the groups' results. The kernel does the rest of the operation. */
static dt_op_t op_between(const struct dt_operation *o)
{
    return o->op == DT_AVG ? DT_SUM : o->op;
}

bool dt_shared_serves(const struct dt_comm *c, const struct dt_operation *o)
{
    struct dt_operation between = *o;

    between.op = op_between(o);
    between.how.size = 0;
    return dt_gpu_steps_serve(o) &&
           (c->gpu->shared.groups.n == 1 || dt_ncclcalls_serves(&between, c->gpu->shared.groups.n));
}

dt_result_t dt_shared_begin(struct dt_comm *c, const struct dt_gpu_offer *offers)
{
    if (dt_gpu_watch_begin() &&
        dt_gpu_groups_fill(&c->gpu->shared.groups, offers, c->size, c->rank))
        return DT_OK;
    return dt_comm_fail_no_memory(c);
}

/* ---- the end ---- */

/* Whether this rank's stream has come to its end. Releases the words again and again, because
 * another rank's stream may overwrite a released word with an ordinary step. */
static bool has_ended(void *shared)
{
    const struct dt_shared *s = shared;

    dt_gpu_words_release(&s->words, s->step);
    return dt_cuda()->cuStreamQuery(s->stream) != CUDA_ERROR_NOT_READY;
}

/* Runs in a thread of its own: the driver may make it wait for whatever the GPU does. */
static void free_copy(void *copy)
{
    struct dt_shared *s = copy;
    struct dt_cuda_scope scope;

    if (!dt_gpu_enter_life(&scope, s->context, s->life))
        return;
    dt_shared_free(s);
    dt_cuda_leave(&scope);
}

static void free_within(unsigned ms, const struct dt_shared *s)
{
    struct dt_errand *freeing = dt_errand_start(free_copy, NULL, s, sizeof *s);

    if (freeing)
        dt_errand_await(freeing, ms);
    dt_errand_end(freeing);
}

/* Leaks what the stream still uses after SETTLE_MS. */
static void give_up(struct dt_comm *c)
{
    struct dt_shared *s = &c->gpu->shared;

    if (s->words.memory)
        dt_gpu_words_release(&s->words, s->step);
    dt_ncclcomm_abort(c);
    if (s->stream && (!s->words.memory || dt_gpu_wait_at_most(SETTLE_MS, has_ended, s)))
        free_within(FREE_MS, s);
    *s = (struct dt_shared){ .groups = s->groups };
}

/* If the program has destroyed the context, that has freed what was made there, and the arena is
 * leaked. */
void dt_shared_close(struct dt_comm *c)
{
    struct dt_shared *s = &c->gpu->shared;
    struct dt_cuda_scope scope;

    if (s->context && dt_gpu_enter_life(&scope, s->context, s->life)) {
        dt_shared_free(s);
        dt_cuda_leave(&scope);
    }
    dt_gpu_words_close(&s->words);
    dt_gpu_groups_free(&s->groups);
    *s = (struct dt_shared){ 0 };
}

/* ---- opening ---- */

static size_t slot_for(const struct dt_operation *o)
{
    size_t bytes = dt_gpu_steps_longest(o), slot = SLOT_MIN;

    while (slot < bytes && slot < SLOT_MAX)
        slot *= 2;
    return slot;
}

/* Leaders are NCCL's ranks, numbered like their groups. */
static dt_result_t connect_leaders(struct dt_comm *c, const struct dt_gpu_order *order)
{
    const struct dt_gpu_groups *g = &c->gpu->shared.groups;
    int rank = dt_gpu_groups_leads(g) ? dt_gpu_groups_own(g) : -1;

    return g->n == 1 ? DT_OK : dt_ncclinit_connect(c, order, rank, g->n);
}

static dt_result_t open_all(struct dt_comm *c, const struct dt_gpu_order *order, size_t slot,
                            char why[DT_GPU_TEXT])
{
    bool first = !c->gpu->shared.slot;
    dt_result_t r = dt_shared_open(c, order, slot, why);

    return r == DT_OK && !*why && first ? connect_leaders(c, order) : r;
}

/* Matches the calls first, so that ranks with different calls notice before they wait for each
 * other here. */
static dt_result_t match_and_open(struct dt_comm *c, const struct dt_operation *o, size_t slot,
                                  char why[DT_GPU_TEXT])
{
    dt_result_t r = dt_comm_match(c, o->kind->call, dt_gpu_call(o));

    return r == DT_OK ? open_all(c, &o->order, slot, why) : r;
}

dt_result_t dt_shared_reserve(struct dt_comm *c, const struct dt_gpu_order *order,
                              char why[DT_GPU_TEXT])
{
    const struct dt_shared *s = &c->gpu->shared;
    struct dt_cuda_scope scope;
    CUresult result = dt_gpu_enter_made(&scope, s->context, s->life, order->context);
    dt_result_t r = DT_OK;

    if (result)
        return dt_gpu_fail(c, scope.failed, result);
    if (s->slot < SLOT_MAX)
        r = open_all(c, order, SLOT_MAX, why);
    if (r != DT_OK)
        give_up(c);
    dt_cuda_leave(&scope);
    return r;
}

dt_result_t dt_shared_prepare(struct dt_comm *c, const struct dt_operation *o,
                              char why[DT_GPU_TEXT])
{
    struct dt_shared *s = &c->gpu->shared;
    size_t slot = slot_for(o);
    struct dt_cuda_scope scope;
    CUresult result;
    dt_result_t r;

    if (s->slot >= slot)
        return DT_OK;
    result = dt_gpu_enter_made(&scope, s->context, s->life, o->order.context);
    if (result)
        return dt_gpu_fail(c, scope.failed, result);
    r = match_and_open(c, o, slot, why);
    if (r != DT_OK)
        give_up(c);
    dt_cuda_leave(&scope);
    return r;
}

/* ---- a step ---- */

struct queueing {
    struct dt_comm *c;
    struct dt_shared *s;
    const struct dt_operation *o;
    struct dt_gpu_steps steps;
    struct dt_launchorder_call launch;
    struct dt_gpu_arrival arrival;
    struct dt_gpu_step step;
    const char *function; /* the last function called, for error messages */
};

static CUdeviceptr slot_of(const struct dt_shared *s, int member)
{
    return s->arena.address + (size_t)member * s->slot;
}

static CUresult queue_copy(struct queueing *q, CUdeviceptr to, CUdeviceptr from)
{
    size_t bytes = q->step.count * dt_dtype_size(q->o->dtype);

    q->function = "cuMemcpyDtoDAsync";
    return to == from ? CUDA_SUCCESS
                      : dt_cuda()->cuMemcpyDtoDAsync_v2(to, from, bytes, q->s->stream);
}

static CUresult queue_write_word(struct queueing *q, enum dt_gpu_word word)
{
    q->function = "cuStreamWriteValue32";
    return dt_gpu_words_write(&q->s->words, q->s->stream, (uint32_t)q->c->local_rank, word,
                              q->s->step);
}

static CUresult queue_await_word(struct queueing *q, int member, enum dt_gpu_word word,
                                 uint32_t step)
{
    uint32_t rank = (uint32_t)q->s->groups.mine[member];

    q->function = "cuStreamWaitValue32";
    return dt_gpu_words_wait(&q->s->words, q->s->stream, dt_comm_local_rank(q->c, rank), word,
                             step);
}

static CUresult queue_await_others(struct queueing *q, enum dt_gpu_word word, uint32_t step)
{
    CUresult result = CUDA_SUCCESS;

    for (int member = 1; !result && member < q->s->groups.members; member++)
        result = queue_await_word(q, member, word, step);
    return result;
}

/* Results also go into the leader's slot, so it is free only once all have taken the previous
 * result. */
static CUresult queue_give(struct queueing *q)
{
    const struct dt_gpu_groups *g = &q->s->groups;
    CUresult result = CUDA_SUCCESS;

    if (dt_gpu_groups_leads(g))
        result = queue_await_others(q, DT_GPU_TAKEN, q->s->step - 1);
    if (!result && (q->step.folds || q->step.from == q->c->rank))
        result = queue_copy(q, slot_of(q->s, g->me), (CUdeviceptr)(uintptr_t)q->step.in);
    return result || dt_gpu_groups_leads(g) ? result : queue_write_word(q, DT_GPU_GIVEN);
}

static CUresult queue_take(struct queueing *q)
{
    const struct dt_gpu_groups *g = &q->s->groups;
    CUresult result = CUDA_SUCCESS;

    if (!dt_gpu_groups_leads(g))
        result = queue_await_word(q, 0, DT_GPU_RESULT, q->s->step);
    if (!result && (q->step.to == DT_GPU_ALL_RANKS || q->step.to == q->c->rank))
        result = queue_copy(q, (CUdeviceptr)(uintptr_t)q->step.out, slot_of(q->s, 0));
    return result || dt_gpu_groups_leads(g) ? result : queue_write_word(q, DT_GPU_TAKEN);
}

/* ---- the leader's part of a step ---- */

/* What a group's sum is divided by before it is rounded. With several groups, an average of DT_F16
 * might otherwise overflow. Dividing by a power of two loses no digits. */
static double early_divisor(const struct queueing *q)
{
    const struct dt_gpu_groups *g = &q->s->groups;
    int divisor = 1;

    if (q->o->op != DT_AVG)
        return 1;
    if (g->n == 1)
        return q->c->size;
    while (q->o->dtype == DT_F16 && divisor < g->most)
        divisor *= 2;
    return divisor;
}

static CUresult queue_fold(struct queueing *q, struct dt_gpu_fold f)
{
    f.dst = f.src = slot_of(q->s, 0);
    f.stride = q->s->slot;
    f.count = q->step.count;
    f.dtype = q->o->dtype;
    f.op = q->o->op;
    q->function = "cuLaunchKernel";
    if (f.n == 1 && f.prescale == 1 && f.divisor == 1 && f.postscale == 1)
        return CUDA_SUCCESS;
    return dt_gpu_folder_queue(q->s->kernel, f, q->s->stream);
}

static CUresult queue_group_fold(struct queueing *q)
{
    const dt_all_reduce_options_t *how = &q->o->how;
    bool finishes = q->s->groups.n == 1; /* else queue_finish does */
    struct dt_gpu_fold f = { .n = (uint32_t)q->s->groups.members,
                             .prescale = how->size ? how->prescale : 1,
                             .divisor = early_divisor(q),
                             .postscale = how->size && finishes ? how->postscale : 1 };

    return queue_fold(q, f);
}

/* Finishes the operation after NCCL has combined the groups' results. */
static CUresult queue_finish(struct queueing *q)
{
    const dt_all_reduce_options_t *how = &q->o->how;
    struct dt_gpu_fold f = { .n = 1,
                             .prescale = 1,
                             .divisor = q->o->op == DT_AVG ? q->c->size / early_divisor(q) : 1,
                             .postscale = how->size ? how->postscale : 1 };

    return q->step.folds ? queue_fold(q, f) : CUDA_SUCCESS;
}

static CUresult queue_group_result(struct queueing *q)
{
    const struct dt_gpu_groups *g = &q->s->groups;
    CUresult result = queue_await_others(q, DT_GPU_GIVEN, q->s->step);

    if (!result && q->step.folds)
        return queue_group_fold(q);
    for (int member = 1; !result && member < g->members; member++) {
        if (g->mine[member] == q->step.from)
            result = queue_copy(q, slot_of(q->s, 0), slot_of(q->s, member));
    }
    return result;
}

static enum dt_call_kind kind_between(const struct dt_gpu_step *step)
{
    if (!step->folds)
        return DT_CALL_BROADCAST;
    return step->to == DT_GPU_ALL_RANKS ? DT_CALL_ALL_REDUCE : DT_CALL_REDUCE;
}

static dt_result_t queue_between_groups(struct queueing *q)
{
    const struct dt_gpu_step *step = &q->step;
    const int *group_of = q->s->groups.of;
    struct dt_operation_kind kind = { .name = q->o->kind->name, .call = kind_between(step) };
    void *slot = (void *)(uintptr_t)slot_of(q->s, 0);
    struct dt_operation between = { .kind = &kind,
                                    .in = slot,
                                    .out = slot,
                                    .count = step->count,
                                    .dtype = q->o->dtype,
                                    .op = op_between(q->o) };

    if (!step->folds)
        between.root = group_of[step->from];
    else if (step->to != DT_GPU_ALL_RANKS)
        between.root = group_of[step->to];
    return dt_nccl_queue(q->c, &between, q->s->stream, &q->arrival);
}

static dt_result_t report_queued(struct queueing *q, CUresult result)
{
    return result ? dt_gpu_coll_error(q->c, &q->c->coll_error, q->function, result) : DT_OK;
}

static dt_result_t queue_leader_part(struct queueing *q)
{
    dt_result_t r = report_queued(q, queue_group_result(q));

    if (r == DT_OK && q->s->groups.n > 1) {
        r = queue_between_groups(q);
        if (r == DT_OK)
            r = report_queued(q, queue_finish(q));
    }
    return r == DT_OK ? report_queued(q, queue_write_word(q, DT_GPU_RESULT)) : r;
}

static dt_result_t queue_step(struct queueing *q)
{
    dt_result_t r;

    q->s->step++;
    r = report_queued(q, queue_give(q));
    if (r == DT_OK && dt_gpu_groups_leads(&q->s->groups))
        r = queue_leader_part(q);
    return r == DT_OK ? report_queued(q, queue_take(q)) : r;
}

/* ---- a call ---- */

static dt_result_t queue_call(struct queueing *q)
{
    const struct dt_cuda *cuda = dt_cuda();
    dt_result_t r;

    q->function = "cuStreamWaitEvent";
    r = report_queued(q, dt_gpu_order_follow(&q->o->order, q->s->stream));
    q->function = "cuEventRecord";
    if (r == DT_OK)
        r = report_queued(q, cuda->cuEventRecord(q->s->begun, q->s->stream));
    for (size_t i = 0; r == DT_OK && i < q->steps.n; i++) {
        q->step = dt_gpu_steps_at(&q->steps, q->o, i);
        r = queue_step(q);
        if (r == DT_OK)
            r = dt_comm_check_stop(q->c, &q->c->coll_error);
    }
    q->function = "cuEventRecord";
    return r == DT_OK ? report_queued(q, cuda->cuEventRecord(q->s->done, q->s->stream)) : r;
}

/* If the words were released, what the stream has copied is wrong. A rank that gives up stops the
 * communicator before it releases them, so the reason is known here. */
static dt_result_t result_of_call(const struct queueing *q)
{
    struct dt_comm *c = q->c;
    dt_result_t r;

    if (!dt_gpu_words_released(&q->s->words))
        return DT_OK;
    r = dt_comm_check_stop(c, &c->coll_error);
    if (r != DT_OK)
        return r;
    return dt_gpu_coll_error(c, &c->coll_error, "cuStreamWaitValue32", CUDA_ERROR_UNKNOWN);
}

static dt_result_t await_call(struct queueing *q)
{
    struct dt_comm *c = q->c;

    for (unsigned turn = 0;; turn++) {
        CUresult result = dt_cuda()->cuEventQuery(q->s->done);
        dt_result_t r;

        if (result == CUDA_SUCCESS)
            return result_of_call(q);
        if (result != CUDA_ERROR_NOT_READY)
            return dt_gpu_coll_error(c, &c->coll_error, "cuEventQuery", result);
        r = dt_nccl_check(c);
        if (r == DT_OK)
            r = dt_gpu_wait_on(c, &q->arrival, turn);
        if (r != DT_OK)
            return r;
    }
}

static void release_stuck(struct dt_comm *c)
{
    const struct dt_shared *s = &c->gpu->shared;

    dt_gpu_words_release(&s->words, s->step);
    if (c->gpu->nccl.comm)
        dt_ncclcomm_end_stuck(c);
}

/* The driver blocks this thread if its queue is full, as steps of a large call may make it while
 * the stream waits for another rank. Then another thread ends that wait once c has been stopped. */
static dt_result_t queue_and_await(struct queueing *q)
{
    struct dt_gpu_watched *watched = &q->s->watched;
    bool watches = q->steps.n > 1;
    dt_result_t r;

    watched->comm = q->c;
    watched->stuck = release_stuck;
    if (watches)
        dt_gpu_watch(watched);
    r = queue_call(q);
    dt_launchorder_end(&q->launch);
    dt_unlaunched_end(q->o->unlaunched);
    if (r == DT_OK)
        r = await_call(q);
    if (watches)
        dt_gpu_unwatch(watched);
    return r;
}

static dt_result_t make_shared_call(struct dt_comm *c, void *arg)
{
    struct queueing *q = arg;
    dt_result_t r = dt_nccl_await_turn(c, &q->launch);

    q->arrival = (struct dt_gpu_arrival){ .begun = q->s->begun, .kind = q->o->kind->call };
    c->shm.algorithm = "shared";
    c->leaders.algorithm = q->s->groups.n > 1 ? "nccl" : NULL;
    dt_gpu_provision_forbid(c);
    if (r == DT_OK)
        r = queue_and_await(q);
    dt_gpu_provision_allow();
    return r;
}

/* A thread that the driver blocks cannot end a wait for the program's own work, so a call of many
 * steps lets that work end first. Only then does it take its place in the order of launches: other
 * calls, for which that work may be waiting, would wait behind it. */
static dt_result_t match_and_make(struct dt_comm *c, const struct dt_operation *o)
{
    struct dt_shared *s = &c->gpu->shared;
    struct queueing q = { .c = c, .s = s, .o = o, .steps = dt_gpu_steps_of(o, c->size, s->slot) };
    dt_result_t r = q.steps.n > STEPS_AHEAD ? dt_gpu_await_order(c, &o->order) : DT_OK;

    if (r == DT_OK)
        r = dt_nccl_agree(c, o, &q.launch);
    if (r == DT_OK)
        r = dt_comm_match_then(c, o->kind->call, dt_gpu_call(o), make_shared_call, &q);
    dt_launchorder_end(&q.launch);
    return r;
}

dt_result_t dt_shared_make(struct dt_comm *c, const struct dt_operation *o)
{
    const struct dt_shared *s = &c->gpu->shared;
    struct dt_cuda_scope scope;
    CUresult result = dt_gpu_enter_made(&scope, s->context, s->life, o->order.context);
    dt_result_t r;

    if (result)
        return dt_gpu_fail(c, scope.failed, result);
    r = match_and_make(c, o);
    if (r != DT_OK)
        give_up(c);
    dt_cuda_leave(&scope);
    return r;
}
