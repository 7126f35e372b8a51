#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "tests/gpu/probe.h"
#include "tests/gpu/raw.h"
#include "tests/gpu/spin.h"

enum { MOST = 200 }; /* the most times that go into a median */

static double us_since(uint64_t ns)
{
    return (double)(dt_clock_ns() - ns) / 1e3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *times, int n)
{
    qsort(times, (size_t)n, sizeof *times, compare);
    return times[n / 2];
}

static void ours(float *buf, size_t count)
{
    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, count, DT_F32, DT_SUM));
}

static void raw_call(const struct raw *raw, float *buf, size_t count)
{
    raw_all_reduce(raw, buf, count);
    raw_wait(raw);
}

/* ---- NCCL alone ---- */

void probe_raw(const char *arg)
{
    enum { WARM = 10 };
    double enqueue[MOST], call[MOST], init;
    struct raw raw;
    float *buf;
    uint64_t start;

    (void)arg;
    device_use(0);
    buf = device_new(sizeof *buf);
    start = dt_clock_ns();
    raw_open(&raw, raw_api()->blocks);
    init = us_since(start) / 1e3;
    for (int i = -WARM; i < MOST; i++) {
        start = dt_clock_ns();
        raw_all_reduce(&raw, buf, 1);
        enqueue[i < 0 ? 0 : i] = us_since(start);
        raw_wait(&raw);
        call[i < 0 ? 0 : i] = us_since(start);
    }
    raw_close(&raw);
    if (dt_rank() == 0)
        printf("= %.1f us to enqueue 4 B, %.1f until done, %.0f ms to start NCCL\n",
               median(enqueue, MOST), median(call, MOST), init);
}

static double enqueue_us(struct raw *raw, float *buf, bool blocking)
{
    enum { WARM = 10 };
    double took[MOST];

    raw_open(raw, blocking);
    for (int i = -WARM; i < MOST; i++) {
        uint64_t start = dt_clock_ns();

        raw_all_reduce(raw, buf, 1);
        took[i < 0 ? 0 : i] = us_since(start);
        raw_wait(raw);
    }
    raw_close(raw);
    return median(took, MOST);
}

/* How much longer NCCL takes to enqueue 4 B when a thread of its own launches them. */
void probe_modes(const char *arg)
{
    double blocks, does_not;
    struct raw raw;
    float *buf;

    (void)arg;
    device_use(0);
    buf = device_new(sizeof *buf);
    blocks = enqueue_us(&raw, buf, true);
    does_not = enqueue_us(&raw, buf, false);
    if (dt_rank() == 0)
        printf("= %.1f us (%.1f, and %.1f when calls block)\n", does_not - blocks, does_not,
               blocks);
}

/* ---- libdtrun and NCCL alone, in turns ---- */

static void both(const struct raw *raw, float *buf, size_t count, int times, double medians[2])
{
    enum { WARM = 3 };
    double took[2][MOST];

    for (int i = -WARM; i < times; i++) {
        uint64_t start = dt_clock_ns();

        raw_call(raw, buf, count);
        took[0][i < 0 ? 0 : i] = us_since(start);
        start = dt_clock_ns();
        ours(buf, count);
        took[1][i < 0 ? 0 : i] = us_since(start);
    }
    for (int which = 0; which < 2; which++)
        medians[which] = median(took[which], times);
}

void probe_small(const char *arg)
{
    double us[2];
    struct raw raw;
    float *buf;

    (void)arg;
    device_use(0);
    buf = device_new(sizeof *buf);
    raw_open(&raw, raw_api()->blocks);
    both(&raw, buf, 1, MOST, us);
    raw_close(&raw);
    if (dt_rank() == 0)
        printf("= %.1f us (%.1f against %.1f by NCCL alone)\n", us[1] - us[0], us[1], us[0]);
}

/* Times only the enqueueing, on a stream that is idle each time. NCCL alone runs in the mode that
 * libdtrun uses. arg "another": on a communicator beside DT_WORLD. */
