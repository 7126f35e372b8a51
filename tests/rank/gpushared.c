/* A rank that shares a GPU with others, with whatever libcuda.so.1 the loader finds. It makes each
 * call both on GPU memory and on host memory, and compares the bytes. Its arguments say what it
 * does:
 *
 * - many: hundreds of small calls of all kinds, one after the other and on two communicators
 * - hosts: small calls between the ranks of each host
 * - hosts 1: the same with calls of all hosts between them
 * - bytes: all-reduces of numbers whose sums are rounded
 * - grow: calls on ever larger buffers, and small ones again
 * - middle RANK [COUNT]: that rank is killed while its GPU has work before a call that the others
 * have already joined
 * - abort RANK [COUNT]: that rank aborts the communicator instead
 * - busy 0 [COUNT]: an all-gather of two ranks times out while their GPUs have other work
 * - beside: calls on one communicator while the GPU of rank 0 has work before a large call on
 *   another
 * - train: steps with a checkpoint after each; prints the resulting weights */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/rank/device.h"

/* ---- a call on host and GPU memory ---- */

struct buffers {
    uint8_t *host, *device;
    size_t bytes;
};

static struct buffers buffers_new(size_t bytes)
{
    struct buffers b = { malloc(bytes), device_new(bytes), bytes };

    return b;
}

static void buffers_free(struct buffers *b)
{
    free(b->host);
    DRIVE(cuMemFree_v2(address(b->device)));
}

static void upload(const struct buffers *b)
{
    DRIVE(cuMemcpyHtoD_v2(address(b->device), b->host, b->bytes));
}

static uint32_t next_random(uint32_t *x)
{
    *x = *x * 1664525 + 1013904223;
    return *x >> 8;
}

enum kind { ALL_REDUCE, REDUCE, BROADCAST, REDUCE_SCATTER, ALL_GATHER, KINDS };

struct call {
    enum kind kind;
    dt_comm_t *comm;
    size_t count;
    dt_dtype_t dtype;
    dt_op_t op;
    int root;
};

static void make(const struct call *c, const void *in, void *out)
{
    switch (c->kind) {
    case ALL_REDUCE:
        need(dt_all_reduce(c->comm, in, out, c->count, c->dtype, c->op));
        break;
    case REDUCE:
        need(dt_reduce(c->comm, in, out, c->count, c->dtype, c->op, c->root));
        break;
    case BROADCAST:
        need(dt_broadcast(c->comm, out, c->count, c->dtype, c->root));
        break;
    case REDUCE_SCATTER:
        need(dt_reduce_scatter(c->comm, in, out, c->count, c->dtype, c->op));
        break;
    default:
        need(dt_all_gather(c->comm, in, out, c->count, c->dtype));
        break;
    }
}

static void compare(const struct buffers *b, const struct call *c, int number)
{
    uint8_t *copy = malloc(b->bytes);

    DRIVE(cuMemcpyDtoH_v2(copy, address(b->device), b->bytes));
    if (memcmp(copy, b->host, b->bytes) != 0) {
        printf("call %d, kind %d of %zu elements of type %d, operation %d: not the same\n", number,
               (int)c->kind, c->count, (int)c->dtype, (int)c->op);
        exit(6);
    }
    free(copy);
}

/* The buffers have room for count elements of each rank, and the same contents in both memories. */
static void call_both(const struct call *c, const struct buffers *in, const struct buffers *out,
                      int number)
{
    upload(in);
    upload(out);
    make(c, in->device, out->device);
    make(c, in->host, out->host);
    compare(out, c, number);
}

/* Small integers, whose sums are exact in every type. */
static void fill_whole(const struct buffers *b, uint32_t *seed)
{
    uint32_t *at = (uint32_t *)(void *)b->host;

    for (size_t i = 0; i < b->bytes / sizeof *at; i++)
        at[i] = next_random(seed) % 1000;
}

/* ---- what it does ---- */

static void many_on(dt_comm_t *comm, int calls)
{
    enum { MOST = 3000 };
    uint32_t seed = 7, own = (uint32_t)dt_rank() + 1;
    struct buffers in = buffers_new(MOST * sizeof(int32_t) * (size_t)dt_size());
    struct buffers out = buffers_new(in.bytes);

    for (int i = 0; i < calls; i++) {
        struct call c = { .kind = (enum kind)(next_random(&seed) % KINDS),
                          .comm = comm,
                          .count = 1 + next_random(&seed) % MOST,
                          .dtype = DT_I32,
                          .op = next_random(&seed) % 2 ? DT_SUM : DT_MAX,
                          .root = (int)next_random(&seed) % dt_comm_size(comm) };

        fill_whole(&in, &own);
        fill_whole(&out, &own);
        call_both(&c, &in, &out, i);
    }
    buffers_free(&in);
    buffers_free(&out);
}

