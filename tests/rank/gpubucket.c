/* A rank that fills buckets with buffers in GPU memory, of whatever libcuda.so.1 the loader finds.
 * Its argument says what it does:
 *
 * - rounds: many rounds, in the first of which the GPU writes the buffers after all were pushed;
 *   fails if the rounds or the bucket lose GPU memory
 * - large: the same with a bucket that is never full before the wait
 * - view: the same, and before each wait a call is enqueued on a stream
 * - mixed: buckets of two types, with buffers in host memory and in GPU memory
 * - join: ranks make different numbers of rounds
 * - unlike: rank 1 pushes two buffers in another order
 * - unlike-large: the same with more elements than are staged at once
 * - crowd: a round of many buffers, and one for which the GPU of rank 1 never becomes free
 * - abort: rank 0 aborts the communicator while results are copied back
 * - die: rank 1 is killed while its GPU has work before its buffers
 * - stuck: the GPU of rank 1 does that work only when the calls of all ranks have failed
 * - aborted: pushes after an abort, while the GPU stands still
 * - elsewhere: pushes a buffer on another device, which must be refused
 * - contexts: pushes a buffer of another context of the same device, which must be refused
 * - after: a round, then one with a time limit, in which something hangs that the environment sets
 *
 * After a failure it prints whether as much GPU memory is kept as the bucket has. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/rank/device.h"

enum { BUFFERS = 20, MOST = 100000, CAP = 256 * 1024, LARGE = 3 * CAP, ROUNDS = 50 };

/* ---- buffers that hold one number ---- */

struct buffer {
    float *ptr;
    size_t count;
    bool on_host;
};

/* One is larger than the bucket, and together they fill it twice. */
static void make_buffers(struct buffer *buffers)
{
    for (size_t i = 0; i < BUFFERS; i++) {
        size_t count = i == BUFFERS / 2 ? MOST : 250 * i + 1;

        buffers[i] = (struct buffer){ device_new(count * sizeof(float)), count, false };
    }
}

