#include "runtime/nccl/comm.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/nccl/error.h"

#define END_TIMEOUT_MS 5000
#define YIELDS         2000 /* about a millisecond: what a collective takes when nobody is late */

struct id_message {
    int32_t ok;
    ncclUniqueId id;
};

static struct timespec deadline_in(int timeout_ms)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += timeout_ms / 1000;
    t.tv_nsec += timeout_ms % 1000 * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000L;
    }
    return t;
}

static bool is_past(const struct timespec *deadline)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > deadline->tv_sec ||
           (now.tv_sec == deadline->tv_sec && now.tv_nsec >= deadline->tv_nsec);
}

/* Neither NCCL nor CUDA has a call that waits for work or for us, whichever comes first: we poll.
 */
static void between_polls(unsigned turn)
{
    static const struct timespec nap = { .tv_nsec = 50000 };

    if (turn < YIELDS)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

/* --- taking down --- */

/* Shared by the thread that makes the call and the one that waits for it; the last of them frees
 * it. */
struct ending {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    ncclComm_t comm;
    int device;
    ncclResult_t (*end)(ncclComm_t);
    bool done, abandoned;
};

static struct ending *ending_create(ncclComm_t comm, int device, ncclResult_t (*end)(ncclComm_t))
{
    struct ending *e = calloc(1, sizeof *e);
    pthread_condattr_t monotonic;

    if (!e)
        return NULL;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&e->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&e->lock, NULL);
    e->comm = comm;
    e->device = device;
    e->end = end;
    return e;
}

static void ending_free(struct ending *e)
{
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

static void *end_thread(void *arg)
{
    struct ending *e = arg;
    bool abandoned;

    cudaSetDevice(e->device);
    e->end(e->comm);
    pthread_mutex_lock(&e->lock);
    e->done = true;
    abandoned = e->abandoned;
    pthread_cond_signal(&e->changed);
    pthread_mutex_unlock(&e->lock);
    if (abandoned)
        ending_free(e);
    return NULL;
}

static bool ending_wait(struct ending *e, int timeout_ms)
{
    struct timespec deadline = deadline_in(timeout_ms);
    bool done;

    pthread_mutex_lock(&e->lock);
    while (!e->done && pthread_cond_timedwait(&e->changed, &e->lock, &deadline) == 0)
        ;
    done = e->done;
    e->abandoned = !done;
    pthread_mutex_unlock(&e->lock);
    return done;
}

int dt_nccl_end(ncclComm_t comm, int device, ncclResult_t (*end)(ncclComm_t), int timeout_ms)
{
    struct ending *e = ending_create(comm, device, end);
    pthread_t thread;

    if (!e)
        return -1;
    if (pthread_create(&thread, NULL, end_thread, e) != 0) {
        ending_free(e);
        return -1;
    }
    pthread_detach(thread);
    if (!ending_wait(e, timeout_ms))
        return -1;
    ending_free(e);
    return 0;
}

static void take_down(struct dt_nccl *n)
{
    if (n->comm && dt_nccl_end(n->comm, n->device, ncclCommAbort, END_TIMEOUT_MS) != 0)
        n->stuck = true;
    n->comm = NULL;
}

/* --- waiting --- */

enum progress { WAITING, DONE, FAILED };

/* One look at the communicator: has the host's part of the call been done? The failure is told. */
static enum progress look_at_comm(struct dt_nccl *n, const char *call)
{
    ncclResult_t state = ncclInProgress;
    ncclResult_t asked = ncclCommGetAsyncError(n->comm, &state);
    int culprit;

    if (asked != ncclSuccess)
        state = asked;
    if (state == ncclSuccess)
        return DONE;
    if (n->host->aborted(n->host->ctx, &culprit))
        n->failed = dt_nccl_peer_lost(n->host, call, culprit);
    else if (state != ncclInProgress)
        n->failed = dt_nccl_error(n->host, call, state, n->comm);
    else
        return WAITING;
    return FAILED;
}

static enum progress look_at_stream(struct dt_nccl *n, const char *call)
{
    cudaError_t state = cudaStreamQuery(n->stream);
    int culprit;

    if (state == cudaSuccess)
        return DONE;
    if (n->host->aborted(n->host->ctx, &culprit))
        n->failed = dt_nccl_peer_lost(n->host, call, culprit);
    else if (state != cudaErrorNotReady)
        n->failed = dt_nccl_cuda_error(n->host, call, state);
    else
        return WAITING;
    return FAILED;
}

dt_result_t dt_nccl_wait(struct dt_nccl *n, const char *call, ncclResult_t started)
{
    enum progress progress = WAITING;

    if (started != ncclSuccess && started != ncclInProgress) {
        n->failed = dt_nccl_error(n->host, call, started, n->comm);
        progress = FAILED;
    }
    /* A stream is idle until the call has put its kernel there, so the communicator is asked first;
     * it goes on being asked, for that is where errors of the network appear. */
    for (unsigned turn = 0; progress == WAITING; turn++) {
        progress = look_at_comm(n, call);
        if (progress == DONE)
            progress = look_at_stream(n, call);
        if (progress == WAITING)
            between_polls(turn);
    }
    if (progress == FAILED)
        take_down(n);
    return n->failed;
}

/* --- connecting --- */

static dt_result_t exchange_id(const struct dt_device_host *host, ncclUniqueId *id)
{
    struct id_message m = { 0 };
    ncclResult_t made = ncclSuccess;
    dt_result_t result;

    if (host->rank == 0) {
        made = ncclGetUniqueId(&m.id);
        m.ok = made == ncclSuccess;
    }
    result = host->broadcast(host->ctx, &m, sizeof m, 0);
    if (made != ncclSuccess)
        return dt_nccl_error(host, "ncclGetUniqueId", made, NULL);
    if (result == DT_OK && !m.ok)
        return dt_nccl_fail(host, DT_ERR_NCCL, "rank 0 could not make an NCCL id");
    *id = m.id;
    return result;
}

static dt_result_t wait_connected(struct dt_nccl *n, int timeout_ms)
{
    static const char call[] = "ncclCommInitRankConfig";
    struct timespec deadline = deadline_in(timeout_ms);
    enum progress progress;

    for (unsigned turn = 0; (progress = look_at_comm(n, call)) == WAITING; turn++) {
        if (is_past(&deadline)) {
            n->failed = dt_nccl_fail(
                n->host, DT_ERR_TIMEOUT,
                "NCCL has not connected the %d ranks within %d s (DTRUN_NCCL_INIT_TIMEOUT); "
                "NCCL_DEBUG=INFO shows where it waits, NCCL_SOCKET_IFNAME names the network to use",
                n->host->size, timeout_ms / 1000);
            break;
        }
        between_polls(turn);
    }
    return n->failed;
}

static dt_result_t start_connecting(struct dt_nccl *n)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    ncclResult_t started;
    dt_result_t result = exchange_id(n->host, &id);

    if (result != DT_OK)
        return result;
    config.blocking = 0;
    started = ncclCommInitRankConfig(&n->comm, n->host->size, id, n->host->rank, &config);
    if (started != ncclSuccess && started != ncclInProgress)
        return dt_nccl_error(n->host, "ncclCommInitRankConfig", started, NULL);
    return DT_OK;
}