static void many(void)
{
    dt_comm_t *half;

    many_on(DT_WORLD, 200);
    need(dt_comm_split(DT_WORLD, dt_rank() % 2, 0, &half));
    for (int i = 0; i < 10; i++) {
        many_on(half, 10);
        many_on(DT_WORLD, 10);
    }
    need(dt_comm_free(half));
}

static void hosts(bool all)
{
    dt_comm_t *own;

    need(dt_comm_split(DT_WORLD, dt_node(), 0, &own));
    for (int i = 0; i < 2; i++) { /* both times the same calls */
        many_on(own, 10);
        many_on(DT_WORLD, all ? 5 : 0);
    }
    need(dt_comm_free(own));
}

/* Random bits, among them NaNs and infinities. */
static void bytes(void)
{
    static const dt_dtype_t types[] = { DT_F16, DT_BF16, DT_F32, DT_F64, DT_I8, DT_U64 };
    uint32_t seed = (uint32_t)dt_rank() + 1;
    struct buffers in = buffers_new((size_t)40000 * 8), out = buffers_new(in.bytes);

    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (dt_op_t op = DT_SUM; op <= DT_AVG; op++) {
            struct call c = { ALL_REDUCE, DT_WORLD, 40000, types[t], op, 0 };

            for (size_t i = 0; i < in.bytes; i++)
                in.host[i] = (uint8_t)next_random(&seed);
            memset(out.host, 0, out.bytes);
            call_both(&c, &in, &out, (int)op);
        }
    }
    buffers_free(&in);
    buffers_free(&out);
}

static void grow(void)
{
    static const size_t counts[] = { 1000, 0, 400000, 9000000, 1000, 9000001 };
    uint32_t seed = (uint32_t)dt_rank() + 1;

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct call c = { ALL_REDUCE, DT_WORLD, counts[i], DT_I32, DT_SUM, 0 };
        struct buffers in = buffers_new(counts[i] * sizeof(int32_t) + 4);
        struct buffers out = buffers_new(in.bytes);

        fill_whole(&in, &seed);
        fill_whole(&out, &seed);
        call_both(&c, &in, &out, (int)i);
        c.kind = BROADCAST;
        c.root = dt_size() - 1;
        call_both(&c, &in, &out, (int)i);
        buffers_free(&in);
        buffers_free(&out);
    }
}

static void *end_soon(void *arg)
{
    usleep(50000); /* long enough for the others to join the call, though any time is right */
    if (arg)
        raise(SIGKILL);
    need(dt_comm_abort(DT_WORLD));
    return NULL;
}

/* That rank ends before its GPU reaches the second call. After that no stream of the others may
 * wait for it. */
static void middle(int victim, bool dies, size_t count)
{
    float *buf = device_new(count * sizeof *buf);
    struct gate gate;
    pthread_t thread;
    dt_result_t r;

    DRIVE(cuMemsetD32_v2(address(buf), 0x3f800000, count));
    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, count, DT_F32, DT_SUM));
    gate_make(&gate);
    if (dt_rank() == victim) {
        gate_shut(&gate, CU_STREAM_LEGACY);
        pthread_create(&thread, NULL, end_soon, dies ? &gate : NULL);
    }
    r = dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, count, DT_F32, DT_SUM);
    if (dt_rank() != victim)
        DRIVE(cuCtxSynchronize());
    need(r);
}

static void need_sum(const float *device, size_t i)
{
    float got;

    DRIVE(cuMemcpyDtoH_v2(&got, address(device + i), sizeof got));
    if (got == (float)dt_size())
        return;
    printf("number %zu is %g\n", i, (double)got);
    exit(1);
}

