/* A rank that enqueues its calls on streams of its own, of whatever libcuda.so.1 the loader finds.
 * Its argument says what it does:
 *
 * - order: calls between pieces of the stream's work, on streams of every kind, all enqueued before
 *   the GPU starts
 * - legacy: work on the legacy default stream waits for a blocking stream's calls
 * - orders: two communicators, which odd ranks use in another order than even ones
 * - promised: two communicators, requests and a bucket, which all ranks use in the promised order
 * - promiser: calls of rank 1 are made without the view that the other ranks use
 * - patient: calls in the promised order wait for earlier ones that rank 1 makes late
 * - earlier: such calls come after calls of another communicator that are not over, or fail
 * - requests: calls in the background, on the view and on the communicator
 * - barrier: a barrier that one stream reaches late
 * - free: a view is freed, then a communicator, then the job is left, each with calls under way
 * - pending: a view is freed with a send and a receive under way
 * - fork: children are forked while another thread looks up a view
 * - beside: dt_finalize while another thread is inside a call on a view
 * - bare: a thread that has no context makes a view
 * - devices: on rank 1 a second view is for a stream of another device, or of another context
 * - contexts: a buffer of another context than the stream's, and views of two contexts
 * - outlive: a view of a context that is not the one in which the first view was made and destroyed
 * - swap: ranks 1 and 2 swap their devices after they have split a communicator
 * - strays: calls of rank 1 on another device, and in another context, than its first call
 * - apart: buffers in two contexts, within one call and in two
 * - pool: pinned memory is returned while a stream never ends
 * - queue: a thousand calls that wait on one stream
 * - aside: NCCL's all-to-all in place, which needs memory, while a stream never ends
 * - reset: a view from before a reset of the device, and one in the new context
 * - twice: dt_finalize twice
 * - resetview, resetcall: a view, and a call, of a communicator whose memory a reset has freed
 * - gone: the device is reset before dt_finalize
 * - destroyed: a context that the program has created is destroyed before dt_finalize
 * - turns: a call on a stream does not overtake an earlier one on another
 * - mixed: calls on two streams between others, with another communicator before and after them
 * - launching: a call is over while NCCL launches a later one, which on rank 0 takes until the end
 * - mismatch: rank 1 enqueues another call than the others
 * - unlaunched: two calls, of which NCCL refuses the first on rank 0
 * - refused: calls that the driver refuses on rank 1, as REFUSED (for STANDIN_REFUSES) says
 * - refusedview: likewise, a view
 * - args: arguments that are refused
 * - capture: calls while a graph is being captured, then one that works
 * - die: rank 1 dies when the others have enqueued a call and wait for its stream
 * - dielate: the same, once NCCL keeps the thread of another rank
 * - abort: rank 1 aborts the communicator instead
 * - late: the stream of rank 1 never reaches the call
 * - endless: a stream whose work after the call never ends
 * - pinning: requests that need memory and streams, then a call on a stream
 * - sendbehind, streambehind: sends that need them, after a call on a stream
 * - ahead: rank 0 queues more work than the driver accepts after a call that rank 1 never joins
 * - jam: the same before the call of a bucket begins, which no other rank joins
 * - another: a view of a second communicator is made on rank 0 while a stream never ends */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/rank/device.h"

enum {
    COUNT = 1000,
    ROUNDS = 20,
    POOL = 96 * 1024 * 1024, /* bytes; this exceeds the pinned memory that is kept */
    QUEUE = 8,               /* how many pieces of work the driver accepts, in "beside" */
};

static struct gate gate;

static void fail(const char *what)
{
    printf("%s\n", what);
    exit(6);
}

static void expect(dt_result_t got, dt_result_t wanted, const char *what)
{
    if (got == wanted)
        return;
    printf("%s: %d and not %d: %s\n", what, (int)got, (int)wanted, dt_last_error());
    exit(6);
}

static CUstream stream_new(unsigned flags)
{
    CUstream stream;

    DRIVE(cuStreamCreate(&stream, flags));
    return stream;
}

static dt_comm_t *view_of(dt_comm_t *comm, CUstream stream)
{
    dt_comm_t *view;

    need(dt_comm_on_stream(comm, stream, &view));
    return view;
}

/* ---- numbers ---- */

