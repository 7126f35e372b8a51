#include "runtime/gpu/device/errand.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/gpu/device/wait.h"
#include "runtime/wire/thread.h"

enum state { UNDER_WAY, DONE, FORGOTTEN, ABANDONED };

struct dt_errand {
    void (*work)(void *copy);
    void (*undo)(void *copy); /* NULL: nothing to undo */
    _Atomic int state;        /* the side that leaves last frees it */
    _Alignas(max_align_t) unsigned char copy[];
};

static void *run_errand(void *arg)
{
    struct dt_errand *e = arg;
    int state;

    e->work(e->copy);
    state = atomic_exchange(&e->state, DONE);
    if (state == ABANDONED && e->undo)
        e->undo(e->copy);
    if (state != UNDER_WAY)
        free(e);
    return NULL;
}

struct dt_errand *dt_errand_start(void (*work)(void *copy), void (*undo)(void *copy),
                                  const void *arg, size_t bytes)
{
    struct dt_errand *e = calloc(1, sizeof *e + bytes);
    pthread_t thread;

    if (!e)
        return NULL;
    e->work = work;
    e->undo = undo;
    memcpy(e->copy, arg, bytes);
    if (dt_thread_start(&thread, run_errand, e) == 0) {
        pthread_detach(thread);
        return e;
    }
    free(e);
    return NULL;
}

void *dt_errand_result(struct dt_errand *e)
{
    return atomic_load(&e->state) == DONE ? e->copy : NULL;
}

static bool is_done(void *errand)
{
    return dt_errand_result(errand) != NULL;
}

bool dt_errand_await(struct dt_errand *e, unsigned ms)
{
    return dt_gpu_wait_at_most(ms, is_done, e);
}

bool dt_errand_abandon(struct dt_errand *e)
{
    int state = UNDER_WAY;

    return atomic_compare_exchange_strong(&e->state, &state, ABANDONED);
}

void dt_errand_end(struct dt_errand *e)
{
    if (e && atomic_exchange(&e->state, FORGOTTEN) == DONE)
        free(e);
}
