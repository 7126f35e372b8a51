#include "launcher/agent/ranks/injector.h"

#include <stdlib.h>

#include "launcher/base/mem.h"
#include "runtime/wire/rankmsg.h"

struct armed {
    uv_timer_t timer; /* for a fault without a step */
    struct dt_injector *owner;
    struct dt_inject fault;
    const char *text;    /* the fault's text in START */
    uint32_t local_rank; /* the rank whose step counts */
    bool triggered;
};

struct dt_injector {
    uv_loop_t *loop;
    struct dt_ranksock *sock;
    struct dt_injector_events events;
    void *arg;
    uint32_t n;
    uint32_t handles; /* handles that libuv still uses */
    bool destroyed;
    struct armed v[];
};

static void trigger(struct armed *a)
{
    a->triggered = true;
    a->owner->events.trigger(a->owner->arg, a->local_rank, &a->fault, a->text);
}

/* The runtime watches one step of a rank at a time: the next one that is due. */
static void watch(struct dt_injector *f, uint32_t local_rank)
{
    int64_t next = INT64_MAX;

    for (uint32_t i = 0; i < f->n; i++) {
        const struct armed *a = &f->v[i];

        if (a->local_rank == local_rank && !a->triggered && a->fault.step >= 0 &&
            a->fault.step < next)
            next = a->fault.step;
    }
    if (next != INT64_MAX)
        dt_ranksock_watch_step(f->sock, local_rank, next);
}

struct dt_injector *dt_injector_create(uv_loop_t *loop, const struct dt_msg_start *start,
                                       struct dt_ranksock *sock,
                                       const struct dt_injector_events *events, void *arg)
{
    struct dt_injector *f = dt_xcalloc(1, sizeof *f + start->inject.n * sizeof f->v[0]);

    f->loop = loop;
    f->sock = sock;
    f->events = *events;
    f->arg = arg;
    for (uint32_t i = 0; i < start->inject.n; i++) {
        struct armed *a = &f->v[f->n];

        if (dt_inject_parse(&a->fault, start->inject.v[i], NULL) < 0 ||
            !dt_inject_concerns(&a->fault, start->node_rank, &start->ranks) ||
            (a->fault.restart >= 0 && a->fault.restart != start->restart_count))
            continue;
        a->owner = f;
        a->text = start->inject.v[i];
        a->local_rank =
            a->fault.rank < 0 ? 0 : (uint32_t)dt_u32s_find(&start->ranks, (uint32_t)a->fault.rank);
        f->n++;
        watch(f, a->local_rank);
    }
    return f;
}

static void on_due(uv_timer_t *timer)
{
    trigger(timer->data);
}

void dt_injector_running(struct dt_injector *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        struct armed *a = &f->v[i];

        if (a->fault.step >= 0)
            continue;
        uv_timer_init(f->loop, &a->timer);
        a->timer.data = a;
        f->handles++;
        uv_timer_start(&a->timer, on_due, a->fault.after_ms > 0 ? (uint64_t)a->fault.after_ms : 0,
                       0);
    }
}

void dt_injector_step(struct dt_injector *f, uint32_t local_rank, int64_t step)
{
    int go = DT_RANK_GO_ON;

    for (uint32_t i = 0; i < f->n; i++) {
        struct armed *a = &f->v[i];

        if (a->triggered || a->local_rank != local_rank || a->fault.step < 0 ||
            a->fault.step > step)
            continue;
        trigger(a);
        if (a->fault.kind == DT_INJECT_EXIT)
            go = a->fault.code;
    }
    watch(f, local_rank);
    dt_ranksock_go(f->sock, local_rank, go);
}

static void maybe_free(struct dt_injector *f)
{
    if (f->destroyed && f->handles == 0)
        free(f);
}

static void on_injector_closed(uv_handle_t *handle)
{
    struct dt_injector *f = ((struct armed *)handle->data)->owner;

    f->handles--;
    maybe_free(f);
}

void dt_injector_destroy(struct dt_injector *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < f->n; i++) {
        if (f->v[i].timer.data)
            uv_close((uv_handle_t *)&f->v[i].timer, on_injector_closed);
    }
    f->destroyed = true;
    maybe_free(f);
}
