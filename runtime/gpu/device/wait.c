#include "runtime/gpu/device/wait.h"

#include <sched.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/comm/comm.h"
#include "runtime/gpu/nvidia/cuda.h"

enum {
    YIELDS = 2000,            /* about a millisecond, within which most calls end */
    NAP_NS = 50 * 1000,       /* the first nap after that */
    NAP_MAX_NS = 1000 * 1000, /* the longest */
    NAPS_ALIKE = 64,          /* naps before the next ones are NAP_NS longer */
    SETTLE_MS = 1000,
    LONG_WAIT_NS = 1000 * 1000, /* after which dtrun is told of a wait */
};

/* If naps stayed short, a long wait would take a large part of a CPU from the program. But each
 * nap is a small fraction of the wait so far, so it delays the call's end little. */
static long nap_ns(unsigned naps)
{
    long ns = NAP_NS * (1 + (long)(naps / NAPS_ALIKE));

    return ns < NAP_MAX_NS ? ns : NAP_MAX_NS;
}

void dt_gpu_pause(unsigned turn)
{
    if (turn < YIELDS)
        sched_yield();
    else
        nanosleep(&(struct timespec){ .tv_nsec = nap_ns(turn - YIELDS) }, NULL);
}

bool dt_gpu_wait_at_most(unsigned ms, bool (*over)(void *arg), void *arg)
{
    uint64_t until = dt_clock_ns() + (uint64_t)ms * 1000000;

    for (unsigned turn = 0; !over(arg); turn++) {
        if (dt_clock_ns() > until)
            return false;
        dt_gpu_pause(turn);
    }
    return true;
}

dt_result_t dt_gpu_coll_error(const struct dt_comm *c, struct dt_coll_error *t,
                              const char *function, CUresult error)
{
    char why[DT_CUDA_TEXT];

    dt_cuda_await_exit(error);
    dt_coll_error(t, dt_cuda_code(error), (uint32_t)c->world->rank);
    dt_fail(t->code, "%s", dt_cuda_describe(function, error, why));
    t->why = dt_last_error();
    return t->code;
}

static dt_result_t time_out(const struct dt_comm *c, struct dt_coll_error *t)
{
    dt_coll_error(t, DT_ERR_TIMEOUT, (uint32_t)c->world->rank);
    t->why = "its GPU has not finished the work that was queued before this call";
    return DT_ERR_TIMEOUT;
}

dt_result_t dt_gpu_await(const struct dt_comm *c, struct dt_coll_error *t, CUevent done,
                         uint64_t until_ns)
{
    for (unsigned turn = 0;; turn++) {
        CUresult result = dt_cuda()->cuEventQuery(done);
        dt_result_t r;

        if (result == CUDA_SUCCESS)
            return DT_OK;
        if (result != CUDA_ERROR_NOT_READY)
            return dt_gpu_coll_error(c, t, "cuEventQuery", result);
        r = dt_comm_check_stop(c, t);
        if (r != DT_OK)
            return r;
        if (until_ns && dt_clock_ns() > until_ns)
            return time_out(c, t);
        dt_gpu_pause(turn);
    }
}

static bool is_idle(void *stream)
{
    return dt_cuda()->cuStreamQuery(stream) != CUDA_ERROR_NOT_READY;
}

bool dt_gpu_settles(CUstream stream)
{
    return dt_gpu_wait_at_most(SETTLE_MS, is_idle, stream);
}

/* Tells dtrun which call the rank is in. A rank whose GPU delays the call counts as one that has
 * not reached it yet. */
static void tell(struct dt_comm *c, struct dt_gpu_arrival *a, enum dt_call_kind in)
{
    const struct dt_call call = { .number = c->calls - (in != a->kind) };

    a->told = in;
    dt_comm_pass_for(c, &call, in);
}

void dt_gpu_launch_begins(struct dt_comm *c, struct dt_gpu_arrival *a)
{
    a->launching = true;
    a->arrived = false;
    tell(c, a, DT_CALL_GPU_LAUNCH);
}

void dt_gpu_launch_ends(struct dt_comm *c, struct dt_gpu_arrival *a)
{
    a->launching = false;
    tell(c, a, a->kind);
}

static enum dt_call_kind find_delay(const struct dt_gpu_arrival *a)
{
    if (dt_cuda()->cuEventQuery(a->begun) == CUDA_ERROR_NOT_READY)
        return DT_CALL_GPU_COPY;
    return a->launching ? DT_CALL_GPU_LAUNCH : a->kind;
}

static void tell_arrival(struct dt_comm *c, struct dt_gpu_arrival *a)
{
    enum dt_call_kind in;

    if (!a->since_ns)
        a->since_ns = dt_clock_ns();
    if (a->arrived || dt_clock_ns() - a->since_ns < LONG_WAIT_NS)
        return;
    in = find_delay(a);
    a->arrived = in == a->kind;
    if (in != (a->told ? a->told : a->kind))
        tell(c, a, in);
}

dt_result_t dt_gpu_wait_on(struct dt_comm *c, struct dt_gpu_arrival *a, unsigned turn)
{
    dt_result_t r = dt_comm_check_stop(c, &c->coll_error);

    if (r != DT_OK)
        return r;
    if (a)
        tell_arrival(c, a);
    dt_gpu_pause(turn);
    return DT_OK;
}