/* A call on the device times out while the program's GPU has other work, which goes on. */
static void busy(size_t count)
{
    float *buf = device_new(count * sizeof *buf), *all = device_new(count * 2 * sizeof *all);
    struct gate gate, other;
    CUstream stream;
    dt_result_t r;

    DRIVE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    gate_make(&gate);
    gate_make(&other);
    need(dt_all_gather(DT_WORLD, buf, all, 1, DT_F32));
    need(dt_comm_set_timeout(DT_WORLD, 0.5));
    gate_shut(&other, stream);
    if (dt_rank() == 1)
        gate_shut(&gate, CU_STREAM_LEGACY);
    r = dt_all_gather(DT_WORLD, buf, all, count, DT_F32);
    printf("%d: %s\n", (int)r, dt_last_error());
    gate_open(&gate);
    gate_open(&other);
    exit(1);
}

/* The large call waits for work that ends only after the small ones. */
static void beside(void)
{
    enum { LARGE = 40000000, SMALL = 1000, BARRIERS = 1000, CALLS = 20 };
    float *large = device_new(LARGE * sizeof *large), *small = device_new(SMALL * sizeof *small);
    dt_comm_t *comms[2], *view;
    dt_request_t request;
    CUstream stream;
    struct gate gate;

    gate_make(&gate);
    DRIVE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 2; i++)
        need(dt_comm_dup(DT_WORLD, &comms[i]));
    need(dt_comm_on_stream(comms[1], stream, &view));
    need(dt_all_reduce(comms[0], DT_IN_PLACE, large, LARGE, DT_F32, DT_SUM));
    DRIVE(cuMemsetD32_v2(address(large), 0x3f800000, LARGE));
    if (dt_rank() == 0)
        gate_shut(&gate, CU_STREAM_LEGACY);
    need(dt_iall_reduce(comms[0], DT_IN_PLACE, large, LARGE, DT_F32, DT_SUM, &request));
    for (int i = 0; i < BARRIERS; i++)
        need(dt_barrier(DT_WORLD)); /* long enough for the large call to begin on all ranks */
    for (int i = 0; i < CALLS; i++) {
        DRIVE(cuMemsetD32Async(address(small), 0x3f800000, SMALL, stream));
        need(dt_all_reduce(view, DT_IN_PLACE, small, SMALL, DT_F32, DT_SUM));
        need(dt_stream_wait(view));
    }
    gate_open(&gate);
    need(dt_wait(&request));
    need_sum(small, SMALL - 1);
    need_sum(large, LARGE - 1);
    need(dt_comm_free(view));
}

/* All ranks have the same weights. Each step adds a sum over all ranks. */
static void train(void)
{
    enum { COUNT = 70000, STEPS = 12 };
    static float weights[COUNT], parts[COUNT];
    float *device = device_new(sizeof parts);
    uint64_t sum = 0xcbf29ce484222325;
    int64_t step;

    for (int i = 0; i < COUNT; i++)
        weights[i] = (float)i / COUNT;
    need(dt_checkpoint_register("weights", weights, sizeof weights));
    need(dt_checkpoint_restore(&step));
    for (step++; step < STEPS; step++) {
        dt_step(step);
        for (int i = 0; i < COUNT; i++)
            parts[i] = weights[i] / ((float)(dt_rank() + 2) + (float)(i % 7));
        DRIVE(cuMemcpyHtoD_v2(address(device), parts, sizeof parts));
        need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, device, COUNT, DT_F32, DT_SUM));
        DRIVE(cuMemcpyDtoH_v2(weights, address(device), sizeof weights));
        need(dt_checkpoint_save(step));
    }
    for (size_t i = 0; i < sizeof weights; i++)
        sum = (sum ^ ((const uint8_t *)weights)[i]) * 0x100000001b3;
    printf("weights %016llx\n", (unsigned long long)sum);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? atoi(argv[2]) : 0;
    size_t count = argc > 3 ? (size_t)atol(argv[3]) : 5000000; /* in several steps */

    signal(SIGTERM, SIG_IGN); /* leaves time to print what a call returned */
    need(dt_init());
    device_use(0);
    if (strcmp(what, "many") == 0)
        many();
    else if (strcmp(what, "hosts") == 0)
        hosts(number);
    else if (strcmp(what, "bytes") == 0)
        bytes();
    else if (strcmp(what, "grow") == 0)
        grow();
    else if (strcmp(what, "middle") == 0)
        middle(number, true, count);
    else if (strcmp(what, "abort") == 0)
        middle(number, false, count);
    else if (strcmp(what, "beside") == 0)
        beside();
    else if (strcmp(what, "busy") == 0)
        busy(count);
    else if (strcmp(what, "train") == 0)
        train();
    else
        return 2;
    need(dt_finalize());
    printf("%s: done\n", what);
    return 0;
}