/* The stream is one that keeps order with the default stream: what the program has queued there
 * before a collective is done before it. */
static dt_result_t make_resources(struct dt_nccl *n)
{
    cudaError_t error;

    if ((error = cudaStreamCreateWithFlags(&n->stream, cudaStreamDefault)) != cudaSuccess)
        return dt_nccl_cuda_error(n->host, "cudaStreamCreateWithFlags", error);
    if ((error = cudaMalloc((void **)&n->token, sizeof *n->token)) != cudaSuccess)
        return dt_nccl_cuda_error(n->host, "cudaMalloc", error);
    if ((error = cudaMemsetAsync(n->token, 0, sizeof *n->token, n->stream)) != cudaSuccess)
        return dt_nccl_cuda_error(n->host, "cudaMemsetAsync", error);
    return DT_OK;
}

dt_result_t dt_nccl_connect(const struct dt_device_host *host, int device, int timeout_ms,
                            struct dt_nccl **out)
{
    struct dt_nccl *n = calloc(1, sizeof *n);
    dt_result_t result;

    *out = NULL;
    if (!n)
        return dt_nccl_fail(host, DT_ERR_NOMEM, "no memory for a communicator");
    n->host = host;
    n->device = device;
    result = make_resources(n);
    if (result == DT_OK)
        result = start_connecting(n);
    if (result == DT_OK)
        result = wait_connected(n, timeout_ms);
    if (result == DT_OK) {
        *out = n;
    } else {
        n->failed = result;
        dt_nccl_disconnect(n);
    }
    return result;
}

void dt_nccl_disconnect(struct dt_nccl *n)
{
    if (!n)
        return;
    if (n->failed != DT_OK)
        take_down(n);
    else if (n->comm && dt_nccl_end(n->comm, n->device, ncclCommDestroy, END_TIMEOUT_MS) != 0)
        n->stuck = true;
    if (!n->stuck) {
        cudaFree(n->token);
        if (n->stream)
            cudaStreamDestroy(n->stream);
    }
    free(n);
}
