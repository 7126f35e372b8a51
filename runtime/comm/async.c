#include "runtime/comm/async.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/futex.h"
#include "runtime/wire/thread.h"

void dt_async_open(struct dt_async *a, struct dt_ticketlock *lock)
{
    a->started = false;
    a->ending = false;
    a->first = NULL;
    a->last = NULL;
    a->lock = lock;
    atomic_store(&a->unwoken, false); /* a thread that waits for the lock may be reading it */
    atomic_store(&a->ahead, 0);
    atomic_store(&a->n_ahead, 0);
    a->limit_ms = 0;
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->submitted, NULL);
}

/* NULL: the thread is to end. */
static struct dt_task *next_task(struct dt_async *a)
{
    struct dt_task *task;

    pthread_mutex_lock(&a->mutex);
    while (!a->first && !a->ending)
        pthread_cond_wait(&a->submitted, &a->mutex);
    task = a->first;
    if (task)
        a->first = task->next;
    pthread_mutex_unlock(&a->mutex);
    return task;
}

/* ---- waiting for any of several tasks ---- */

static struct {
    _Atomic uint32_t done;    /* tasks of this process that are done */
    _Atomic uint32_t waiting; /* threads that wait for any of several tasks */
} dti_any;

void dt_tasks_begin_any(void)
{
    atomic_fetch_add(&dti_any.waiting, 1);
}

void dt_tasks_end_any(void)
{
    atomic_fetch_sub(&dti_any.waiting, 1);
}

uint32_t dt_tasks_done(void)
{
    return atomic_load(&dti_any.done);
}

void dt_tasks_await_any(uint32_t seen)
{
    dt_futex_wait(&dti_any.done, seen);
}

static void count_done(void)
{
    atomic_fetch_add(&dti_any.done, 1);
    if (atomic_load(&dti_any.waiting))
        dt_futex_wake_all(&dti_any.done);
}

/* ---- tasks that are about to end ---- */

static _Atomic uint32_t dti_ending; /* number of these tasks */
static _Thread_local bool dti_ends; /* the task that this thread executes is one of them */

void dt_async_end_soon(void)
{
    dti_ends = true;
    atomic_fetch_add(&dti_ending, 1);
}

static void note_end(void)
{
    if (dti_ends)
        atomic_fetch_sub(&dti_ending, 1);
    dti_ends = false;
}

void dt_async_await_ends(void)
{
    while (atomic_load(&dti_ending))
        sched_yield();
}

/* ---- executing tasks ---- */

/* The owner may free the task as soon as done is set, so dt_futex_wake_all uses its address
 * only. */
void dt_async_make(struct dt_async *a, struct dt_task *task)
{
    dt_ticketlock_await(a->lock, task->number);
    a->limit_ms = task->limit_ms;
    task->result = task->run(task);
    if (task->result != DT_OK)
        dt_error_save(&task->error);
    dt_ticketlock_leave(a->lock);
    if (task->ahead)
        atomic_fetch_sub(&a->n_ahead, 1);
    atomic_store_explicit(&task->done, 1, memory_order_release);
    dt_futex_wake_all(&task->done);
    count_done();
    note_end();
}

static void *async_thread(void *arg)
{
    struct dt_async *a = arg;
    struct dt_task *task;

    atomic_store(&a->self, pthread_self());
    while ((task = next_task(a)))
        dt_async_make(a, task);
    atomic_store(&a->self, 0);
    return NULL;
}

/* glibc reports a lack of memory for the stack as EAGAIN, too. It starts threads with clone3, and
 * with clone instead only if clone3 fails with ENOSYS. */
static dt_result_t fail_thread(int error)
{
    const char *advice = "";

    if (error == EAGAIN)
        advice = "; raise ulimit -u (RLIMIT_NPROC) or the control group's pids.max, or free memory";
    else if (error == EPERM)
        advice = "; a seccomp filter refuses clone3, as that of Docker before 20.10.10 does: "
                 "update Docker, or start the container with --security-opt seccomp=unconfined";
    dt_fail(DT_ERR_NOMEM, "no thread for calls in the background can be started: %s%s",
            strerror(error), advice);
    dt_error_details()->error = error;
    return DT_ERR_NOMEM;
}

static dt_result_t start_thread(struct dt_async *a)
{
    int error = a->started ? 0 : dt_thread_start(&a->thread, async_thread, a);

    a->started = error == 0;
    return error ? fail_thread(error) : DT_OK;
}

