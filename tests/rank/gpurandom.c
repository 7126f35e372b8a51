/* A rank of a random program on GPU memory: gpurandom SEED. All ranks derive the same calls from
 * the seed, and each compares what every call did to its buffers with a plain computation, bit by
 * bit where the documentation permits no rounding. tests/gpu/random chooses the rest of the world.
 *
 * A program has steps, and saves or restores its state between them. In a step, one or two threads
 * (workers), each with communicators of its own, make random calls: at once, as requests, or on
 * streams. GPUs write inputs before the calls, and overwrite outputs after calls on streams.
 *
 * It prints a digest of its state. GPURANDOM_FAULT=RANK:STEP:MICROSECONDS:SIGNAL sends that rank a
 * signal so long after the step has begun, in the first generation. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/rank/gpuplain.h"

enum {
    STEPS = 4,
    GROUPS = 3,       /* communicators of a worker; the first lives as long as the worker */
    PENDING = 6,      /* calls of a worker that are under way at a time */
    GUARD = 64,       /* bytes on each side of a buffer */
    ARENA = 96 << 20, /* bytes of each kind of memory for a worker's calls under way */
    STATE = 100000,   /* bytes that checkpoints contain in GPU memory, and again in host memory */
};

/* ---- workers ---- */

struct worker {
    int number;
    uint64_t dice; /* of this turn: the same on all ranks */
    uint64_t own;  /* another on each rank */
    struct group groups[GROUPS];
    CUstream streams[5], own_stream; /* for views; for what the worker waits for at once */
    size_t stream_count;
    uint8_t *arenas[MEMORIES];
    size_t used[MEMORIES];
    struct call calls[PENDING];
    struct gate gate;
    pthread_t opener;
    useconds_t opener_us;
    bool opening, filling; /* filling: a bucket has buffers in the arenas */
};

static CUcontext context;
static uint64_t seed;
static struct worker all[2];
static int workers; /* how many of them there are */
static bool lonely; /* there is no communicator but DT_WORLD */

/* What checkpoints contain. Rank's state in GPU memory equals `mirror`. */
static struct {
    uint64_t digest; /* of results that all ranks have */
    uint8_t mirror[STATE];
} ledger;
static uint8_t *state;

/* ---- memory ---- */

/* Holds what the stream gets from now on, for at most some milliseconds. */
static void *open_soon(void *arg)
{
    struct worker *w = arg;

    usleep(w->opener_us);
    gate_open(&w->gate);
    return NULL;
}

static void stop_opener(struct worker *w)
{
    if (w->opening)
        pthread_join(w->opener, NULL);
    w->opening = false;
}

static void hold(struct worker *w, CUstream stream)
{
    stop_opener(w);
    gate_shut(&w->gate, stream);
    w->opener_us = (useconds_t)below(&w->own, 3000);
    w->opening = pthread_create(&w->opener, NULL, open_soon, w) == 0;
    if (!w->opening)
        gate_open(&w->gate);
}

static uint8_t *take(struct worker *w, enum memory memory, size_t bytes)
{
    uint8_t *at = w->arenas[memory] + w->used[memory];

    w->used[memory] += (bytes + 255) / 256 * 256;
    if (w->used[memory] > ARENA) {
        printf("the arena is too small\n");
        exit(7);
    }
    return at;
}

/* Copies between host memory and any other, and waits for that alone. */
static void copy_now(struct worker *w, void *to, const void *from, size_t bytes)
{
    DRIVE(cuMemcpyAsync(address(to), address(from), bytes, w->own_stream));
    DRIVE(cuStreamSynchronize(w->own_stream));
}

static void area_new(struct worker *w, struct area *a, enum memory memory, size_t bytes,
                     size_t skip)
{
    *a = (struct area){ .memory = memory, .bytes = bytes + 2 * GUARD };
    a->wanted = malloc(a->bytes);
    for (size_t i = 0; i < a->bytes; i++)
        a->wanted[i] = (uint8_t)(i * 37 + bytes);
    a->at = take(w, memory, a->bytes + skip) + skip;
    if (memory != HOST)
        a->source = take(w, DEVICE, a->bytes);
}

