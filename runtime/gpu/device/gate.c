#include "runtime/gpu/device/gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/comm/comm.h"
#include "runtime/comm/slots.h"
#include "runtime/gpu/device/provision.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/wire/thread.h"

enum {
    GATES = 8192,          /* at once, since some drivers give no memory while calls wait */
    APART = 128,           /* bytes between words, so that they share no cache line */
    LOOK_NS = 1000 * 1000, /* time between two looks of the thread */
    LINGER_LOOKS = 1000,   /* looks before it sleeps, since waking it would delay a call */
    STUCK_LOOKS = 200,     /* looks after which a stopped communicator should have ended */
};

/* The word only rises, so a gate can be shut again before the stream has seen it open. */
struct dt_gpu_gate {
    struct dt_gpu_gate *next; /* in the list of open or of shut gates */
    _Atomic uint32_t *word;
    CUdeviceptr device;
    uint32_t turn; /* the value that opens it */
    uint64_t life; /* of the context in which its word is pinned, and is freed */
    const struct dt_comm *comm;
};

/* No thread calls the driver while it holds the mutex. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* there is something to watch, or the thread must end */
    pthread_t thread;
    bool started; /* the thread was started, and is not joined */
    bool ending;
    struct dt_gpu_gate *open;
    struct dt_gpu_gate *shut;
    struct dt_gpu_watched *calls; /* that have no gate */
} dti_gates = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void release_gate(struct dt_gpu_gate *gate)
{
    atomic_store(gate->word, gate->turn);
}

/* ---- the thread ---- */

static void release_stopped_locked(void)
{
    for (struct dt_gpu_gate *g = dti_gates.shut; g; g = g->next) {
        if (dt_comm_stopped(g->comm))
            release_gate(g);
    }
}

static void look_at_calls_locked(void)
{
    for (struct dt_gpu_watched *w = dti_gates.calls; w; w = w->next) {
        dt_async_wake(&w->comm->slot->async);
        w->looks = dt_comm_stopped(w->comm) ? w->looks + 1 : 0;
        if (w->looks >= STUCK_LOOKS)
            w->stuck(w->comm);
    }
}

static void *watch_gates(void *arg)
{
    static const struct timespec pause = { .tv_nsec = LOOK_NS };
    unsigned idle = 0;

    pthread_mutex_lock(&dti_gates.mutex);
    while (!dti_gates.ending) {
        idle = dti_gates.shut || dti_gates.calls ? 0 : idle + 1;
        if (idle > LINGER_LOOKS) {
            pthread_cond_wait(&dti_gates.changed, &dti_gates.mutex);
            idle = 0;
            continue;
        }
        release_stopped_locked();
        look_at_calls_locked();
        pthread_mutex_unlock(&dti_gates.mutex);
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&dti_gates.mutex);
    }
    pthread_mutex_unlock(&dti_gates.mutex);
    return arg;
}

bool dt_gpu_watch_begin(void)
{
    bool started;

    pthread_mutex_lock(&dti_gates.mutex);
    if (!dti_gates.started)
        dti_gates.started = dt_thread_start(&dti_gates.thread, watch_gates, NULL) == 0;
    started = dti_gates.started;
    pthread_mutex_unlock(&dti_gates.mutex);
    return started;
}

void dt_gpu_gates_end(void)
{
    bool started;

    pthread_mutex_lock(&dti_gates.mutex);
    started = dti_gates.started;
    dti_gates.started = false;
    dti_gates.ending = true;
    pthread_cond_signal(&dti_gates.changed);
    pthread_mutex_unlock(&dti_gates.mutex);
    if (started)
        pthread_join(dti_gates.thread, NULL);
}

/* ---- calls without a gate ---- */

void dt_gpu_watch(struct dt_gpu_watched *w)
{
    pthread_mutex_lock(&dti_gates.mutex);
    if (w->calls++ == 0) {
        w->looks = 0;
        w->next = dti_gates.calls;
        dti_gates.calls = w;
        pthread_cond_signal(&dti_gates.changed);
    }
    pthread_mutex_unlock(&dti_gates.mutex);
}

void dt_gpu_unwatch(struct dt_gpu_watched *w)
{
    struct dt_gpu_watched **at = &dti_gates.calls;

    pthread_mutex_lock(&dti_gates.mutex);
    if (--w->calls == 0) {
        while (*at != w)
            at = &(*at)->next;
        *at = w->next;
    }
    pthread_mutex_unlock(&dti_gates.mutex);
}

/* ---- gates ---- */

static void add_gates(struct dt_gpu_gate *gates, uint8_t *words, CUdeviceptr device, uint64_t life)
{
    pthread_mutex_lock(&dti_gates.mutex);
    for (size_t i = 0; i < GATES; i++) {
        struct dt_gpu_gate *g = &gates[i];

        g->word = (_Atomic uint32_t *)(void *)(words + i * APART);
        g->device = device + i * APART;
        g->life = life;
        atomic_init(g->word, 0);
        g->next = dti_gates.open;
        dti_gates.open = g;
    }
    pthread_mutex_unlock(&dti_gates.mutex);
}