void probe_enqueue(const char *arg)
{
    enum { WARM = 10 };
    double took[2][MOST], whole[2][MOST];
    dt_comm_t *comm = DT_WORLD, *view;
    CUstream stream;
    struct raw raw;
    float *buf;

    device_use(0);
    buf = device_new(sizeof *buf);
    raw_open(&raw, raw_api()->blocks);
    DRIVE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (strcmp(arg, "another") == 0)
        need(dt_comm_dup(DT_WORLD, &comm));
    need(dt_comm_on_stream(comm, stream, &view));
    for (int i = -WARM; i < MOST; i++) {
        uint64_t start = dt_clock_ns();

        raw_all_reduce(&raw, buf, 1);
        took[0][i < 0 ? 0 : i] = us_since(start);
        raw_wait(&raw);
        whole[0][i < 0 ? 0 : i] = us_since(start);
        start = dt_clock_ns();
        need(dt_all_reduce(view, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
        took[1][i < 0 ? 0 : i] = us_since(start);
        DRIVE(cuStreamSynchronize(stream));
        whole[1][i < 0 ? 0 : i] = us_since(start);
        need(dt_stream_wait(view));
    }
    need(dt_comm_free(view));
    if (comm != DT_WORLD)
        need(dt_comm_free(comm));
    raw_close(&raw);
    if (dt_rank() == 0) {
        double nccl = median(took[0], MOST), own = median(took[1], MOST);

        printf("= %.1f us (%.1f against %.1f by NCCL alone; done after %.1f and %.1f)\n",
               own - nccl, own, nccl, median(whole[1], MOST), median(whole[0], MOST));
    }
}

/* nccl-tests' sizes up to arg bytes, and the largest share of bandwidth that is lost from 1 MiB
 * on. */
void probe_bandwidth(const char *arg)
{
    enum { SMALL = 1024 * 1024, LARGE = 32 * 1024 * 1024, TIMES = 20, TIMES_LARGE = 5 };
    size_t most = (size_t)atol(arg);
    double bus = 2.0 * (dt_size() - 1) / dt_size(), worst = 0;
    struct raw raw;
    float *buf;

    device_use(0);
    buf = device_new(most);
    raw_open(&raw, raw_api()->blocks);
    for (size_t bytes = 8; bytes <= most; bytes *= 4) {
        double us[2], lost;

        both(&raw, buf, bytes / sizeof *buf, bytes < LARGE ? TIMES : TIMES_LARGE, us);
        lost = 100 * (1 - us[0] / us[1]);
        if (bytes >= SMALL && lost > worst)
            worst = lost;
        if (dt_rank() == 0)
            printf("%10zu B: %10.1f us, %7.2f GB/s; by NCCL alone %10.1f us, %7.2f GB/s\n", bytes,
                   us[1], (double)bytes * bus / us[1] / 1e3, us[0],
                   (double)bytes * bus / us[0] / 1e3);
    }
    raw_close(&raw);
    if (dt_rank() == 0)
        printf("= %.2f %%\n", worst);
}

/* ---- checkpoints ---- */

enum { SAVES = 5 };

static double save_us(void)
{
    double times[SAVES];

    for (int i = 0; i < SAVES; i++) {
        uint64_t start;

        need(dt_barrier(DT_WORLD));
        start = dt_clock_ns();
        need(dt_checkpoint_save(i + 1));
        times[i] = us_since(start);
    }
    return median(times, SAVES);
}

static double pinned_copy_us(const void *buf, size_t bytes)
{
    double times[SAVES];
    void *pinned;

    DRIVE(cuMemHostAlloc(&pinned, bytes, CU_MEMHOSTALLOC_PORTABLE));
    for (int i = 0; i < SAVES; i++) {
        uint64_t start = dt_clock_ns();

        DRIVE(cuMemcpyDtoH_v2(pinned, address(buf), bytes));
        times[i] = us_since(start);
    }
    return median(times, SAVES);
}

/* How fast arg bytes of GPU memory of each rank become a durable checkpoint, summed over all ranks.
 * Beside it, how fast one rank copies its bytes into pinned memory. */
void probe_checkpoint(const char *arg)
{
    size_t bytes = (size_t)atol(arg);
    double save, copy;
    void *buf;

    device_use(0);
    buf = device_new(bytes);
    need(dt_checkpoint_register("data", buf, bytes));
    save = save_us();
    copy = pinned_copy_us(buf, bytes);
    if (dt_rank() == 0)
        printf("= %.2f GB/s to files (%.2f GB/s into pinned memory)\n",
               (double)bytes * dt_size() / save / 1e3, (double)bytes / copy / 1e3);
}

/* ---- start-up ---- */

static double first_call(dt_comm_t *comm, float *buf)
{
    uint64_t start = dt_clock_ns();

    need(dt_all_reduce(comm, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
    return us_since(start) / 1e3;
}

/* For a later communicator, NCCL is already loaded and its devices are ready. One that is split
 * connects in the split. */
void probe_init(const char *arg)
{
    dt_comm_t *again, *split;
    double init, reinit, connected, first;
    uint64_t start;
    float *buf;

    (void)arg;
    device_use(0);
    buf = device_new(sizeof *buf);
    init = first_call(DT_WORLD, buf);
    need(dt_comm_dup(DT_WORLD, &again));
    reinit = first_call(again, buf);
    need(dt_comm_free(again));
    start = dt_clock_ns();
    need(dt_comm_split(DT_WORLD, 0, 0, &split));
    connected = us_since(start) / 1e3;
    first = first_call(split, buf);
    need(dt_comm_free(split));
    if (dt_rank() == 0)
        printf("= %.0f ms, then %.0f ms; a split %.0f ms, then %.0f ms\n", init, reinit, connected,
               first);
}

/* ---- two communicators ---- */

/* Each rank makes calls on both, every other rank in the opposite order. */
void probe_orders(const char *arg)
{
    enum { ROUNDS = 50, COUNT = 256 * 1024 };
    dt_comm_t *comms[2];
    float *bufs[2];

    (void)arg;
    device_use(0);
    for (int i = 0; i < 2; i++) {
        bufs[i] = device_new(COUNT * sizeof(float));
        need(dt_comm_split(DT_WORLD, 0, 0, &comms[i]));
    }
    for (int round = 0; round < ROUNDS; round++) {
        dt_request_t requests[2];

        for (int i = 0; i < 2; i++) {
            int which = i ^ (dt_rank() & 1);

            need(dt_iall_reduce(comms[which], DT_IN_PLACE, bufs[which], COUNT, DT_F32, DT_SUM,
                                &requests[i]));
        }
        need(dt_wait_all(requests, 2));
    }
    for (int i = 0; i < 2; i++)
        need(dt_comm_free(comms[i]));
    if (dt_rank() == 0)
        printf("= %d rounds\n", ROUNDS);
}

/* ---- overlap ---- */

struct load {
    struct gate gate; /* stays shut */
    CUstream stream;
    float *buf;
    size_t count;
    dt_bucket_t *bucket; /* NULL: everything goes into one request */
};

enum { BUCKETS = 8 }; /* the number of parts */

static void begin_reduce(const struct load *load, dt_request_t *request)
{
    size_t part = load->count / BUCKETS;

    if (!load->bucket) {
        need(
            dt_iall_reduce(DT_WORLD, DT_IN_PLACE, load->buf, load->count, DT_F32, DT_SUM, request));
        return;
    }
    for (size_t i = 0; i < BUCKETS; i++)
        need(dt_bucket_push(load->bucket, load->buf + i * part, part));
}

static void end_reduce(const struct load *load, dt_request_t *request)
{
    need(load->bucket ? dt_bucket_wait(load->bucket) : dt_wait(request));
}

/* Microseconds for a kernel of kernel_us, together with an all-reduce if `reduces`. */
static double overlapped(const struct load *load, bool reduces, double kernel_us)
{
    double times[10];

    for (int i = 0; i < 10; i++) {
        dt_request_t request;
        uint64_t start;

        need(dt_barrier(DT_WORLD));
        start = dt_clock_ns();
        if (reduces)
            begin_reduce(load, &request);
        spin(&load->gate, (uint64_t)(kernel_us * 1e3), load->stream);
        DRIVE(cuStreamSynchronize(load->stream));
        if (reduces)
            end_reduce(load, &request);
        times[i] = us_since(start);
    }
    return median(times, 10);
}

/* The share of an all-reduce that is hidden behind a kernel of the same length. */
static void measure_overlap(const struct load *load)
{
    double reduce, kernel, together;

    overlapped(load, true, 0);
    reduce = overlapped(load, true, 0);
    kernel = overlapped(load, false, reduce);
    together = overlapped(load, true, reduce);
    if (dt_rank() == 0)
        printf("= %.0f %% (reduce %.0f us, kernel %.0f, both %.0f)\n",
               100 * (reduce + kernel - together) / reduce, reduce, kernel, together);
}

static void make_load(struct load *load, const char *bytes)
{
    device_use(0);
    load->count = (size_t)atol(bytes) / sizeof(float);
    load->buf = device_new(load->count * sizeof *load->buf);
    gate_make(&load->gate);
    DRIVE(cuStreamCreate(&load->stream, CU_STREAM_NON_BLOCKING));
}

/* arg bytes, in one request. */
void probe_overlap(const char *arg)
{
    struct load load = { 0 };

    make_load(&load, arg);
    measure_overlap(&load);
}

/* arg bytes, in buckets. */
void probe_buckets(const char *arg)
{
    struct load load = { 0 };

    make_load(&load, arg);
    need(dt_bucket_create(DT_WORLD, load.count / BUCKETS * sizeof(float), DT_F32, DT_SUM,
                          &load.bucket));
    measure_overlap(&load);
    need(dt_bucket_free(load.bucket));
}

/* ---- checkpoints in the background ---- */

/* A training step: a kernel computes, and its gradients are summed. Returns the microseconds. Sets
 * *saved once the save is complete on all ranks. */
static double step_us(const struct load *load, dt_request_t *save, bool *saved)
{
    enum { KERNEL_NS = 10 * 1000 * 1000 };
    uint64_t start = dt_clock_ns();
    int64_t all;
    int done;

    spin(&load->gate, KERNEL_NS, load->stream);
    DRIVE(cuStreamSynchronize(load->stream));
    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, load->buf, load->count, DT_F32, DT_SUM));
    need(dt_test(save, &done));
    all = done;
    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &all, 1, DT_I64, DT_MIN));
    *saved = all;
    return us_since(start);
}