static unsigned bits_of(float v)
{
    unsigned bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* The stream fills the buffer with this rank's data for a round. */
static void fill_on(CUstream stream, float *buf, int round)
{
    DRIVE(cuMemsetD32Async(address(buf), bits_of((float)((dt_rank() + 1) * (round + 1))), COUNT,
                           stream));
}

static void need_sum(const float *device, int round, const char *what)
{
    float got[COUNT], sum = (float)(dt_size() * (dt_size() + 1) / 2 * (round + 1));

    DRIVE(cuMemcpyDtoH_v2(got, address(device), sizeof got));
    for (int i = 0; i < COUNT; i++) {
        if (got[i] == sum)
            continue;
        printf("%s, round %d: element %d is %g and not %g\n", what, round, i, (double)got[i],
               (double)sum);
        exit(6);
    }
}

/* Enqueues one all-reduce and waits for it. */
static void need_call(CUstream stream, dt_comm_t *view, float *buf, const char *what)
{
    fill_on(stream, buf, 0);
    need(dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
    need(dt_stream_wait(view));
    need_sum(buf, 0, what);
}

static void need_busy(CUstream stream, const char *what)
{
    if (dt_cuda()->cuStreamQuery(stream) != CUDA_ERROR_NOT_READY)
        fail(what);
}

/* ---- order ---- */

static void *open_later(void *arg)
{
    usleep(20000); /* long enough for a call that does not wait to return */
    gate_open(&gate);
    return arg;
}

static pthread_t begin_opening(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, open_later, NULL);
    return thread;
}

static void order_on(CUstream stream, const char *what)
{
    dt_comm_t *view = view_of(DT_WORLD, stream);
    float *buf = device_new(COUNT * sizeof *buf), *results[ROUNDS];

    for (int i = 0; i < ROUNDS; i++)
        results[i] = device_new(COUNT * sizeof **results);
    gate_shut(&gate, stream);
    for (int i = 0; i < ROUNDS; i++) {
        fill_on(stream, buf, i);
        need(dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
        DRIVE(cuMemcpyDtoDAsync_v2(address(results[i]), address(buf), COUNT * sizeof *buf, stream));
        DRIVE(cuMemsetD32Async(address(buf), 0, COUNT, stream));
    }
    need_busy(stream, "a call has waited for the stream");
    gate_open(&gate);
    need(dt_stream_wait(view));
    for (int i = 0; i < ROUNDS; i++)
        need_sum(results[i], i, what);
    need(dt_comm_free(view));
}

static void order(void)
{
    order_on(stream_new(CU_STREAM_NON_BLOCKING), "a non-blocking stream");
    order_on(stream_new(CU_STREAM_DEFAULT), "a blocking stream");
    order_on(NULL, "the default stream");
    order_on(CU_STREAM_LEGACY, "the legacy default stream");
    order_on(CU_STREAM_PER_THREAD, "the per-thread default stream");
}

/* cuMemcpyDtoH waits for the legacy default stream, which waits for the blocking one. */
static void legacy(void)
{
    CUstream stream = stream_new(CU_STREAM_DEFAULT);
    dt_comm_t *view = view_of(DT_WORLD, stream);
    float *buf = device_new(COUNT * sizeof *buf);
    pthread_t opener;

    gate_shut(&gate, stream);
    fill_on(stream, buf, 0);
    need(dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
    opener = begin_opening();
    need_sum(buf, 0, "read through the legacy default stream");
    pthread_join(opener, NULL);
}

/* If the calls fail, no kernel of either communicator stays on the GPU. */
static void need_both(dt_comm_t *const views[2])
{
    dt_result_t r = dt_stream_wait(views[0]);

    if (r == DT_OK)
        r = dt_stream_wait(views[1]);
    if (r == DT_OK)
        return;
    printf("%d: %s\n", (int)r, dt_last_error());
    DRIVE(cuCtxSynchronize());
    printf("the GPU is free\n");
    exit(1);
}

static void orders(void)
{
    CUstream streams[2];
    dt_comm_t *comms[2], *views[2];
    float *buf[2];

    for (int i = 0; i < 2; i++) {
        streams[i] = stream_new(CU_STREAM_NON_BLOCKING);
        need(dt_comm_dup(DT_WORLD, &comms[i]));
        views[i] = view_of(comms[i], streams[i]);
        buf[i] = device_new(COUNT * sizeof **buf);
    }
    for (int i = 0; i < 2 * ROUNDS; i++) {
        int at = (i + dt_rank()) % 2;

        fill_on(streams[at], buf[at], i / 2);
        need(dt_all_reduce(views[at], DT_IN_PLACE, buf[at], COUNT, DT_F32, DT_SUM));
    }
    need_both(views);
    for (int i = 0; i < 2; i++) {
        need_sum(buf[i], ROUNDS - 1, "two communicators");
        need(dt_comm_free(views[i]));
        need(dt_comm_free(comms[i]));
    }
}

/* Requests and the bucket are launched by other threads. */
static void promised(void)
{
    enum { VIEWS = 2, PUSHED = 3 };
    CUstream streams[VIEWS];
    dt_comm_t *comms[VIEWS], *views[VIEWS];
    float *buf[VIEWS], *asked = device_new(COUNT * sizeof *asked);
    float *pushed = device_new((size_t)PUSHED * COUNT * sizeof *pushed);
    dt_bucket_t *bucket;
    dt_request_t request;

    for (int i = 0; i < VIEWS; i++) {
        streams[i] = stream_new(CU_STREAM_NON_BLOCKING);
        need(i ? dt_comm_split(DT_WORLD, 0, -dt_rank(), &comms[i])
               : dt_comm_dup(DT_WORLD, &comms[i]));
        views[i] = view_of(comms[i], streams[i]);
        buf[i] = device_new(COUNT * sizeof **buf);
    }
    need(dt_bucket_create(DT_WORLD, 2 * COUNT * sizeof(float), DT_F32, DT_SUM, &bucket));
    for (int round = 0; round < ROUNDS; round++) {
        fill_on(CU_STREAM_LEGACY, asked, round);
        need(dt_iall_reduce(comms[0], DT_IN_PLACE, asked, COUNT, DT_F32, DT_SUM, &request));
        for (int i = 0; i < VIEWS; i++) {
            fill_on(streams[i], buf[i], round);
            need(dt_all_reduce(views[i], DT_IN_PLACE, buf[i], COUNT, DT_F32, DT_SUM));
        }
        for (int i = 0; i < PUSHED; i++) {
            fill_on(CU_STREAM_LEGACY, pushed + i * COUNT, round);
            need(dt_bucket_push(bucket, pushed + i * COUNT, COUNT));
        }
        need(dt_all_reduce(views[0], buf[0], buf[1], 0, DT_F32, DT_SUM));
        need(dt_broadcast(views[1], buf[1], COUNT, DT_F32, dt_size() - 1));
        need(dt_wait(&request));
        need(dt_bucket_wait(bucket));
        need_sum(asked, round, "a request");
        need_sum(pushed + (size_t)(PUSHED - 1) * COUNT, round, "a bucket");
    }
    need_both(views);
    for (int i = 0; i < VIEWS; i++)
        need_sum(buf[i], ROUNDS - 1, "a view");
    need(dt_bucket_free(bucket));
    need(dt_recorder_dump(getenv("DUMP")));
    for (int i = 0; i < VIEWS; i++) {
        need(dt_comm_free(views[i]));
        need(dt_comm_free(comms[i]));
    }
}

static void promiser(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    float *buf = device_new(COUNT * sizeof *buf);
    dt_comm_t *comm, *view;
    dt_result_t r;

    need(dt_comm_dup(DT_WORLD, &comm));
    view = view_of(comm, stream);
    r = dt_all_reduce(dt_rank() == 1 ? comm : view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM);
    if (r == DT_OK)
        r = dt_stream_wait(view);
    printf("%d: %s\n", (int)r, dt_last_error());
    exit(1);
}

/* The stream stands still behind the earlier call, and takes only so much work meanwhile. */
static void patient_after(dt_result_t (*begin)(dt_comm_t *comm, dt_comm_t *view, float *buf))
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    float *buf = device_new(2 * COUNT * sizeof *buf);
    dt_comm_t *comm, *view;
    pthread_t opener;

    need(dt_comm_dup(DT_WORLD, &comm));
    view = view_of(comm, stream);
    gate_shut(&gate, stream);
    fill_on(stream, buf, 0);
    need(begin(comm, view, buf));
    if (dt_rank() == 1)
        usleep(100000);
    opener = begin_opening();
    need(dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
    need(dt_stream_wait(view));
    need_sum(buf, 0, "a call after one that is late");
    pthread_join(opener, NULL);
    need(dt_comm_free(view));
    need(dt_comm_free(comm));
}

static dt_result_t late_barrier(dt_comm_t *comm, dt_comm_t *view, float *buf)
{
    (void)comm;
    (void)buf;
    return dt_barrier(view);
}

static dt_result_t late_exchange(dt_comm_t *comm, dt_comm_t *view, float *buf)
{
    (void)comm;
    return dt_all_to_all(view, DT_IN_PLACE, buf + COUNT, COUNT / (size_t)dt_size(), DT_F32);
}

static void patient(void)
{
    patient_after(late_barrier);
    patient_after(late_exchange);
}

/* The GPU of rank 1 does not reach the request before the call on the view has returned. */
static void after_unfinished(dt_comm_t *comm, float *asked, dt_comm_t *view, float *buf)
{
    dt_request_t request;
    int done;

    if (dt_rank() == 1)
        gate_shut(&gate, CU_STREAM_LEGACY);
    need(dt_iall_reduce(comm, DT_IN_PLACE, asked, COUNT, DT_F32, DT_SUM, &request));
    need(dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
    need(dt_test(&request, &done));
    if (done)
        fail("a request is over before the GPU of rank 1 has come to it");
    need(dt_stream_wait(view));
    gate_open(&gate);
    need(dt_wait(&request));
}

/* Rank 1 makes neither the request nor the push, and aborts their communicator. */
static void after_failures(dt_comm_t *comm, float *asked, dt_comm_t *view, float *buf)
{
    dt_request_t request;
    dt_bucket_t *bucket;

    need(dt_bucket_create(comm, COUNT * sizeof *asked, DT_F32, DT_SUM, &bucket));
    if (dt_rank() == 1) {
        need(dt_comm_abort(comm));
    } else {
        need(dt_iall_reduce(comm, DT_IN_PLACE, asked, COUNT, DT_F32, DT_SUM, &request));
        need(dt_bucket_push(bucket, asked, COUNT));
    }
    need(dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
    need(dt_stream_wait(view));
    if (dt_rank() != 1) {
        expect(dt_wait(&request), DT_ERR_ABORTED, "a request");
        expect(dt_bucket_wait(bucket), DT_ERR_ABORTED, "a bucket");
    }
    dt_bucket_free(bucket);
}

static void earlier(void)
{
    CUstream streams[2];
    dt_comm_t *comms[2], *views[2];
    float *bufs[2];

    for (int i = 0; i < 2; i++) {
        streams[i] = stream_new(CU_STREAM_NON_BLOCKING);
        need(dt_comm_dup(DT_WORLD, &comms[i]));
        views[i] = view_of(comms[i], streams[i]);
        bufs[i] = device_new(COUNT * sizeof **bufs);
        need_call(streams[i], views[i], bufs[i], "a first call");
    }
    after_unfinished(comms[0], bufs[0], views[1], bufs[1]);
    need(dt_barrier(DT_WORLD)); /* an abort would end a request that is not over everywhere */
    after_failures(comms[0], bufs[0], views[1], bufs[1]);
    need_call(streams[1], views[1], bufs[1], "a last call");
    for (int i = 0; i < 2; i++) {
        dt_comm_free(views[i]);
        dt_comm_free(comms[i]);
    }
}

/* ---- mixed with others ---- */

static void requests(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    dt_comm_t *view = view_of(DT_WORLD, stream);
    float *buf[2] = { device_new(COUNT * sizeof **buf), device_new(COUNT * sizeof **buf) };
    float host = (float)dt_rank() + 1;
    dt_request_t of_view, of_comm;
    int done;

    gate_shut(&gate, stream);
    fill_on(stream, buf[0], 0);
    need(dt_iall_reduce(view, DT_IN_PLACE, buf[0], COUNT, DT_F32, DT_SUM, &of_view));
    need(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, &host, 1, DT_F32, DT_SUM, &of_comm));
    fill_on(stream, buf[1], 1);
    need(dt_all_reduce(view, DT_IN_PLACE, buf[1], COUNT, DT_F32, DT_SUM));
    need(dt_test(&of_view, &done));
    if (done)
        fail("a request is done before its stream has come to it");
    need(dt_test(&of_comm, &done));
    if (done)
        fail("a request is done before a call that comes first");
    gate_open(&gate);
    need(dt_wait(&of_comm));
    need(dt_wait(&of_view));
    need_sum(buf[0], 0, "a request on a stream");
    if (host != (float)(dt_size() * (dt_size() + 1)) / 2)
        fail("a request between calls on a stream has another sum");
    need(dt_stream_wait(view));
    need_sum(buf[1], 1, "a call after requests");
}

static void await_word_of_others(void)
{
    uint8_t word;

    for (int rank = 1; rank < dt_size(); rank++)
        need(dt_recv(DT_WORLD, &word, 1, DT_U8, rank));
}

static void barrier(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    dt_comm_t *view = view_of(DT_WORLD, stream);
    bool late = dt_rank() == 0;

    if (late)
        gate_shut(&gate, stream);
    need(dt_barrier(view));
    need_busy(stream, "a stream has left a barrier that rank 0 has not come to");
    if (late) {
        await_word_of_others();
        gate_open(&gate);
    } else {
        need(dt_send(DT_WORLD, &late, 1, DT_U8, 0));
    }
    need(dt_stream_wait(view));
}

static void leave(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    float *buf = device_new(COUNT * sizeof *buf);
    dt_comm_t *view = view_of(DT_WORLD, stream), *comm;
    pthread_t opener;

    gate_shut(&gate, stream);
    fill_on(stream, buf, 0);
    need(dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
    opener = begin_opening();
    need(dt_comm_free(view));
    pthread_join(opener, NULL);
    DRIVE(cuStreamSynchronize(stream));
    need_sum(buf, 0, "a view that was freed");
    expect(dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM), DT_ERR_STATE,
           "a call on a view that was freed");
    expect(dt_stream_wait(view), DT_ERR_STATE, "dt_stream_wait on a view that was freed");
    if (dt_comm_rank(view) != -1)
        fail("a view that was freed has a rank");

    need(dt_comm_dup(DT_WORLD, &comm));
    view = view_of(comm, stream);
    gate_shut(&gate, stream);
    fill_on(stream, buf, 1);
    need(dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
    opener = begin_opening();
    need(dt_comm_free(comm));
    pthread_join(opener, NULL);
    DRIVE(cuStreamSynchronize(stream));
    need_sum(buf, 1, "a communicator that was freed");
    expect(dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM), DT_ERR_STATE,
           "a call on the view of a communicator that was freed");
    need(dt_comm_free(view));

    view = view_of(DT_WORLD, stream);
    gate_shut(&gate, stream);
    fill_on(stream, buf, 2);
    need(dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
    expect(dt_finalize(), DT_ERR_STATE, "dt_finalize with a call under way");
    if (!strstr(dt_last_error(), "a call on a view"))
        exit(6);
    gate_open(&gate);
    need(dt_stream_wait(view));
    need_sum(buf, 2, "a call that dt_finalize has met");
}

/* Rank 0 sends to rank 1. */
static void pass(dt_comm_t *view, float *buf, dt_request_t *request)
{
    if (dt_rank() == 0)
        need(dt_isend(view, buf, COUNT, DT_F32, 1, request));
    else if (dt_rank() == 1)
        need(dt_irecv(view, buf, COUNT, DT_F32, 0, request));
}

static void pending(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    dt_comm_t *view = view_of(DT_WORLD, stream);
    float *buf = device_new(COUNT * sizeof *buf);
    dt_request_t request = { 0 };
    pthread_t opener;

    pass(view, buf, &request); /* the first call creates what may wait for a held stream */
    need(dt_wait(&request));
    gate_shut(&gate, stream);
    pass(view, buf, &request);
    opener = begin_opening();
    need(dt_comm_free(view));
    if (dt_rank() < 2 && !*gate.word)
        fail("a view was freed with a call under way");
    need(dt_wait(&request));
    pthread_join(opener, NULL);
}

struct looking {
    dt_comm_t *view;
    _Atomic bool ended;
};

static void *look_up(void *arg)
{
    struct looking *l = arg;

    while (!l->ended)
        dt_comm_rank(l->view);
    return NULL;
}

/* If a missing thread holds a lock in the child, the child's alarm ends it. */
static void fork_child(dt_comm_t *view)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        alarm(5);
        _exit(dt_comm_rank(view) == -1 && dt_comm_size(view) == -1 &&
                      dt_comm_status(view) == DT_ERR_STATE && dt_comm_abort(view) == DT_ERR_STATE
                  ? 0
                  : 1);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        fail("a forked child hangs in a call on a view, or is told that it is a rank");
}

static void fork_children(void)
{
    struct looking l = { .view = view_of(DT_WORLD, stream_new(CU_STREAM_NON_BLOCKING)) };
    pthread_t thread;

    pthread_create(&thread, NULL, look_up, &l);
    for (int i = 0; i < 100; i++)
        fork_child(l.view);
    l.ended = true;
    pthread_join(thread, NULL);
}

struct enqueuing {
    dt_comm_t *view;
    float *buf;
    CUcontext context;
    _Atomic pid_t thread; /* of the next call; 0: not yet known */
};

static void *enqueue(void *arg)
{
    struct enqueuing *e = arg;

    DRIVE(cuCtxSetCurrent(e->context));
    e->thread = gettid();
    need(dt_all_reduce(e->view, DT_IN_PLACE, e->buf, COUNT, DT_F32, DT_SUM));
    return NULL;
}

static bool sleeps(pid_t thread)
{
    char path[64], line[512], state = '?';
    FILE *f;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    f = fopen(path, "r");
    if (f && fgets(line, sizeof line, f) && strrchr(line, ')'))
        sscanf(strrchr(line, ')') + 1, " %c", &state);
    if (f)
        fclose(f);
    return state == 'S';
}

/* The driver's queue is full, so the thread sleeps inside its call until the gate is open. */
static void finalize_beside(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    struct enqueuing e = { .view = view_of(DT_WORLD, stream),
                           .buf = device_new(COUNT * sizeof *e.buf) };
    pthread_t thread;

    DRIVE(cuCtxGetCurrent(&e.context));
    gate_shut(&gate, stream);
    for (int i = 1; i < QUEUE; i++)
        fill_on(stream, e.buf, 0);
    pthread_create(&thread, NULL, enqueue, &e);
    while (!e.thread || !sleeps(e.thread))
        sched_yield();
    expect(dt_finalize(), DT_ERR_STATE, "dt_finalize beside a thread in a call on a view");
    gate_open(&gate);
    pthread_join(thread, NULL);
    need(dt_stream_wait(e.view));
    need_sum(e.buf, 0, "a call beside dt_finalize");
}

static void need_refused(dt_comm_t *comm, CUstream stream, const char *why)
{
    dt_comm_t *view;

    expect(dt_comm_on_stream(comm, stream, &view), DT_ERR_ARG, why);
    if (!strstr(dt_last_error(), "dt_comm_on_stream: on rank 1 "))
        fail(dt_last_error());
    if (view != DT_COMM_NULL)
        fail("a view that was refused was stored");
}

static CUcontext context_push(bool own, int ordinal)
{
    CUcontext context;
    CUdevice device;

    DRIVE(cuDeviceGet(&device, ordinal));
    if (own) {
        DRIVE(cuCtxCreate_v2(&context, 0, device));
        return context;
    }
    DRIVE(cuDevicePrimaryCtxRetain(&context, device));
    DRIVE(cuCtxPushCurrent_v2(context));
    return context;
}

static void context_pop(void)
{
    CUcontext context;

    DRIVE(cuCtxPopCurrent_v2(&context));
}

static void devices(void)
{
    CUstream stream, others[2];
    dt_comm_t *view;
    float *buf;

    device_use(dt_local_rank());
    stream = others[0] = others[1] = stream_new(CU_STREAM_NON_BLOCKING);
    view = view_of(DT_WORLD, stream);
    buf = device_new(COUNT * sizeof *buf);
    for (int own = 0; own < 2 && dt_rank() == 1; own++) {
        context_push(own, own ? 1 : 2);
        others[own] = stream_new(CU_STREAM_NON_BLOCKING);
        context_pop();
    }
    need_refused(DT_WORLD, others[0], "a view on another device");
    need_refused(DT_WORLD, others[1], "a view in another context");
    need_call(stream, view, buf, "a call after a view was refused");
}

/* The calls of the first view are held while the second one is made and used. */
static void contexts(void)
{
    CUstream streams[2] = { stream_new(CU_STREAM_NON_BLOCKING) };
    float *bufs[2] = { device_new(COUNT * sizeof **bufs) };
    dt_comm_t *views[2] = { view_of(DT_WORLD, streams[0]) };
    CUcontext own = context_push(true, 0);

    bufs[1] = device_new(COUNT * sizeof **bufs);
    streams[1] = stream_new(CU_STREAM_NON_BLOCKING);
    views[1] = view_of(DT_WORLD, streams[1]);
    expect(dt_all_reduce(views[0], DT_IN_PLACE, bufs[1], COUNT, DT_F32, DT_SUM), DT_ERR_ARG,
           "a buffer of another context than the stream's");
    context_pop();
    for (int i = 0; i < ROUNDS; i++) {
        int at = i % 2;

        if (at)
            DRIVE(cuCtxPushCurrent_v2(own));
        fill_on(streams[at], bufs[at], i);
        need(dt_all_reduce(views[at], DT_IN_PLACE, bufs[at], COUNT, DT_F32, DT_SUM));
        if (at)
            context_pop();
    }
    for (int at = 0; at < 2; at++) {
        need(dt_stream_wait(views[at]));
        need_sum(bufs[at], ROUNDS - 2 + at, "views of two contexts");
        need(dt_comm_free(views[at]));
    }
}

static void use_view(const char *what)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    dt_comm_t *view = view_of(DT_WORLD, stream);
    float *buf = device_new(COUNT * sizeof *buf);

    need_call(stream, view, buf, what);
    need(dt_comm_free(view));
}

static void outlive(void)
{
    CUcontext own = context_push(true, 0);
    CUstream stream;
    dt_comm_t *view;
    float *buf;

    use_view("a call in a context that is destroyed later");
    context_pop();
    stream = stream_new(CU_STREAM_NON_BLOCKING);
    view = view_of(DT_WORLD, stream);
    buf = device_new(COUNT * sizeof *buf);
    DRIVE(cuCtxDestroy_v2(own));
    need_call(stream, view, buf, "a call in a context that outlives the first one");
    need(dt_comm_free(view));
}

/* Does what cudaDeviceReset does. */
static void device_reset(void)
{
    CUdevice device;

    DRIVE(cuCtxGetDevice(&device));
    DRIVE(cuDevicePrimaryCtxReset_v2(device));
}

static void reset(void)
{
    use_view("a call before a reset");
    device_reset();
    use_view("a call after a reset");
}

static void file_of(char name[64], int rank)
{
    snprintf(name, 64, "met.%.40s.%d", getenv("DTRUN_JOB_ID"), rank);
}

/* Waits until all ranks have come here, by files: a rank that leaves a call of libdtrun first may
 * fail DT_WORLD while others are still inside. */
static void meet(void)
{
    char name[64];

    file_of(name, dt_rank());
    close(open(name, O_CREAT | O_WRONLY, 0600));
    for (int rank = 0; rank < dt_size(); rank++) {
        file_of(name, rank);
        while (access(name, F_OK) != 0)
            usleep(1000);
    }
}

/* On the paths that keep a context's memory for a communicator. */
static void reset_before_view(void)
{
    dt_comm_t *view;

    use_view("a call before a reset");
    meet();
    device_reset();
    expect(dt_comm_on_stream(DT_WORLD, stream_new(CU_STREAM_NON_BLOCKING), &view), DT_ERR_CUDA,
           "a view after a reset");
}

static void reset_before_call(void)
{
    float *buf;

    use_view("a call before a reset");
    meet();
    device_reset();
    buf = device_new(COUNT * sizeof *buf);
    expect(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM), DT_ERR_CUDA,
           "a call after a reset");
}

static void finalize_gone(void)
{
    use_view("a call before a reset");
    device_reset();
}

static void finalize_destroyed(void)
{
    CUcontext own = context_push(true, 0);

    use_view("a call before the context is destroyed");
    DRIVE(cuCtxDestroy_v2(own));
}

static void finalize_twice(void)
{
    use_view("a call before dt_finalize");
    need(dt_finalize());
    expect(dt_finalize(), DT_ERR_STATE, "dt_finalize a second time");
    printf("twice: done\n");
    exit(0);
}

struct gathering {
    CUcontext context;
    float *buf;
    size_t each;
};

static void *gather(void *arg)
{
    struct gathering *g = arg;

    DRIVE(cuCtxSetCurrent(g->context));
    need(dt_all_gather(DT_WORLD, DT_IN_PLACE, g->buf, g->each, DT_F32));
    return NULL;
}

/* Rank 1's call is refused before the others notice, and so it can be made again. */
static void stray(bool own, const char *what)
{
    float *buf;

    if (dt_rank() != 1)
        return;
    context_push(own, own ? 1 : 2);
    buf = device_new(COUNT * sizeof *buf);
    expect(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM), DT_ERR_ARG, what);
    if (!strstr(dt_last_error(), what))
        fail(dt_last_error());
    context_pop();
}

/* The input lies where it should, but the result would go to another device. */
static void stray_result(const float *in, dt_comm_t *comm)
{
    float *out;

    if (dt_rank() != 1)
        return;
    context_push(false, 2);
    out = device_new(COUNT * sizeof *out);
    context_pop();
    expect(dt_all_reduce(comm, in, out, COUNT, DT_F32, DT_SUM), DT_ERR_ARG, "a result elsewhere");
    if (!strstr(dt_last_error(), "on device 2"))
        fail(dt_last_error());
}

/* The bucket refuses its buffers when it reduces them. It is of no use any more, but no other rank
 * has waited for it. */
static void stray_bucket(void)
{
    dt_bucket_t *bucket;
    float *buf;

    if (dt_rank() != 1)
        return;
    context_push(false, 2);
    buf = device_new(2 * sizeof *buf);
    need(dt_bucket_create(DT_WORLD, 0, DT_F32, DT_SUM, &bucket));
    need(dt_bucket_push(bucket, buf, 1));
    need(dt_bucket_push(bucket, buf + 1, 1));
    expect(dt_bucket_wait(bucket), DT_ERR_ARG, "a bucket on another device");
    expect(dt_bucket_free(bucket), DT_ERR_ARG, "a bucket that has failed");
    context_pop();
}

static void strays(void)
{
    CUstream stream;
    dt_comm_t *view;
    float *buf;

    device_use(dt_local_rank());
    buf = device_new(COUNT * sizeof *buf);
    for (int round = 0; round < 3; round++) {
        fill_on(CU_STREAM_LEGACY, buf, round);
        need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
        need_sum(buf, round, "a call after one that was refused");
        stray_result(buf, DT_WORLD);
        stray_bucket();
        if (round < 2)
            stray(round == 1, round ? "another context of device 1" : "on device 2");
    }
    stream = stream_new(CU_STREAM_NON_BLOCKING);
    view = view_of(DT_WORLD, stream);
    stray_result(buf, view);
    need_call(stream, view, buf, "a call after one on a view that was refused");
}

static void need_blocking_call(dt_comm_t *comm, float *buf, const char *what)
{
    fill_on(CU_STREAM_LEGACY, buf, 0);
    need(dt_all_reduce(comm, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
    need_sum(buf, 0, what);
}

static void swap_devices(void)
{
    CUstream stream;
    dt_comm_t *comm;
    float *buf;

    device_use(dt_local_rank());
    buf = device_new(COUNT * sizeof *buf);
    need_blocking_call(DT_WORLD, buf, "a call before the split");
    need(dt_comm_split(DT_WORLD, 0, 0, &comm));
    if (dt_rank() > 0) {
        device_use(3 - dt_rank());
        buf = device_new(COUNT * sizeof *buf);
    }
    stream = stream_new(CU_STREAM_NON_BLOCKING);
    need_call(stream, view_of(comm, stream), buf, "a call on a view after the split");
    need_blocking_call(comm, buf, "a call after the split");
}

/* Staging serves each context, but no path serves two in one call. A buffer that a rank does not
 * use may lie anywhere. */
static void apart(void)
{
    const char *path = getenv("DTRUN_DEVICE");
    dt_result_t other = path && strcmp(path, "staging") == 0 ? DT_OK : DT_ERR_ARG;
    float *here = device_new(COUNT * sizeof *here), *there;

    context_push(true, 0);
    there = device_new(COUNT * sizeof *there);
    context_pop();
    fill_on(CU_STREAM_LEGACY, here, 0);
    expect(dt_all_reduce(DT_WORLD, here, there, COUNT, DT_F32, DT_SUM), DT_ERR_ARG,
           "a result in another context");
    if (!strstr(dt_last_error(), "in and out belong to different contexts of device 0"))
        fail(dt_last_error());
    need(dt_reduce(DT_WORLD, here, dt_rank() == 1 ? here : there, COUNT, DT_F32, DT_SUM, 1));
    if (dt_rank() == 1)
        need_sum(here, 0, "a reduction to rank 1");
    expect(dt_all_reduce(DT_WORLD, DT_IN_PLACE, there, COUNT, DT_F32, DT_SUM), other,
           "a call in another context than the first");
}

/* The large call returns more pinned memory than is kept. No call may wait for it to be freed,
 * because that waits for the stream that ends only after the call on the view. */
static void pool(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING), busy = stream_new(CU_STREAM_NON_BLOCKING);
    struct gathering g = { .each = POOL / sizeof(float) / (size_t)dt_size() };
    float *buf = device_new(COUNT * sizeof *buf);
    dt_comm_t *other, *view;
    pthread_t thread;

    need(dt_comm_dup(DT_WORLD, &other));
    view = view_of(other, stream);
    g.buf = device_new(POOL);
    DRIVE(cuCtxGetCurrent(&g.context));
    need(dt_all_gather(DT_WORLD, DT_IN_PLACE, g.buf, g.each, DT_F32)); /* pins the memory */
    gate_shut(&gate, busy);
    pthread_create(&thread, NULL, gather, &g);
    pthread_join(thread, NULL);
    fill_on(stream, buf, 0);
    need(dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
    need(dt_stream_wait(view));
    gate_open(&gate);
    need_sum(buf, 0, "a call beside one that gives pinned memory back");
    need(dt_comm_free(view));
    need(dt_comm_free(other));
}

/* As a program does that reduces each of its many tensors by itself. */
static void queue(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    dt_comm_t *view = view_of(DT_WORLD, stream);
    float *buf = device_new(COUNT * sizeof *buf);

    gate_shut(&gate, stream);
    fill_on(stream, buf, 0);
    for (int i = 0; i < COUNT; i++)
        need(dt_all_reduce(view, DT_IN_PLACE, buf + i, 1, DT_F32, DT_SUM));
    gate_open(&gate);
    need(dt_stream_wait(view));
    need_sum(buf, 0, "many calls in a queue");
    need(dt_comm_free(view));
}

static void need_turn(CUstream stream)
{
    for (int ms = 0; ms < 20; ms++) { /* long enough for a call that does not wait */
        need_busy(stream, "a call has overtaken an earlier one on another stream");
        usleep(1000);
    }
}

/* The first stream is held, so neither call can be made. */
static void take_turns(void)
{
    CUstream streams[2] = { stream_new(CU_STREAM_NON_BLOCKING),
                            stream_new(CU_STREAM_NON_BLOCKING) };
    dt_comm_t *views[2] = { view_of(DT_WORLD, streams[0]), view_of(DT_WORLD, streams[1]) };
    float *bufs[2];

    for (int i = 0; i < 2; i++)
        bufs[i] = device_new(COUNT * sizeof **bufs);
    gate_shut(&gate, streams[0]);
    for (int i = 0; i < 2; i++) {
        fill_on(streams[i], bufs[i], i);
        need(dt_all_reduce(views[i], DT_IN_PLACE, bufs[i], COUNT, DT_F32, DT_SUM));
    }
    need_turn(streams[1]);
    gate_open(&gate);
    for (int i = 0; i < 2; i++) {
        need(dt_stream_wait(views[i]));
        need_sum(bufs[i], i, "calls on two streams");
    }
}

/* Every rank gives each rank its number. */
static void swap_numbers(float *buf, size_t bytes)
{
    float got[COUNT];

    DRIVE(cuMemsetD32Async(address(buf), bits_of((float)dt_rank()), bytes / sizeof *buf,
                           CU_STREAM_PER_THREAD));
    need(dt_all_to_all(DT_WORLD, DT_IN_PLACE, buf, COUNT, DT_F32));
    for (int rank = 0; rank < dt_size(); rank++) {
        DRIVE(cuMemcpyDtoHAsync_v2(got, address(buf + rank * COUNT), sizeof got,
                                   CU_STREAM_PER_THREAD));
        DRIVE(cuStreamSynchronize(CU_STREAM_PER_THREAD));
        if (got[0] != (float)rank || got[COUNT - 1] != (float)rank)
            fail("an all-to-all in place moved other data");
    }
}

/* A call that allocated or freed memory would wait for the stream. The first call connects NCCL,
 * and takes the memory where that cannot be taken in stream order. */
static void set_aside(void)
{
    CUstream busy = stream_new(CU_STREAM_NON_BLOCKING);
    size_t bytes = COUNT * sizeof(float) * (size_t)dt_size();
    float *buf = device_new(bytes);

    swap_numbers(buf, bytes);
    gate_shut(&gate, busy);
    for (int i = 0; i < 3; i++)
        swap_numbers(buf, bytes);
    gate_open(&gate);
}

/* While the communicator is in another call, its thread launches the enqueued one. */
static void mix(dt_comm_t *const views[2], const CUstream streams[2], float *const bufs[3],
                dt_comm_t *other)
{
    float host = 1;
    dt_request_t request;

    for (int i = 0; i < ROUNDS; i++) {
        fill_on(streams[i % 2], bufs[i % 2], i);
        need(dt_all_reduce(views[i % 2], DT_IN_PLACE, bufs[i % 2], COUNT, DT_F32, DT_SUM));
        if (i % 5 == 2)
            need(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, &host, 1, DT_F32, DT_MAX, &request));
        if (i % 5 == 4)
            need(dt_wait(&request));
        if (i % 7 == 3)
            need(dt_all_reduce(other, DT_IN_PLACE, bufs[2], COUNT, DT_F32, DT_MAX));
    }
    for (int at = 0; at < 2; at++) {
        need(dt_stream_wait(views[at]));
        need_sum(bufs[at], ROUNDS - 2 + at, "calls on two streams between others");
    }
}

static void mixed(void)
{
    CUstream streams[2] = { stream_new(CU_STREAM_NON_BLOCKING), stream_new(CU_STREAM_DEFAULT) };
    dt_comm_t *views[2] = { view_of(DT_WORLD, streams[0]), view_of(DT_WORLD, streams[1]) }, *other;
    float *bufs[3];

    for (int i = 0; i < 3; i++)
        bufs[i] = device_new(COUNT * sizeof **bufs);
    mix(views, streams, bufs, DT_WORLD);
    need(dt_comm_dup(DT_WORLD, &other));
    mix(views, streams, bufs, other);
    need(dt_comm_free(other));
}

/* The first call stays on the GPU until the second one, on another stream, is being launched. */
static void launching(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    dt_comm_t *view = view_of(DT_WORLD, stream);
    struct enqueuing second = { .view = view_of(DT_WORLD, stream_new(CU_STREAM_NON_BLOCKING)),
                                .buf = device_new(COUNT * sizeof *second.buf) };
    float *buf = device_new(COUNT * sizeof *buf);
    dt_request_t request;
    pthread_t thread;

    DRIVE(cuCtxGetCurrent(&second.context));
    gate_shut(&gate, stream);
    fill_on(stream, buf, 0);
    need(dt_iall_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM, &request));
    pthread_create(&thread, NULL, enqueue, &second);
    while (access(getenv("STANDIN_NCCL_HANGS"), F_OK) != 0)
        usleep(1000);
    gate_open(&gate);
    need(dt_wait(&request));
    need_sum(buf, 0, "a call that is over while another one is launched");
    if (dt_rank() == 0) {
        need(dt_comm_status(DT_WORLD));
        printf("over\n");
        fflush(stdout);
        need(dt_comm_abort(DT_WORLD));
    }
    pthread_join(thread, NULL);
    need(dt_stream_wait(second.view));
    fail("a call that was never launched has been made");
}

static void mismatch(void)
{
    dt_comm_t *view = view_of(DT_WORLD, stream_new(CU_STREAM_NON_BLOCKING));
    float *buf = device_new(COUNT * sizeof *buf);

    need(dt_all_reduce(view, DT_IN_PLACE, buf, (size_t)(COUNT - (dt_rank() == 1)), DT_F32, DT_SUM));
    need(dt_stream_wait(view));
}

/* ---- a thread without a context ---- */

struct bare_view {
    CUstream stream;
    dt_comm_t *view;
};

static void *make_bare_view(void *arg)
{
    struct bare_view *b = arg;

    b->view = view_of(DT_WORLD, b->stream);
    return NULL;
}

static void bare(void)
{
    struct bare_view b = { .stream = stream_new(CU_STREAM_NON_BLOCKING) };
    pthread_t thread;

    pthread_create(&thread, NULL, make_bare_view, &b);
    pthread_join(thread, NULL);
    need_call(b.stream, b.view, device_new(COUNT * sizeof(float)), "a view of another thread");
}

/* ---- a call that NCCL refuses ---- */

/* If rank 0 launched the second call, the others would take it for the first. */
static void unlaunched(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    dt_comm_t *view = view_of(DT_WORLD, stream);
    dt_request_t requests[2];
    float *bufs[2];

    for (int i = 0; i < 2; i++) {
        bufs[i] = device_new(COUNT * sizeof **bufs);
        fill_on(stream, bufs[i], i);
    }
    for (int i = 0; i < 2; i++)
        need(dt_iall_reduce(view, DT_IN_PLACE, bufs[i], COUNT, DT_F32, DT_SUM, &requests[i]));
    need(dt_wait(&requests[0]));
    need_sum(bufs[0], 0, "a call that rank 0 has not launched");
}

/* ---- calls that the driver refuses on one rank ---- */

/* The variable is set from the start, so that this only replaces its value while other threads may
 * read it. */
static void refuse(bool on)
{
    if (dt_rank() == 1)
        setenv("STANDIN_REFUSES", on ? getenv("REFUSED") : "", 1);
}

static void print_result(dt_result_t r)
{
    printf("%d: %s\n", (int)r, r == DT_OK ? "" : dt_last_error());
}

/* Rank 1 sends to rank 2, whose receive the driver accepts. */
static dt_result_t pass_one(dt_comm_t *comm, float *buf)
{
    if (dt_rank() == 0)
        return dt_all_reduce(comm, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM);
    return dt_rank() == 1 ? dt_send(comm, buf, COUNT, DT_F32, 2)
                          : dt_recv(comm, buf, COUNT, DT_F32, 1);
}

/* Rank 1 refuses once all ranks have their views. */
static void make_refused(dt_comm_t *comm, bool on_stream, bool sends)
{
    float *buf = device_new(COUNT * sizeof *buf);
    dt_comm_t *at = on_stream ? view_of(comm, stream_new(CU_STREAM_NON_BLOCKING)) : comm;
    dt_result_t r;

    need(dt_barrier(DT_WORLD));
    refuse(true);
    r = sends ? pass_one(at, buf) : dt_all_reduce(at, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM);
    if (r == DT_OK && on_stream)
        r = dt_stream_wait(at);
    print_result(r);
    refuse(false);
    if (on_stream)
        (void)dt_comm_free(at);
}

/* Rank 1 stays in the job until the others have the result. */
static void refused(void)
{
    for (int i = 0; i < 4; i++) {
        dt_comm_t *comm;

        need(dt_comm_dup(DT_WORLD, &comm));
        make_refused(comm, i % 2, i / 2);
        (void)dt_comm_free(comm);
        need(dt_barrier(DT_WORLD));
    }
}

/* Other ranks may have their views by then, so this makes another call. */
static void refused_view(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    dt_comm_t *comm, *view;
    dt_result_t r;

    need(dt_comm_dup(DT_WORLD, &comm));
    refuse(true);
    r = dt_comm_on_stream(comm, stream, &view);
    print_result(r == DT_OK ? dt_barrier(comm) : r);
    refuse(false);
    (void)dt_comm_free(comm);
    need(dt_barrier(DT_WORLD));
}

/* ---- arguments that are refused ---- */

static void args(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    dt_comm_t *view = view_of(DT_WORLD, stream), *other;
    float host[2] = { 0 }, *buf = device_new(sizeof host);
    dt_bucket_t *bucket;
    dt_request_t request;
    void *memory;
    int last;

    expect(dt_comm_on_stream(DT_WORLD, stream, NULL), DT_ERR_ARG,
           "the pointer to the view is NULL");
    expect(dt_comm_on_stream(view, stream, &other), DT_ERR_ARG, "a view of a view");
    if (other != DT_COMM_NULL)
        fail("a view of a view was stored");
    expect(dt_stream_wait(DT_WORLD), DT_ERR_ARG, "dt_stream_wait on no view");
    expect(dt_all_reduce(view, DT_IN_PLACE, host, 1, DT_F32, DT_SUM), DT_ERR_ARG, "host memory");
    expect(dt_iall_reduce(view, DT_IN_PLACE, host, 1, DT_F32, DT_SUM, &request), DT_ERR_ARG,
           "host memory of a request");
    expect(dt_all_reduce(view, host, buf, 1, DT_F32, DT_SUM), DT_ERR_ARG, "mixed memory");
    expect(dt_all_reduce(view, DT_IN_PLACE, buf, 1, DT_F32, (dt_op_t)99), DT_ERR_ARG,
           "no operation");
    expect(dt_broadcast(view, buf, 1, DT_F32, dt_size()), DT_ERR_ARG, "no root");
    expect(dt_send(view, buf, 1, DT_F32, dt_size()), DT_ERR_ARG, "no peer");
    expect(dt_comm_dup(view, &other), DT_ERR_ARG, "dt_comm_dup of a view");
    expect(dt_mem_alloc(view, 1, &memory), DT_ERR_ARG, "dt_mem_alloc on a view");
    expect(dt_join(view, &last), DT_ERR_ARG, "dt_join on a view");
    if (dt_bucket_create(view, 0, DT_F32, DT_SUM, &bucket) != DT_ERR_ARG)
        fail("a bucket was made of a view");
    if (dt_comm_rank(view) != dt_rank() || dt_comm_size(view) != dt_size())
        fail("a view has other ranks than its communicator");
    need(dt_comm_status(view));
    need(dt_comm_set_timeout(view, 50));
    need(dt_all_reduce(view, DT_IN_PLACE, NULL, 0, DT_F32, DT_SUM));
    need(dt_stream_wait(view));
}

static void capture(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    dt_comm_t *view = view_of(DT_WORLD, stream), *other;
    float *buf = device_new(COUNT * sizeof *buf);
    CUgraph graph;
    dt_result_t r;

    DRIVE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    r = dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM);
    printf("%d: %s\n", (int)r, dt_last_error());
    expect(dt_stream_wait(view), DT_ERR_UNSUPPORTED, "dt_stream_wait in a capture");
    expect(dt_comm_on_stream(DT_WORLD, stream, &other), DT_ERR_UNSUPPORTED, "a view in a capture");
    DRIVE(cuStreamEndCapture(stream, &graph));
    need_call(stream, view, buf, "a call after a capture");
}