/* Gates are never freed. After a failure the pinned memory is leaked, too: freeing it might wait
 * for the GPU. */
static CUresult make_gates(uint64_t life, const char **function)
{
    const struct dt_cuda *cuda = dt_cuda();
    struct dt_gpu_gate *gates = calloc(GATES, sizeof *gates);
    CUdeviceptr device;
    void *words;
    CUresult result;

    *function = "calloc";
    if (!gates)
        return DT_CUDA_NO_HOST_MEMORY;
    *function = "cuMemHostAlloc";
    result = cuda->cuMemHostAlloc(&words, GATES * APART,
                                  CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (!result) {
        *function = "cuMemHostGetDevicePointer";
        result = cuda->cuMemHostGetDevicePointer_v2(&device, words, 0);
    }
    if (result)
        free(gates);
    else
        add_gates(gates, words, device, life);
    return result;
}

/* Returns the link to the list's first gate of that life, or to its end. */
static struct dt_gpu_gate **find_locked(struct dt_gpu_gate **list, uint64_t life)
{
    while (*list && (*list)->life != life)
        list = &(*list)->next;
    return list;
}

static void move_locked(struct dt_gpu_gate **from, struct dt_gpu_gate **to)
{
    struct dt_gpu_gate *g = *from;

    *from = g->next;
    g->next = *to;
    *to = g;
}

/* Shuts an open gate and returns it. NULL: all are shut. */
static struct dt_gpu_gate *take_gate(uint64_t life, const struct dt_comm *c)
{
    struct dt_gpu_gate **at, *g;

    pthread_mutex_lock(&dti_gates.mutex);
    at = find_locked(&dti_gates.open, life);
    g = *at;
    if (g) {
        g->turn++;
        g->comm = c;
        move_locked(at, &dti_gates.shut);
        pthread_cond_signal(&dti_gates.changed);
    }
    pthread_mutex_unlock(&dti_gates.mutex);
    return g;
}

/* NULL: there is none. */
static const struct dt_gpu_gate *find_any_gate(uint64_t life)
{
    const struct dt_gpu_gate *g;

    pthread_mutex_lock(&dti_gates.mutex);
    g = *find_locked(&dti_gates.open, life);
    if (!g)
        g = *find_locked(&dti_gates.shut, life);
    pthread_mutex_unlock(&dti_gates.mutex);
    return g;
}

/* The stream waits until the gate's word is at least turn, compared cyclically. */
static CUresult queue_wait(CUstream stream, const struct dt_gpu_gate *gate, uint32_t turn)
{
    return dt_cuda()->cuStreamWaitValue32_v2(stream, gate->device, turn, CU_STREAM_WAIT_VALUE_GEQ);
}

CUresult dt_gpu_gates_try(CUstream stream, uint64_t life, const char **function)
{
    const struct dt_gpu_gate *g = find_any_gate(life);
    CUresult result = CUDA_SUCCESS;

    *function = "pthread_create";
    if (!dt_gpu_watch_begin())
        return DT_CUDA_NO_HOST_MEMORY;
    if (!g)
        result = make_gates(life, function);
    if (result)
        return result;
    if (!g)
        g = find_any_gate(life);
    *function = "cuStreamWaitValue32";
    return queue_wait(stream, g, atomic_load(g->word));
}

CUresult dt_gpu_gate_shut(struct dt_gpu_gate **gate, CUstream stream, uint64_t life,
                          const struct dt_comm *c, const char **function)
{
    CUresult result = CUDA_SUCCESS;

    dt_gpu_provision_forbid(c);
    while (!(*gate = take_gate(life, c)) && !result)
        result = make_gates(life, function);
    if (!result) {
        *function = "cuStreamWaitValue32";
        result = queue_wait(stream, *gate, (*gate)->turn);
    }
    if (!result)
        return result;
    if (*gate)
        dt_gpu_gate_open(*gate);
    else
        dt_gpu_provision_allow();
    *gate = NULL;
    return result;
}

void dt_gpu_gate_open(struct dt_gpu_gate *gate)
{
    struct dt_gpu_gate **at = &dti_gates.shut;

    if (!gate)
        return;
    release_gate(gate);
    pthread_mutex_lock(&dti_gates.mutex);
    while (*at != gate)
        at = &(*at)->next;
    move_locked(at, &dti_gates.open);
    pthread_mutex_unlock(&dti_gates.mutex);
    dt_gpu_provision_allow();
}

bool dt_gpu_gate_another_is_shut(const struct dt_gpu_gate *gate)
{
    const struct dt_gpu_gate *g;

    pthread_mutex_lock(&dti_gates.mutex);
    g = dti_gates.shut;
    if (g && g == gate)
        g = g->next;
    pthread_mutex_unlock(&dti_gates.mutex);
    return g;
}