dt_result_t dt_async_start(struct dt_async *a)
{
    dt_result_t r;

    pthread_mutex_lock(&a->mutex);
    r = start_thread(a);
    pthread_mutex_unlock(&a->mutex);
    return r;
}

static void append_task(struct dt_async *a, struct dt_task *task)
{
    if (a->first)
        a->last->next = task;
    else
        a->first = task;
    a->last = task;
    if (task->ahead)
        atomic_store(&a->unwoken, true);
    else
        pthread_cond_signal(&a->submitted);
}

void dt_async_wake(struct dt_async *a)
{
    if (!atomic_load_explicit(&a->unwoken, memory_order_relaxed))
        return;
    pthread_mutex_lock(&a->mutex);
    atomic_store(&a->unwoken, false);
    pthread_cond_signal(&a->submitted);
    pthread_mutex_unlock(&a->mutex);
}

static void prepare_task(struct dt_task *task)
{
    task->next = NULL;
    atomic_init(&task->done, 0);
}

/* Draws the task's number only if all calls that hold the lock or wait for it were submitted ahead.
 */
static bool draw_ahead(struct dt_async *a, struct dt_task *task)
{
    uint32_t next = atomic_load(&a->ahead);

    if (!(atomic_load(&a->n_ahead) && dt_ticketlock_draw_if(a->lock, next)) &&
        !dt_ticketlock_try(a->lock, &next))
        return false;
    atomic_fetch_add(&a->n_ahead, 1);
    task->number = next;
    atomic_store(&a->ahead, next + 1);
    return true;
}

bool dt_async_may_go_ahead(struct dt_async *a)
{
    bool may;

    pthread_mutex_lock(&a->mutex);
    may = !dt_ticketlock_is_held(a->lock) ||
          (atomic_load(&a->n_ahead) && dt_ticketlock_is_next(a->lock, atomic_load(&a->ahead)));
    pthread_mutex_unlock(&a->mutex);
    return may;
}

static dt_result_t submit_task(struct dt_async *a, struct dt_task *task, bool drawn)
{
    dt_result_t r;

    pthread_mutex_lock(&a->mutex);
    r = start_thread(a);
    if (r == DT_OK && task->ahead && !draw_ahead(a, task))
        r = DT_ERR_UNSUPPORTED;
    else if (r == DT_OK && !task->ahead && !drawn)
        task->number = dt_ticketlock_draw(a->lock);
    if (r == DT_OK)
        append_task(a, task);
    pthread_mutex_unlock(&a->mutex);
    return r;
}

dt_result_t dt_async_submit(struct dt_async *a, struct dt_task *task)
{
    prepare_task(task);
    return submit_task(a, task, false);
}

void dt_async_await_ahead(struct dt_async *a)
{
    while (atomic_load(&a->n_ahead))
        sched_yield();
}

dt_result_t dt_async_pass_on(struct dt_async *a, struct dt_task *task)
{
    return submit_task(a, task, true);
}

bool dt_async_hold_back(struct dt_async *a, struct dt_task *task)
{
    prepare_task(task);
    return dt_ticketlock_try(a->lock, &task->number);
}

void dt_async_close(struct dt_async *a)
{
    pthread_mutex_lock(&a->mutex);
    a->ending = true;
    pthread_cond_signal(&a->submitted);
    pthread_mutex_unlock(&a->mutex);
    if (a->started)
        pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->submitted);
    pthread_mutex_destroy(&a->mutex);
}

bool dt_task_is_done(struct dt_task *task)
{
    return atomic_load_explicit(&task->done, memory_order_acquire);
}

bool dt_task_await_for(struct dt_task *task, uint64_t ns)
{
    uint64_t begun = dt_clock_ns();
    uint64_t gone = 0;

    while (!dt_task_is_done(task) && gone < ns) {
        uint64_t rest = ns - gone;
        struct timespec most = { (time_t)(rest / 1000000000), (long)(rest % 1000000000) };

        dt_futex_wait_for(&task->done, 0, &most);
        gone = dt_clock_ns() - begun;
    }
    return dt_task_is_done(task);
}

dt_result_t dt_task_await(struct dt_task *task)
{
    while (!dt_task_is_done(task))
        dt_futex_wait(&task->done, 0);
    return task->result == DT_OK ? DT_OK : dt_error_restore(&task->error);
}