/* Fills the buffer with what is wanted so far, before work that the stream gets later. */
static void area_put(struct worker *w, const struct area *a, CUstream stream)
{
    if (a->memory == HOST) {
        memcpy(a->at, a->wanted, a->bytes);
        return;
    }
    copy_now(w, a->source, a->wanted, a->bytes);
    DRIVE(cuMemcpyDtoDAsync_v2(address(a->at), address(a->source), a->bytes, stream));
}

/* Keeps what the buffer has when the stream comes to it, and overwrites it there. */
static void area_keep(const struct area *a, CUstream stream)
{
    DRIVE(cuMemcpyDtoDAsync_v2(address(a->source), address(a->at), a->bytes, stream));
    DRIVE(cuMemsetD8Async(address(a->at), 0xa5, a->bytes, stream));
}

/* ---- checking a call ---- */

static void fail(const struct call *c, const char *what, size_t i)
{
    printf("wrong: rank %d of %d (job: %d): %s%s of %zu (type %d, operation %d, root %d)%s%s%s: %s "
           "%zu\n",
           c->group->rank, c->group->size, dt_rank(), c->operation->name, c->varies ? "v" : "",
           c->count, (int)c->dtype, (int)c->op, c->root, c->in_place ? ", in place" : "",
           c->view ? ", on a stream" : "", c->requested ? ", a request" : "", what, i);
    fflush(stdout);
    exit(6);
}

static void need_near(const struct call *c, const uint8_t *got, const uint8_t *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double difference = get_float(got, i, c->dtype) - get_float(wanted, i, c->dtype);

        if (!(fabs(difference) <= c->tolerance))
            fail(c, "element", i);
    }
}

/* The result of the call is at `at` in the area. Returns what the area has, to be freed. */
static uint8_t *check_area(struct worker *w, struct call *c, struct area *a, size_t at,
                           size_t bytes)
{
    uint8_t *got = malloc(a->bytes);

    if (a->memory == HOST)
        memcpy(got, a->at, a->bytes);
    else
        copy_now(w, got, c->view ? a->source : a->at, a->bytes);
    if (c->tolerance > 0) {
        need_near(c, got + at, a->wanted + at, bytes / call_size(c));
        memcpy(a->wanted + at, got + at, bytes);
    }
    if (c->in_place && c->operation == &operations[REDUCE_SCATTER]) { /* the rest is undefined */
        size_t end = a->bytes - GUARD;

        memcpy(a->wanted + GUARD, got + GUARD, at - GUARD);
        memcpy(a->wanted + at + bytes, got + at + bytes, end - at - bytes);
    }
    for (size_t i = 0; i < a->bytes; i++) {
        if (got[i] != a->wanted[i])
            fail(c, "byte", i - GUARD);
    }
    return got;
}

/* Where the result is, in bytes of its area. */
static size_t result_at(const struct call *c)
{
    bool own = c->in_place && (c->operation->own_out || c->beside);

    return GUARD +
           (own && c->areas[0].bytes == 0 ? call_own_place(c, c->group->rank) * call_size(c) : 0);
}

/* Lets the result of a call become part of the state. */
static void remember(struct worker *w, const struct call *c, const uint8_t *got, size_t bytes)
{
    uint64_t sum = c->key;
    size_t n = bytes < STATE / 4 ? bytes : STATE / 4, at = c->key % (STATE / 2);
    uint8_t *device;

    if (w->number > 0)
        return;
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ got[i]) * 0x100000001b3;
    if (c->group == w->groups && c->operation == &operations[ALL_REDUCE] && !c->absent)
        ledger.digest += sum;
    if (c->requested || c->view || n == 0) /* the order of these is not always the same */
        return;
    memcpy(ledger.mirror + at, got, n);
    device = take(w, DEVICE, n);
    copy_now(w, device, got, n);
    if (once_in(&w->own, 3))
        hold(w, CU_STREAM_LEGACY);
    DRIVE(cuMemcpyDtoDAsync_v2(address(state + at), address(device), n,
                               once_in(&w->own, 2) ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD));
}