/* By how much a training step takes longer while arg bytes of each rank are saved. Beside it, how
 * long the call takes that begins the save. The first one, in which the kernel provides memory, is
 * not counted. */
void probe_isave(const char *arg)
{
    double calm[MOST], during[MOST], begin[SAVES], calm_us, during_us;
    dt_request_t save = { 0 };
    struct load load = { 0 };
    bool saved;
    int n = 0;

    make_load(&load, arg);
    need(dt_checkpoint_register("data", load.buf, load.count * sizeof *load.buf));
    need(dt_checkpoint_isave(0, &save));
    need(dt_wait(&save));
    for (int i = -10; i < MOST / 4; i++)
        calm[i < 0 ? 0 : i] = step_us(&load, &save, &saved);
    for (int i = 0; i < SAVES; i++) {
        uint64_t start = dt_clock_ns();

        need(dt_checkpoint_isave(i + 1, &save));
        begin[i] = us_since(start);
        do
            during[n++] = step_us(&load, &save, &saved);
        while (!saved && n < (i + 1) * MOST / SAVES);
        need(dt_wait(&save));
    }
    calm_us = median(calm, MOST / 4);
    during_us = median(during, n);
    if (dt_rank() == 0)
        printf("= %.1f %% (%.2f to %.2f ms; begun in %.2f)\n", 100 * (during_us / calm_us - 1),
               calm_us / 1e3, during_us / 1e3, median(begin, SAVES) / 1e3);
}