static unsigned bits_of(float v)
{
    unsigned bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static void set(const struct buffer *b, float v)
{
    for (size_t i = 0; b->on_host && i < b->count; i++)
        b->ptr[i] = v;
    if (!b->on_host)
        DRIVE(cuMemsetD32Async(address(b->ptr), bits_of(v), b->count, CU_STREAM_LEGACY));
}

static float own(int i)
{
    return (float)(dt_rank() + 1 + i);
}

static float sum(int i)
{
    return (float)(dt_size() * (dt_size() + 1) / 2 + dt_size() * i);
}

static void need_all(const struct buffer *b, float v, const char *what)
{
    static float copy[MOST];

    if (b->on_host)
        memcpy(copy, b->ptr, b->count * sizeof *copy);
    else
        DRIVE(cuMemcpyDtoH_v2(copy, address(b->ptr), b->count * sizeof *copy));
    for (size_t i = 0; i < b->count; i++) {
        if (copy[i] == v)
            continue;
        printf("%s: element %zu of %zu is %g and not %g\n", what, i, b->count, (double)copy[i],
               (double)v);
        exit(6);
    }
}

/* ---- work that the GPU does later ---- */

static struct gate gate;

static void *open_soon(void *arg)
{
    usleep(20000); /* long enough for a copy that does not wait to be made */
    gate_open(&gate);
    return arg;
}

static void *die_soon(void *arg)
{
    usleep(50000); /* long enough for the others to join the call, though any time is right */
    raise(SIGKILL);
    return arg;
}

/* ---- rounds ---- */

static dt_result_t try_push_round(dt_bucket_t *bucket, const struct buffer *buffers)
{
    dt_result_t r = DT_OK;

    for (int i = 0; i < BUFFERS && r == DT_OK; i++) {
        set(&buffers[i], own(i));
        r = dt_bucket_push(bucket, buffers[i].ptr, buffers[i].count);
    }
    return r;
}

static void push_round(dt_bucket_t *bucket, const struct buffer *buffers)
{
    need(try_push_round(bucket, buffers));
}

static void need_round(const struct buffer *buffers)
{
    for (int i = 0; i < BUFFERS; i++)
        need_all(&buffers[i], sum(i), "bucket");
}

static size_t memory_left(void)
{
    size_t left, total;

    DRIVE(cuCtxSynchronize());
    DRIVE(cuMemGetInfo_v2(&left, &total));
    return left;
}

/* Memory that is freed in stream order may come back a little later. */
static void need_memory(size_t before, const char *what)
{
    for (int i = 0; i < 5000 && memory_left() < before; i++)
        usleep(1000);
    if (memory_left() == before)
        return;
    printf("%s: %zu bytes before, %zu now\n", what, before, memory_left());
    exit(6);
}

static dt_bucket_t *new_bucket(size_t bytes)
{
    dt_bucket_t *bucket;

    need(dt_bucket_create(DT_WORLD, bytes, DT_F32, DT_SUM, &bucket));
    return bucket;
}

static void wait_round(dt_bucket_t *bucket, const struct buffer *buffers, dt_comm_t *view)
{
    struct buffer mine = { view ? device_new(sizeof(float)) : NULL, 1, false };

    if (view) {
        set(&mine, own(0));
        DRIVE(cuCtxSynchronize());
        need(dt_all_reduce(view, DT_IN_PLACE, mine.ptr, 1, DT_F32, DT_SUM));
    }
    need(dt_bucket_wait(bucket));
    need_round(buffers);
    if (!view)
        return;
    need(dt_stream_wait(view));
    need_all(&mine, sum(0), "call on a stream");
    DRIVE(cuMemFree_v2(address(mine.ptr)));
}

/* Makes the communicator take all the GPU memory that it needs. */
static void reduce_first(void)
{
    enum { COUNT = 150000 }; /* more than all buffers have */
    float *buf = device_new(COUNT * sizeof *buf);

    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
    DRIVE(cuMemFree_v2(address(buf)));
}

static void rounds_with(size_t bytes, dt_comm_t *view)
{
    struct buffer buffers[BUFFERS];
    size_t before, first = 0;
    dt_bucket_t *bucket;
    pthread_t opener;

    make_buffers(buffers);
    gate_make(&gate);
    reduce_first();
    before = memory_left();
    bucket = new_bucket(bytes);
    gate_shut(&gate, CU_STREAM_LEGACY);
    pthread_create(&opener, NULL, open_soon, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        push_round(bucket, buffers);
        wait_round(bucket, buffers, view);
        if (i == 0)
            first = memory_left();
    }
    pthread_join(opener, NULL);
    need_memory(first, "rounds");
    need(dt_bucket_free(bucket));
    need_memory(before, "a bucket");
}

static void rounds(void)
{
    rounds_with(CAP, NULL);
}

static void large(void)
{
    rounds_with(LARGE, NULL);
}

static void view(void)
{
    dt_comm_t *comm;
    CUstream stream;

    DRIVE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    need(dt_comm_on_stream(DT_WORLD, stream, &comm));
    rounds_with(CAP, comm);
}

static void mixed(void)
{
    static int32_t whole[BUFFERS];
    struct buffer buffers[BUFFERS];
    dt_bucket_t *bucket = new_bucket(CAP), *other;
    int32_t *device = device_new(sizeof whole);

    need(dt_bucket_create(DT_WORLD, 0, DT_I32, DT_MAX, &other));
    make_buffers(buffers);
    for (int i = 0; i < BUFFERS; i++) {
        whole[i] = i * (dt_rank() + 1);
        buffers[i].on_host = i % 5 == 0;
        if (buffers[i].on_host)
            buffers[i].ptr = calloc(buffers[i].count, sizeof(float));
        set(&buffers[i], own(i));
    }
    DRIVE(cuMemcpyHtoD_v2(address(device), whole, sizeof whole));
    for (int i = 0; i < BUFFERS; i++) {
        need(dt_bucket_push(bucket, buffers[i].ptr, buffers[i].count));
        need(dt_bucket_push(other, device + i, 1));
    }
    need(dt_bucket_free(bucket));
    need(dt_bucket_free(other));
    need_round(buffers);
    DRIVE(cuMemcpyDtoH_v2(whole, address(device), sizeof whole));
    for (int i = 0; i < BUFFERS; i++) {
        if (whole[i] != i * dt_size())
            exit(6);
        if (buffers[i].on_host)
            free(buffers[i].ptr);
    }
}

static void join(void)
{
    struct buffer buffers[BUFFERS];
    dt_bucket_t *bucket = new_bucket(CAP), *fresh = new_bucket(CAP);

    make_buffers(buffers);
    push_round(bucket, buffers);
    need(dt_bucket_wait(bucket));
    need(dt_join_begin(DT_WORLD));
    /* The ranks have not agreed on memory for the fresh bucket, and not all of them could. */
    for (int i = 0; i <= dt_rank(); i++) {
        dt_bucket_t *next = i % 2 ? bucket : fresh;

        push_round(next, buffers);
        need(dt_bucket_wait(next));
    }
    need(dt_join(DT_WORLD, NULL));
    for (int i = 0; dt_rank() == dt_size() - 1 && i < BUFFERS; i++)
        need_all(&buffers[i], own(i), "the last rank's bucket");
    need(dt_bucket_free(fresh));
    need(dt_bucket_free(bucket));
}

/* ---- failures ---- */

/* Pushes and waits. If that fails, the memory of the bucket must stay, since a GPU may use it.
 * before: the memory left before the first call */
static void fail_with(dt_bucket_t *bucket, const struct buffer *buffers, size_t before)
{
    dt_result_t r = try_push_round(bucket, buffers);

    if (r == DT_OK)
        r = dt_bucket_wait(bucket);
    if (r == DT_OK)
        return;
    printf("%d: %s\n", (int)r, dt_last_error());
    if (dt_bucket_free(bucket) != r)
        exit(6);
    if (gate.word)
        gate_open(&gate);
    printf("the memory is %s\n", before - memory_left() >= CAP ? "kept" : "freed");
    fflush(stdout);
    exit(r == DT_ERR_PEER ? 3 : 1);
}

static void fail_after_round(void (*fault)(void))
{
    struct buffer buffers[BUFFERS];
    dt_bucket_t *bucket;
    size_t before;

    make_buffers(buffers);
    before = memory_left();
    bucket = new_bucket(CAP);
    push_round(bucket, buffers);
    need(dt_bucket_wait(bucket));
    need(dt_barrier(DT_WORLD)); /* no rank may fail in the first round */
    fault();
    fail_with(bucket, buffers, before);
    need_round(buffers);
    need(dt_bucket_free(bucket));
}

static void hold_gpu_of_rank_1(void)
{
    if (dt_rank() != 1)
        return;
    gate_make(&gate);
    gate_shut(&gate, CU_STREAM_LEGACY);
}

static void begin_to_die(void)
{
    pthread_t thread;

    hold_gpu_of_rank_1();
    if (dt_rank() == 1)
        pthread_create(&thread, NULL, die_soon, NULL);
}

static void die(void)
{
    fail_after_round(begin_to_die);
}

static void begin_to_stick(void)
{
    hold_gpu_of_rank_1();
    need(dt_barrier(DT_WORLD));
    need(dt_comm_set_timeout(DT_WORLD, 1));
}

static void stuck(void)
{
    fail_after_round(begin_to_stick);
}

/* NCCL starts in the first round. That can take long, so it has no such limit. */
static void begin_to_hang(void)
{
    need(dt_comm_set_timeout(DT_WORLD, 1));
}

static void after(void)
{
    fail_after_round(begin_to_hang);
}

static void unlike_by(size_t factor)
{
    float *a = device_new(4 * factor * sizeof *a), *b = device_new(4 * factor * sizeof *b);
    dt_bucket_t *bucket = new_bucket(8 * factor * sizeof *a);
    bool other = dt_rank() == 1;

    need(dt_bucket_push(bucket, a, factor * (other ? 3 : 4)));
    need(dt_bucket_push(bucket, b, factor * (other ? 4 : 3)));
    need(dt_bucket_wait(bucket));
}

static void unlike(void)
{
    unlike_by(1);
}

static void unlike_large(void)
{
    unlike_by(200000);
}

static void push_each(dt_bucket_t *bucket, const struct buffer *all)
{
    for (size_t i = 0; i < all->count; i++)
        need(dt_bucket_push(bucket, all->ptr + i, 1));
}

static void crowd(void)
{
    enum { MANY = 60 };
    struct buffer all = { device_new(MANY * sizeof(float)), MANY, false };
    dt_bucket_t *bucket = new_bucket(CAP);

    set(&all, own(0));
    push_each(bucket, &all);
    need(dt_bucket_wait(bucket));
    need_all(&all, sum(0), "crowd");
    begin_to_stick();
    push_each(bucket, &all);
    printf("%d: %s\n", (int)dt_bucket_wait(bucket), dt_last_error());
    if (gate.word)
        gate_open(&gate);
    exit(1);
}

static float value(const struct buffer *b)
{
    float v;

    DRIVE(cuMemcpyDtoH_v2(&v, address(b->ptr), sizeof v));
    return v;
}

/* A failed call still ends copies that it has begun, so that none runs when it has returned. */
static void abort_copies(void)
{
    enum { FEW = 10 };
    struct buffer all = { device_new(FEW * sizeof(float)), FEW, false };
    float *large = device_new(CAP);
    dt_bucket_t *bucket = new_bucket(CAP);
    dt_result_t r;

    set(&all, own(0));
    push_each(bucket, &all);
    need(dt_bucket_push(bucket, large, CAP / sizeof *large)); /* sends the others */
    while (dt_rank() == 0 && value(&all) != sum(0))
        ;
    if (dt_rank() == 0)
        need(dt_comm_abort(DT_WORLD));
    r = dt_bucket_wait(bucket);
    printf("%d: %s\n", (int)r, dt_last_error());
    if (dt_rank() == 0)
        need_all(&all, sum(0), "after an abort");
    exit(1);
}

static void aborted(void)
{
    float *buf = device_new(2 * sizeof *buf);
    dt_bucket_t *bucket = new_bucket(CAP);

    gate_make(&gate);
    gate_shut(&gate, CU_STREAM_LEGACY);
    need(dt_comm_abort(DT_WORLD));
    need(dt_bucket_push(bucket, buf, 1));
    need(dt_bucket_push(bucket, buf + 1, 1));
    printf("%d: %s\n", (int)dt_bucket_wait(bucket), dt_last_error());
    gate_open(&gate);
    exit(1);
}

static void use_own_context(int ordinal)
{
    CUcontext context;
    CUdevice device;

    DRIVE(cuDeviceGet(&device, ordinal));
    DRIVE(cuCtxCreate_v2(&context, 0, device));
}

/* The bucket still serves the buffers that it has taken, and later ones like them. */
static void refuse_other(void (*use)(int ordinal), int ordinal)
{
    struct buffer here = { device_new(2 * sizeof(float)), 2, false };
    dt_bucket_t *bucket = new_bucket(CAP);
    CUcontext context;
    float *there;

    DRIVE(cuCtxGetCurrent(&context));
    set(&here, own(0));
    need(dt_bucket_push(bucket, here.ptr, 1));
    use(ordinal);
    there = device_new(sizeof *there);
    printf("%d: %s\n", (int)dt_bucket_push(bucket, there, 1), dt_last_error());
    DRIVE(cuCtxSetCurrent(context));
    need(dt_bucket_push(bucket, here.ptr + 1, 1));
    need(dt_bucket_free(bucket));
    need_all(&here, sum(0), "a bucket that has refused a buffer");
}

static void elsewhere(void)
{
    refuse_other(device_use, 1);
}

static void contexts(void)
{
    refuse_other(use_own_context, 0);
}

int main(int argc, char **argv)
{
    static const struct doing doings[] = { { "rounds", rounds },
                                           { "large", large },
                                           { "view", view },
                                           { "mixed", mixed },
                                           { "join", join },
                                           { "unlike", unlike },
                                           { "unlike-large", unlike_large },
                                           { "crowd", crowd },
                                           { "abort", abort_copies },
                                           { "aborted", aborted },
                                           { "elsewhere", elsewhere },
                                           { "contexts", contexts },
                                           { "die", die },
                                           { "stuck", stuck },
                                           { "after", after } };

    device_join();
    if (!device_do(doings, sizeof doings / sizeof *doings, argc, argv))
        return 2;
    printf("%s: done\n", argv[1]);
    need(dt_finalize());
    return 0;
}