static void check(struct worker *w, struct call *c)
{
    size_t at = result_at(c), bytes = c->operation->out(c, c->group->rank) * call_size(c);
    uint8_t *got;

    if (bytes == 0 && !c->view && c->operation->in(c, c->group->rank) == 0) {
        DRIVE(cuStreamSynchronize(CU_STREAM_LEGACY)); /* a call without elements need not wait */
        DRIVE(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    }
    if (c->areas[0].bytes)
        free(check_area(w, c, &c->areas[0], GUARD, 0));
    got = check_area(w, c, &c->areas[1], at, bytes);
    remember(w, c, got + at, bytes);
    free(got);
    free(c->result);
    free(c->areas[0].wanted);
    free(c->areas[1].wanted);
    c->under_way = false;
}

/* ---- waiting for calls ---- */

static void wait_request(struct worker *w, struct call *c)
{
    int done = 0;

    switch (below(&w->own, 3)) {
    case 0:
        need(dt_wait(&c->request));
        return;
    case 1:
        for (need(dt_test(&c->request, &done)); !done; need(dt_test(&c->request, &done)))
            usleep(100);
        return;
    default:
        while (!done)
            need(dt_wait_for(&c->request, 0.001, &done));
    }
}

static void finish(struct worker *w, struct call *c)
{
    if (!c->under_way)
        return;
    if (c->requested)
        wait_request(w, c);
    if (c->view && c->view->exists)
        need(dt_stream_wait(c->view->comm));
    else if (c->view)
        DRIVE(cuStreamSynchronize(c->view->stream));
    check(w, c);
}

/* Waits for whichever request is complete first. */
static void finish_any(struct worker *w)
{
    dt_request_t requests[PENDING] = { 0 };
    size_t i;

    for (i = 0; i < PENDING; i++) {
        if (w->calls[i].under_way && w->calls[i].requested)
            requests[i] = w->calls[i].request;
    }
    need(dt_wait_any(requests, PENDING, &i));
    if (i == PENDING)
        return;
    w->calls[i].request.id = 0;
    finish(w, &w->calls[i]);
}

/* Waits for all calls, and so for all other work that uses the arenas. */
static void settle(struct worker *w)
{
    size_t first = below(&w->own, PENDING);

    for (size_t i = 0; i < PENDING; i++)
        finish(w, &w->calls[(first + i) % PENDING]);
    DRIVE(cuStreamSynchronize(CU_STREAM_LEGACY));
    DRIVE(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    if (!w->filling)
        memset(w->used, 0, sizeof w->used);
}

/* Makes room for n more calls. */
static void make_room(struct worker *w, int n)
{
    for (int i = 0; i < PENDING; i++)
        n -= !w->calls[i].under_way;
    if (n > 0 || w->used[HOST] + w->used[MANAGED] + w->used[DEVICE] > ARENA / 2)
        settle(w);
}

/* There is room for it. */
static struct call *new_call(struct worker *w)
{
    struct call *c = w->calls;

    while (c->under_way)
        c++;
    *c = (struct call){ .options = DT_ALL_REDUCE_OPTIONS_INIT };
    return c;
}

/* ---- making a call ---- */

static size_t draw_count(struct worker *w, const struct call *c)
{
    static const size_t boundaries[] = { 65536, 262144, 1 << 20, 4 << 20, 4 << 20 };
    size_t n;

    if (!once_in(&w->dice, 40))
        return below(&w->dice, (size_t)1 << below(&w->dice, 14)) + below(&w->dice, 3);
    n = c->operation->any_size ? 2 : 5;
    return boundaries[below(&w->dice, n)] / call_size(c) + below(&w->dice, 3) - 1;
}

static void draw_fold(struct worker *w, struct call *c)
{
    static const double scales[] = { 1, 0.5, 2, 0.25 };
    bool all_reduce = c->operation == &operations[ALL_REDUCE], real = dtype_is_float(c->dtype);
    bool adasum = real && all_reduce && (c->group->size & (c->group->size - 1)) == 0;

    c->op = (dt_op_t)below(&w->dice, real ? DT_AVG + 1 : DT_BXOR + 1);
    if (adasum && once_in(&w->dice, 8))
        c->op = DT_ADASUM;
    if (!all_reduce || !real || c->op == DT_PROD || c->op == DT_ADASUM || !once_in(&w->dice, 3))
        return;
    c->options.prescale = once_in(&w->dice, 3) ? 3 : scales[below(&w->dice, 4)];
    c->options.postscale = scales[below(&w->dice, 4)];
    if (c->dtype == DT_F32 && c->op == DT_SUM)
        c->options.wire = (dt_wire_t)below(&w->dice, DT_WIRE_BF16 + 1);
}

/* Makes the buffers, whose inputs the stream copies there. */
static void lay_out(struct worker *w, struct call *c, enum memory memory, CUstream stream)
{
    const struct operation *o = c->operation;
    int rank = c->group->rank;
    size_t size = call_size(c), in = o->in(c, rank), out = o->out(c, rank), in_at = GUARD;
    size_t skip = below(&w->own, 4) * size;
    bool together = c->in_place && (!o->rooted || rank == c->root);
    struct area *of_in = &c->areas[!together ? 0 : 1], *of_out = &c->areas[1];

    if (!together)
        area_new(w, of_in, memory, in * size, skip);
    else if (o->own_in)
        in_at += call_own_place(c, rank) * size;
    area_new(w, of_out, memory, (together && in > out ? in : out) * size, skip);
    memcpy(of_in->wanted + in_at, c->inputs[rank], in * size);
    if (!together)
        area_put(w, of_in, stream);
    area_put(w, of_out, stream);
    c->in = of_in->at + in_at;
    c->out = of_out->at + result_at(c);
    if (together && o->marked && !c->beside && once_in(&w->own, 2))
        c->in = (void *)(uintptr_t)DT_IN_PLACE;
    if (out > 0)
        memcpy(of_out->wanted + result_at(c), c->result, out * size);
    for (int r = 0; r < c->group->size; r++)
        free(c->inputs[r]);
}

/* Makes a call that has been described, and checks it, or leaves it under way. on_device, later:
 * the same on all ranks */
static void launch(struct worker *w, struct call *c, bool on_device, bool later)
{
    bool any = c->operation->any_size && !c->operation->folds &&
               (c->varies || c->operation >= &operations[SEND]);
    enum memory memory = (enum memory)below(&w->own, 2);
    CUstream stream = once_in(&w->own, 2) ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;

    c->requested = later;
    c->comm = c->view ? c->view->comm : c->group->comm;
    if (c->view || (any ? once_in(&w->own, 2) : on_device))
        memory = DEVICE;
    if (c->view)
        stream = c->view->stream;
    call_compute(c);
    call_set_tolerance(c);
    if (memory != HOST && once_in(&w->own, 3))
        hold(w, stream);
    lay_out(w, c, memory, stream);
    need(c->operation->make(c, later ? &c->request : NULL));
    c->under_way = true;
    if (c->view) {
        if (c->areas[0].bytes)
            area_keep(&c->areas[0], stream);
        area_keep(&c->areas[1], stream);
    }
    if (!later && !c->view)
        check(w, c);
}

static struct call *draw_call(struct worker *w, struct group *g)
{
    struct view *v = &g->views[below(&w->dice, VIEWS)];
    struct call *c;

    make_room(w, 1);
    c = new_call(w);
    c->group = g;
    c->key = below(&w->dice, (size_t)1 << 40);
    c->dtype = (dt_dtype_t)below(&w->dice, 12);
    if (v->exists && once_in(&w->dice, 2))
        c->view = v;
    return c;
}

static void call_collective(struct worker *w, struct group *g)
{
    size_t which = below(&w->dice, COLLECTIVES);
    struct call *c = draw_call(w, g);
    const struct operation *o = c->operation =
        &operations[once_in(&w->dice, 3) ? ALL_REDUCE : which];
    bool on_device = below(&w->dice, 4) > 0, later = once_in(&w->dice, 3);

    c->count = draw_count(w, c);
    c->root = (int)below(&w->dice, MOST * MOST) % g->size;
    c->varies = o->any_size && once_in(&w->dice, 2);
    c->in_place = once_in(&w->dice, 2) || o == &operations[BROADCAST];
    c->beside = o == &operations[REDUCE_SCATTER] && c->in_place && once_in(&w->dice, 2);
    if (o->folds)
        draw_fold(w, c);
    launch(w, c, on_device, later);
}

/* Ranks exchange data in pairs. In each, one rank sends first and the other receives first. */
static void exchange(struct worker *w, struct group *g)
{
    struct call model = { .group = g };
    int turn = (int)below(&w->dice, MOST) % g->size, peer = (turn + g->size - g->rank) % g->size;
    bool later = once_in(&w->dice, 2), on_stream = once_in(&w->dice, 2), alone = peer == g->rank;
    struct view *v = &g->views[below(&w->dice, VIEWS)];

    make_room(w, 2);
    model.operation = &operations[SEND];
    model.dtype = (dt_dtype_t)below(&w->dice, 12);
    model.count = draw_count(w, &model);
    model.key = below(&w->dice, (size_t)1 << 40);
    for (int i = 0; i < 2; i++) {
        bool sends = (i == 0) == (g->rank <= peer);
        struct call *c = new_call(w);

        c->operation = &operations[sends ? SEND : RECEIVE];
        c->group = g;
        c->peer = peer;
        c->dtype = model.dtype;
        c->count = model.count;
        c->key = model.key;
        c->view = on_stream && v->exists && !alone ? v : NULL;
        launch(w, c, true, later || alone);
    }
}

/* Pushes buffers to a bucket, and makes another call meanwhile. */
static void fill_bucket(struct worker *w, struct group *g)
{
    enum { BUFFERS = 8 };
    size_t buffers = 1 + below(&w->dice, BUFFERS),
           bytes = once_in(&w->dice, 3) ? 0 : below(&w->dice, 20000);
    struct call calls[BUFFERS], model = { .operation = &operations[ALL_REDUCE],
                                          .group = g,
                                          .options = DT_ALL_REDUCE_OPTIONS_INIT,
                                          .in_place = true };
    dt_bucket_t *bucket;

    settle(w);
    model.dtype = (dt_dtype_t)below(&w->dice, 12);
    model.op = (dt_op_t)below(&w->dice, dtype_is_float(model.dtype) ? 5 : 8);
    call_set_tolerance(&model);
    need(dt_bucket_create(g->comm, bytes, model.dtype, model.op, &bucket));
    for (int rounds = once_in(&w->dice, 3) ? 2 : 1; rounds > 0; rounds--) {
        w->filling = true;
        for (size_t i = 0; i < buffers; i++) {
            enum memory memory = (enum memory)below(&w->dice, MEMORIES);
            CUstream stream = once_in(&w->own, 2) ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;

            calls[i] = model;
            calls[i].key = below(&w->dice, (size_t)1 << 40);
            calls[i].count = draw_count(w, &model);
            call_compute(&calls[i]);
            if (once_in(&w->own, 4))
                hold(w, stream);
            lay_out(w, &calls[i], memory, stream);
            need(dt_bucket_push(bucket, calls[i].out, calls[i].count));
            if (once_in(&w->dice, 8))
                call_collective(w, g);
        }
        need(dt_bucket_wait(bucket));
        for (size_t i = 0; i < buffers; i++)
            check(w, &calls[i]);
        w->filling = false;
        settle(w);
    }
    need(dt_bucket_free(bucket));
}

/* Each rank makes another number of all-reduces. */
static void run_out(struct worker *w, struct group *g)
{
    enum { CALLS = 4 };
    uint64_t key = below(&w->dice, (size_t)1 << 40);
    int last;

    settle(w);
    need(dt_join_begin(g->comm));
    for (size_t i = 0; i < mix(key + (uint64_t)g->rank) % CALLS; i++) {
        struct call *c;

        make_room(w, 1);
        c = new_call(w);
        w->dice = key + i;
        c->operation = &operations[ALL_REDUCE];
        c->group = g;
        c->key = mix(w->dice);
        c->dtype = (dt_dtype_t)below(&w->dice, 12);
        c->count = draw_count(w, c);
        c->in_place = once_in(&w->dice, 2);
        draw_fold(w, c);
        if (c->op == DT_ADASUM)
            c->op = DT_SUM;
        for (int rank = 0; rank < g->size; rank++)
            c->absent |= (unsigned)(mix(key + (uint64_t)rank) % CALLS <= i) << rank;
        launch(w, c, once_in(&w->dice, 2), once_in(&w->dice, 2));
    }
    need(dt_join(g->comm, &last));
    if (last < 0 || last >= g->size) {
        printf("wrong: rank %d of %d joined last\n", last, g->size);
        exit(6);
    }
    settle(w);
}

/* Makes the view, or frees it, perhaps while calls are under way on it. */
static void change_view(struct worker *w, struct group *g, struct view *v)
{
    if (v->exists) {
        v->exists = false;
        if (g->comm != DT_COMM_NULL)
            need(dt_comm_free(v->comm));
        return;
    }
    settle(w);
    v->exists = true;
    v->stream = w->streams[below(&w->own, w->stream_count)];
    if (g->comm != DT_COMM_NULL)
        need(dt_comm_on_stream(g->comm, v->stream, &v->comm));
}

static void free_views(struct worker *w, struct group *g)
{
    for (int i = 0; i < VIEWS; i++) {
        if (g->views[i].exists)
            change_view(w, g, &g->views[i]);
    }
}

static void free_group(struct worker *w, struct group *g)
{
    if (once_in(&w->own, 2))
        free_views(w, g);
    settle(w);
    if (g->comm != DT_COMM_NULL)
        need(dt_comm_free(g->comm));
    free_views(w, g);
    g->exists = false;
}

static void change_group(struct worker *w, struct group *g)
{
    int color = (int)(mix(w->dice + (uint64_t)w->groups->rank) % 4) - 1;
    int key = (int)(mix(w->dice + (uint64_t)w->groups->rank) >> 32 & 3);

    if (g->exists) {
        free_group(w, g);
        return;
    }
    if (once_in(&w->dice, 3))
        need(dt_comm_dup(w->groups->comm, &g->comm));
    else
        need(dt_comm_split(w->groups->comm, color < 1 ? color : color % 2, key, &g->comm));
    g->exists = true;
    if (g->comm == DT_COMM_NULL)
        return;
    g->rank = dt_comm_rank(g->comm);
    g->size = dt_comm_size(g->comm);
}

static void take_turn(struct worker *w)
{
    struct group *g = &w->groups[below(&w->dice, GROUPS)];
    size_t what = below(&w->dice, 100);

    if (!g->exists && (what >= 10 || lonely))
        g = w->groups;
    if (what < 10 && g != w->groups)
        change_group(w, g);
    else if (what < 20)
        change_view(w, g, &g->views[below(&w->dice, VIEWS)]);
    else if (g->comm == DT_COMM_NULL)
        finish_any(w);
    else if (what < 27)
        exchange(w, g);
    else if (what < 32)
        fill_bucket(w, g);
    else if (what < 35)
        run_out(w, g);
    else
        call_collective(w, g);
    if (once_in(&w->own, 4))
        finish(w, &w->calls[below(&w->own, PENDING)]);
    if (once_in(&w->own, 10))
        finish_any(w);
}

/* ---- steps ---- */

static int64_t step;

static void *work(void *arg)
{
    struct worker *w = arg;
    uint64_t key = mix(seed * 1000 + (uint64_t)step * 2 + (uint64_t)w->number);
    size_t turns = 5 + below(&key, 15);

    DRIVE(cuCtxSetCurrent(context));
    w->own = mix(key + (uint64_t)dt_rank());
    for (size_t turn = 0; turn < turns; turn++) {
        w->dice = mix(key + turn);
        take_turn(w);
    }
    settle(w);
    for (int i = GROUPS - 1; i > 0; i--) {
        if (w->groups[i].exists)
            free_group(w, &w->groups[i]);
    }
    free_views(w, w->groups); /* after a restart there would be none */
    stop_opener(w);
    return NULL;
}

static void take_step(void)
{
    pthread_t second;

    dt_step(step);
    if (workers > 1)
        pthread_create(&second, NULL, work, &all[1]);
    work(&all[0]);
    if (workers > 1)
        pthread_join(second, NULL);
}

static void need_state(void)
{
    static uint8_t got[STATE];

    DRIVE(cuMemcpyDtoH_v2(got, address(state), STATE));
    if (memcmp(got, ledger.mirror, STATE) == 0)
        return;
    printf("wrong: rank %d: the state in GPU memory, step %d\n", dt_rank(), (int)step);
    exit(6);
}

/* Reads a checkpoint back although nothing has failed. */
static void restore_again(void)
{
    uint64_t digest = ledger.digest;
    int64_t restored;

    memset(&ledger, 0, sizeof ledger);
    DRIVE(cuMemsetD8Async(address(state), 0, STATE, CU_STREAM_PER_THREAD));
    need(dt_checkpoint_restore(&restored));
    if (restored == step && ledger.digest == digest)
        return;
    printf("wrong: rank %d: step %d was restored and not %d\n", dt_rank(), (int)restored,
           (int)step);
    exit(6);
}

static void save(dt_request_t *request)
{
    uint64_t dice = mix(seed + (uint64_t)step);

    need(dt_wait(request));
    if (once_in(&dice, 2)) {
        need(dt_checkpoint_isave(step, request));
    } else if (!once_in(&dice, 3)) {
        need(dt_checkpoint_save(step));
        if (once_in(&dice, 2))
            restore_again();
    }
}

static void open_worker(struct worker *w, int number)
{
    struct group *g = w->groups;
    CUdeviceptr managed;

    w->number = number;
    g->exists = true;
    if (number > 0)
        need(dt_comm_dup(DT_WORLD, &g->comm));
    g->rank = dt_rank();
    g->size = dt_size();
    gate_make(&w->gate);
    DRIVE(cuStreamCreate(&w->own_stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 2; i++)
        DRIVE(cuStreamCreate(&w->streams[w->stream_count++], CU_STREAM_NON_BLOCKING));
    if (number == 0) { /* work on these waits for each other's, so they belong to one thread */
        DRIVE(cuStreamCreate(&w->streams[w->stream_count++], CU_STREAM_DEFAULT));
        w->streams[w->stream_count++] = CU_STREAM_PER_THREAD;
        w->streams[w->stream_count++] = NULL;
    }
    DRIVE(cuMemAllocManaged(&managed, ARENA, CU_MEM_ATTACH_GLOBAL));
    w->arenas[MANAGED] = (uint8_t *)(uintptr_t)managed;
    w->arenas[HOST] = malloc(ARENA);
    w->arenas[DEVICE] = device_new(ARENA);
}

/* ---- faults ---- */

static int fault_signal, fault_delay;

static void *fail_soon(void *arg)
{
    usleep((useconds_t)fault_delay);
    raise(fault_signal);
    return arg;
}

static void begin_fault(void)
{
    const char *fault = getenv("GPURANDOM_FAULT");
    int rank, at;
    pthread_t thread;

    if (fault && dt_generation() == 1 &&
        sscanf(fault, "%d:%d:%d:%d", &rank, &at, &fault_delay, &fault_signal) == 4 &&
        rank == dt_rank() && at == step)
        pthread_create(&thread, NULL, fail_soon, NULL);
}

/* The first call of a communicator that NCCL or a shared GPU serves waits for a stern driver, and
 * so for other communicators' calls (dt_comm_on_stream(3)). */
static void soften_driver(void)
{
    if (!lonely && strcmp(getenv("DTRUN_DEVICE"), "staging") != 0)
        unsetenv("STANDIN_STERN");
}

int main(int argc, char **argv)
{
    dt_request_t saving = { 0 };

    if (argc != 2)
        return 2;
    seed = strtoull(argv[1], NULL, 10);
    setenv("STANDIN_HOST", getenv("DTRUN_NODE_RANK"), 1);
    if (strcmp(getenv("DTRUN_GENERATION"), "1") != 0)
        unsetenv("STANDIN_NCCL_FAULTS");
    lonely = mix(seed) % 4 == 0;
    workers = !lonely && mix(seed) % 4 == 1 ? 2 : 1;
    if (workers == 1 && mix(seed + 1) % 2) /* two workers have no common order */
        setenv("DTRUN_PROGRAM_ORDER", "1", 1);
    soften_driver();
    device_join();
    DRIVE(cuCtxGetCurrent(&context));
    for (int i = 0; i < workers; i++)
        open_worker(&all[i], i);
    state = device_new(STATE);
    DRIVE(cuMemsetD8_v2(address(state), 0, STATE));
    need(dt_checkpoint_register("ledger", &ledger, sizeof ledger));
    need(dt_checkpoint_register("state", state, STATE));
    need(dt_checkpoint_restore(&step));
    for (step = step < 0 ? 0 : step + 1; step < STEPS; step++) {
        begin_fault();
        take_step();
        need_state();
        save(&saving);
    }
    need(dt_wait(&saving));
    printf("digest %016llx\n", (unsigned long long)ledger.digest);
    need(dt_finalize());
    for (int i = 0; i < workers; i++)
        free(all[i].arenas[HOST]);
    return 0;
}