/* ---- what goes wrong ---- */

/* Makes one call that works, then one that is enqueued and never made. The stream goes on
 * nevertheless, and the next call reports why. */
static void end_badly(void (*of_rank_1)(dt_comm_t *view))
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    dt_comm_t *view = view_of(DT_WORLD, stream);
    float *buf = device_new(COUNT * sizeof *buf);

    need_call(stream, view, buf, "a call before a failure");
    if (dt_rank() == 1)
        of_rank_1(view);
    need(dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
    DRIVE(cuStreamSynchronize(stream));
    need(dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
    fail("a call after a failure was enqueued");
}

static void kill_self(dt_comm_t *view)
{
    (void)view;
    raise(SIGKILL);
}

static void die(void)
{
    end_badly(kill_self);
}

static void kill_self_late(dt_comm_t *view)
{
    while (access(getenv("STANDIN_NCCL_HANGS"), F_OK) != 0)
        usleep(1000);
    kill_self(view);
}

static void die_late(void)
{
    end_badly(kill_self_late);
}

static void abort_it(dt_comm_t *view)
{
    need(dt_comm_abort(view));
}

static void abort_world(void)
{
    end_badly(abort_it);
}

/* The first such call may start NCCL, and must not have a short limit. */
static void all_reduce_and_wait(dt_comm_t *view, float *buf)
{
    need(dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
    need(dt_stream_wait(view));
}

static void late(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    dt_comm_t *view = view_of(DT_WORLD, stream);
    float *buf = device_new(COUNT * sizeof *buf);

    all_reduce_and_wait(view, buf);
    if (dt_rank() == 1)
        gate_shut(&gate, stream);
    need(dt_barrier(DT_WORLD));
    need(dt_comm_set_timeout(view, 1));
    all_reduce_and_wait(view, buf);
}

static void endless(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    dt_comm_t *view = view_of(DT_WORLD, stream);
    float *buf = device_new(COUNT * sizeof *buf);

    all_reduce_and_wait(view, buf);
    need(dt_comm_set_timeout(view, 0.5));
    need(dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
    gate_shut(&gate, stream);
    need(dt_stream_wait(view));
}

/* ---- memory and streams that a stern driver gives only to an idle GPU ---- */

static float *numbers_new(size_t count, float value)
{
    float *buf = device_new(count * sizeof *buf);

    DRIVE(cuMemsetD32_v2(address(buf), bits_of(value), count));
    DRIVE(cuStreamSynchronize(CU_STREAM_LEGACY));
    return buf;
}

static void need_numbers(const float *device, size_t count, float wanted, const char *what)
{
    static float got[100 * COUNT]; /* few copies, each of which switches threads on a stand-in */

    for (size_t at = 0, n; at < count; at += n) {
        n = count - at < sizeof got / sizeof *got ? count - at : sizeof got / sizeof *got;
        DRIVE(cuMemcpyDtoH_v2(got, address(device + at), n * sizeof *got));
        for (size_t i = 0; i < n; i++) {
            if (got[i] == wanted)
                continue;
            printf("%s: element %zu is %g and not %g\n", what, at + i, (double)got[i],
                   (double)wanted);
            exit(6);
        }
    }
}

/* A view on which NCCL has connected the ranks. */
static dt_comm_t *connected_view(void)
{
    dt_comm_t *view = view_of(DT_WORLD, stream_new(CU_STREAM_NON_BLOCKING));

    need(dt_all_reduce(view, DT_IN_PLACE, numbers_new(COUNT, 1), COUNT, DT_F32, DT_SUM));
    need(dt_stream_wait(view));
    return view;
}

/* Requests that need memory and streams, before a call that holds a stream until they are over. */
static void pinning(void)
{
    enum { MUCH = 3000 * COUNT };
    int rank = dt_rank(), n = dt_size(), next = (rank + 1) % n, last = (rank + n - 1) % n;
    dt_comm_t *view = connected_view();
    float *sum = numbers_new(COUNT, 1), *received = numbers_new(MUCH, 0);
    float *sent = numbers_new(MUCH, (float)rank), *gathered = numbers_new((size_t)n * MUCH, 0);
    dt_request_t requests[3];

    need(dt_isend(DT_WORLD, sent, MUCH, DT_F32, next, &requests[0]));
    need(dt_irecv(DT_WORLD, received, MUCH, DT_F32, last, &requests[1]));
    need(dt_iall_gather(DT_WORLD, sent, gathered, MUCH, DT_F32, &requests[2]));
    need(dt_all_reduce(view, DT_IN_PLACE, sum, COUNT, DT_F32, DT_SUM));
    need(dt_wait_all(requests, 3));
    need(dt_stream_wait(view));
    need_numbers(sum, COUNT, (float)n, "the call on the stream");
    need_numbers(received, MUCH, (float)last, "the receive");
    for (int i = 0; i < n; i++)
        need_numbers(gathered + (size_t)i * MUCH, MUCH, (float)i, "the all-gather");
}

/* Rank 0's sends need memory and streams after a call that the other ranks make only once they have
 * received. */
static void send_behind(void)
{
    enum { MUCH = 3000 * COUNT };
    dt_comm_t *view = connected_view();
    float *sum = numbers_new(COUNT, 1), *data = numbers_new(MUCH, (float)(10 - dt_rank()));
    dt_request_t request;

    if (dt_rank() == 0) {
        need(dt_all_reduce(view, DT_IN_PLACE, sum, COUNT, DT_F32, DT_SUM));
        need(dt_send(DT_WORLD, data, MUCH, DT_F32, 1));
        need(dt_isend(DT_WORLD, data, MUCH, DT_F32, 2, &request));
        need(dt_wait(&request));
    } else {
        need(dt_recv(DT_WORLD, data, MUCH, DT_F32, 0));
        need(dt_all_reduce(view, DT_IN_PLACE, sum, COUNT, DT_F32, DT_SUM));
    }
    need(dt_stream_wait(view));
    need_numbers(sum, COUNT, (float)dt_size(), "the call on the stream");
    need_numbers(data, MUCH, 10, "the data");
}

/* The same, with sends on another stream, twice. */
static void stream_behind(void)
{
    enum { MUCH = 3000 * COUNT };
    dt_comm_t *views[] = { connected_view(), connected_view() };
    float *sum = numbers_new(COUNT, 1), *data = numbers_new(MUCH, (float)(10 - dt_rank()));

    for (int i = 0, n = 1; i < 2; i++) {
        if (dt_rank() == 0)
            need(dt_all_reduce(views[0], DT_IN_PLACE, sum, COUNT, DT_F32, DT_SUM));
        for (int to = 1; dt_rank() == 0 && to < dt_size(); to++)
            need(dt_send(views[1], data, MUCH, DT_F32, to));
        if (dt_rank() > 0)
            need(dt_recv(views[1], data, MUCH, DT_F32, 0));
        need(dt_stream_wait(views[1]));
        if (dt_rank() > 0)
            need(dt_all_reduce(views[0], DT_IN_PLACE, sum, COUNT, DT_F32, DT_SUM));
        need(dt_stream_wait(views[0]));
        need_numbers(sum, COUNT, (float)(n *= dt_size()), "the call on the stream");
        need_numbers(data, MUCH, 10, "the data");
    }
}

/* Each of these pieces would wait for the call that rank 1 does not make. So would any call of the
 * library's threads, in a driver that accepts no more pieces. */
static void ahead(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    dt_comm_t *view = view_of(DT_WORLD, stream);
    float *buf = device_new(COUNT * sizeof *buf);

    need(dt_comm_set_timeout(view, 0.5));
    if (dt_rank() != 1) {
        need(dt_all_reduce(view, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
        for (int i = 0; i < 1000; i++)
            DRIVE(cuMemsetD32Async(address(buf), 0, COUNT, stream));
    }
    while (dt_comm_status(view) == DT_OK)
        usleep(1000);
    need(dt_stream_wait(view));
}

struct filling {
    CUcontext context;
    CUstream stream;
    float *buf;
    _Atomic pid_t thread; /* 0: not yet known */
};

static void *fill_queue(void *arg)
{
    struct filling *f = arg;

    DRIVE(cuCtxSetCurrent(f->context));
    f->thread = gettid();
    for (;;)
        fill_on(f->stream, f->buf, 0);
    return NULL;
}

static void jam(dt_comm_t *comm, dt_bucket_t *bucket, float *buf)
{
    struct filling f = { .stream = stream_new(CU_STREAM_NON_BLOCKING), .buf = buf };
    float number = 0;
    dt_request_t request;
    pthread_t thread;

    need(dt_iall_reduce(comm, DT_IN_PLACE, &number, 1, DT_F32, DT_SUM, &request));
    for (int i = 0; i < 2; i++)
        need(dt_bucket_push(bucket, buf + i, 1));
    DRIVE(cuCtxGetCurrent(&f.context));
    gate_shut(&gate, f.stream);
    pthread_create(&thread, NULL, fill_queue, &f);
    while (!f.thread || !sleeps(f.thread))
        sched_yield();
    need(dt_barrier(DT_WORLD));
    need(dt_bucket_wait(bucket));
}

/* The other ranks join the request, after which the bucket's call begins, when the queue is full.
 */
static void bucket_behind_jam(void)
{
    float *buf = device_new(COUNT * sizeof *buf), number = 0;
    dt_bucket_t *bucket;
    dt_comm_t *comm;

    need(dt_comm_dup(DT_WORLD, &comm));
    need(dt_bucket_create(comm, 0, DT_F32, DT_SUM, &bucket));
    for (int i = 0; i < 2; i++)
        need(dt_bucket_push(bucket, buf + i, 1));
    need(dt_bucket_wait(bucket));
    if (dt_rank() == 0)
        jam(comm, bucket, buf);
    need(dt_barrier(DT_WORLD));
    need(dt_all_reduce(comm, DT_IN_PLACE, &number, 1, DT_F32, DT_SUM));
    while (dt_comm_status(comm) == DT_OK)
        usleep(1000);
    need(dt_comm_status(comm));
}

/* Some drivers make no stream until the GPU is idle. */
static void another_view(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    dt_comm_t *comm;

    view_of(DT_WORLD, stream);
    need(dt_comm_dup(DT_WORLD, &comm));
    if (dt_rank() == 0)
        gate_shut(&gate, stream);
    view_of(comm, stream);
}

int main(int argc, char **argv)
{
    static const struct doing doings[] = { { "order", order },
                                           { "legacy", legacy },
                                           { "orders", orders },
                                           { "promised", promised },
                                           { "promiser", promiser },
                                           { "patient", patient },
                                           { "earlier", earlier },
                                           { "requests", requests },
                                           { "barrier", barrier },
                                           { "free", leave },
                                           { "mismatch", mismatch },
                                           { "unlaunched", unlaunched },
                                           { "refused", refused },
                                           { "refusedview", refused_view },
                                           { "bare", bare },
                                           { "args", args },
                                           { "capture", capture },
                                           { "die", die },
                                           { "dielate", die_late },
                                           { "abort", abort_world },
                                           { "late", late },
                                           { "endless", endless },
                                           { "ahead", ahead },
                                           { "jam", bucket_behind_jam },
                                           { "another", another_view },
                                           { "pinning", pinning },
                                           { "sendbehind", send_behind },
                                           { "streambehind", stream_behind },
                                           { "pending", pending },
                                           { "fork", fork_children },
                                           { "beside", finalize_beside },
                                           { "devices", devices },
                                           { "mixed", mixed },
                                           { "launching", launching },
                                           { "reset", reset },
                                           { "resetview", reset_before_view },
                                           { "resetcall", reset_before_call },
                                           { "gone", finalize_gone },
                                           { "destroyed", finalize_destroyed },
                                           { "twice", finalize_twice },
                                           { "contexts", contexts },
                                           { "outlive", outlive },
                                           { "swap", swap_devices },
                                           { "strays", strays },
                                           { "apart", apart },
                                           { "pool", pool },
                                           { "queue", queue },
                                           { "turns", take_turns },
                                           { "aside", set_aside } };

    device_join();
    gate_make(&gate);
    if (!device_do(doings, sizeof doings / sizeof *doings, argc, argv))
        return 2;
    printf("%s: done\n", argv[1]);
    need(dt_finalize());
    return 0;
}
