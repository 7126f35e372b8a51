/* A rank with GPU memory, of whatever libcuda.so.1 the loader finds. Where it makes a call also on
 * host memory, both must give the same bytes. Its argument says what it does:
 *
 * - calls: every collective, for all types, operations and, with up to 4 ranks, some sizes
 * - smallcalls: the same with one small size
 * - requests: every collective as a request
 * - pairs: sends and receives, at once and as requests
 * - later: requests and buckets, on memory that the GPU fills after they have been made
 * - buckets: buckets of several buffers
 * - sooner: requests with no work queued before them, but endless work after them
 * - managed: managed memory, which the GPU fills after the call has been made
 * - join: ranks make different numbers of all-reduces
 * - joinunlike: between dt_join_begin and dt_join, ranks 0 and 1 make calls that do not match
 * - split: a communicator of every other rank
 * - splitlater: the same, with reversed numbers, out of one that is in use; and some of one rank
 * - splitfails: a split of a communicator that is in use, which may fail
 * - splitdup: a duplicate of one that is in use
 * - splitbeside: splits while another thread makes calls
 * - factors: all-reduces with options
 * - mixed: every call with one buffer in host memory, the other in device memory
 * - unlike: rank 1 passes host memory, the others device memory
 * - leak: how much device memory a communicator has taken and not returned when it is freed
 * - slots: communicators in different places of each rank's table are left for dt_finalize
 * - idle: rank 1 dies, rank 2 does not notice, and rank 0 leaves with an idle communicator
 * - streamcalls, streamrequests, streampairs, streamfactors: calls, requests, pairs and factors,
 *   enqueued on a stream
 * - devicetrain, hosttrain: steps whose result is saved from device memory, and from host memory
 * - registerwrong: buffers that cannot be saved
 * - train: steps whose result is saved and restored
 * - stucktrain: the same; in the first generation the GPU of rank 1 never reaches step 7
 * - watchedtrain: the same; in the first generation the job is aborted once NCCL keeps all ranks
 * - die: rank 1 dies when all have made a call on the device, where the others go on reducing
 * - stuck: the GPU of rank 1 never finishes the work before its all-reduce
 * - leaves: rank 1 exits while its GPU delays a request
 * - stucksave: the GPU of rank 1 never finishes the work before a save in the background
 * - fault: after a fault of the GPU, a call on GPU memory, one on host memory and one that was made
 *   before
 * - aborted: a send and an all-reduce after an abort, while the GPU stands still
 * - capture: a call while a graph is being captured, then one that works
 * - beside: a request that is made in the background while a graph is being captured */
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/rank/device.h"

enum {
    MOST = 16, /* ranks; some arrays have a value for each */
    /* f32 of each rank. That fills three pieces of staging memory (4 MiB each), and two ranks' f32
     * exceed the largest slot of a shared GPU (16 MiB). */
    SEVERAL = 2200000,
};

/* ---- twins: a buffer in host memory and one in device memory, with the same bytes ---- */

struct twins {
    void *host, *device;
    size_t bytes;
};

static struct twins twins_new(size_t bytes)
{
    struct twins t = { calloc(1, bytes + 1), device_new(bytes), bytes };

    DRIVE(cuMemcpyHtoD_v2(address(t.device), t.host, bytes));
    return t;
}

static void twins_free(struct twins t)
{
    free(t.host);
    DRIVE(cuMemFree_v2(address(t.device)));
}

static size_t size_of(dt_dtype_t dtype)
{
    static const size_t sizes[] = { 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8 };

    return sizes[dtype];
}

/* A number from 0 to 3. */
static void put(void *buf, size_t i, dt_dtype_t dtype, unsigned v)
{
    static const uint16_t f16[] = { 0, 0x3c00, 0x4000, 0x4200 };
    static const uint16_t bf16[] = { 0, 0x3f80, 0x4000, 0x4040 };
    uint64_t whole = v;

    if (dtype == DT_F32)
        ((float *)buf)[i] = (float)v;
    else if (dtype == DT_F64)
        ((double *)buf)[i] = (double)v;
    else if (dtype == DT_F16 || dtype == DT_BF16)
        ((uint16_t *)buf)[i] = dtype == DT_F16 ? f16[v] : bf16[v];
    else
        memcpy((char *)buf + i * size_of(dtype), &whole, size_of(dtype));
}

/* Sums and products are exact in every type. With many ranks, products of threes are not. */
static void fill(struct twins t, dt_dtype_t dtype)
{
    unsigned most = dt_size() > 4 ? 2 : 3;
    enum {
        PERIOD = 65521
    }; /* a prime, so that blocks and chunks of a call begin at different values */
    size_t size = size_of(dtype), count = t.bytes / size;
    unsigned v = (unsigned)dt_rank() + 1;

    for (size_t i = 0; i < count && i < PERIOD; i++) {
        v = v * 1103515245 + 12345;
        put(t.host, i, dtype, (v >> 16) % (most + 1));
    }
    for (size_t i = PERIOD; i < count; i += PERIOD)
        memcpy((char *)t.host + i * size, t.host, (count - i < PERIOD ? count - i : PERIOD) * size);
    DRIVE(cuMemcpyHtoD_v2(address(t.device), t.host, t.bytes));
}

static double number_at(const void *buf, size_t i, dt_dtype_t dtype)
{
    uint32_t half = ((const uint16_t *)buf)[i], bits = half << 16;
    float v;

    if (dtype == DT_F64)
        return ((const double *)buf)[i];
    if (dtype == DT_F32)
        return (double)((const float *)buf)[i];
    if (dtype == DT_F16)
        return half ? ldexp((double)((half & 0x3ff) | 0x400), (int)(half >> 10) - 25) : 0;
    memcpy(&v, &bits, sizeof v);
    return (double)v;
}

/* NCCL multiplies by a rounded fraction, and rounds 16-bit sums at every rank. */
static bool are_near(const void *a, const void *b, size_t count, dt_dtype_t dtype)
{
    for (size_t i = 0; i < count; i++) {
        if (!(fabs(number_at(a, i, dtype) - number_at(b, i, dtype)) <= 0.02))
            return false;
    }
    return true;
}

static bool are_alike(const void *a, const void *b, size_t bytes, dt_dtype_t dtype, dt_op_t op)
{
    const char *way = getenv("DTRUN_DEVICE");

    if (memcmp(a, b, bytes) == 0)
        return true;
    return op == DT_AVG && dtype >= DT_F16 &&
           !(way && (strcmp(way, "staging") == 0 || strcmp(way, "shared") == 0)) &&
           are_near(a, b, bytes / size_of(dtype), dtype);
}

static int compared;

/* In pieces that stay in the processor's cache. */
static void compare(struct twins t, const char *what, dt_dtype_t dtype, dt_op_t op)
{
    enum { PIECE = 512 * 1024 };
    static char copy[PIECE];

    for (size_t at = 0; at < t.bytes; at += PIECE) {
        size_t n = t.bytes - at < PIECE ? t.bytes - at : PIECE;

        DRIVE(cuMemcpyDtoH_v2(copy, address(t.device) + at, n));
        if (!are_alike(copy, (char *)t.host + at, n, dtype, op)) {
            printf("%s of type %d, operation %d, %zu bytes: not the same\n", what, (int)dtype,
                   (int)op, t.bytes);
            exit(6);
        }
    }
    compared++;
}

/* ---- calls ---- */

struct arrays {
    struct twins in, out; /* of size * count elements */
    size_t count;
    dt_dtype_t dtype;
    size_t counts[MOST]; /* different counts; rank 0 has none */
    size_t mine;
};

static dt_comm_t *device_comm = DT_WORLD; /* or a view of it, for device memory */

static void settle(void)
{
    if (device_comm != DT_WORLD)
        need(dt_stream_wait(device_comm));
}

/* Makes a call on host memory and on device memory. COMM, IN and OUT are replaced by the
 * communicator and the buffers. */
#define BOTH(a, what, op, CALL)                                                                    \
    do {                                                                                           \
        fill((a)->out, (a)->dtype);                                                                \
        for (int side = 0; side < 2; side++) {                                                     \
            char *IN = side ? (a)->in.device : (a)->in.host;                                       \
            char *OUT = side ? (a)->out.device : (a)->out.host;                                    \
            dt_comm_t *COMM = side ? device_comm : DT_WORLD;                                       \
            (void)IN;                                                                              \
            need(CALL);                                                                            \
        }                                                                                          \
        settle();                                                                                  \
        compare((a)->out, what, (a)->dtype, op);                                                   \
    } while (0)

static struct arrays arrays_new(size_t count, dt_dtype_t dtype)
{
    size_t bytes = count * (size_t)dt_size() * size_of(dtype);
    struct arrays a = { twins_new(bytes), twins_new(bytes), count, dtype, { 0 }, 0 };

    fill(a.in, dtype);
    for (int r = 1; r < dt_size(); r++)
        a.counts[r] = count / (size_t)r;
    a.mine = a.counts[dt_rank()];
    return a;
}

static void arrays_free(struct arrays *a)
{
    compare(a->in, "what all calls have read", a->dtype, DT_SUM);
    twins_free(a->in);
    twins_free(a->out);
}

static void fold_all(struct arrays *a, dt_op_t op)
{
    int last = dt_size() - 1;

    BOTH(a, "all-reduce", op, dt_all_reduce(COMM, IN, OUT, a->count, a->dtype, op));
    BOTH(a, "all-reduce in place", op,
         dt_all_reduce(COMM, DT_IN_PLACE, OUT, a->count, a->dtype, op));
    if (op == DT_ADASUM)
        return;
    BOTH(a, "reduce", op, dt_reduce(COMM, IN, OUT, a->count, a->dtype, op, last));
    BOTH(a, "reduce-scatter", op, dt_reduce_scatter(COMM, IN, OUT, a->count, a->dtype, op));
    BOTH(a, "reduce-scatterv", op, dt_reduce_scatterv(COMM, IN, OUT, a->counts, a->dtype, op));
}

/* The result is stored at the beginning, or as in NCCL at the place of the rank's block. The rest
 * of the buffer is undefined. */
static void scatter_in_place(struct arrays *a, bool as_nccl)
{
    size_t block = a->count * size_of(a->dtype), at = as_nccl ? block * (size_t)dt_rank() : 0;
    struct twins result = { (char *)a->out.host + at, (char *)a->out.device + at, block };

    fill(a->out, a->dtype);
    for (int side = 0; side < 2; side++) {
        const void *in = side ? a->out.device : a->out.host;

        need(dt_reduce_scatter(side ? device_comm : DT_WORLD, as_nccl ? in : DT_IN_PLACE,
                               side ? result.device : result.host, a->count, a->dtype, DT_SUM));
    }
    settle();
    compare(result, "reduce-scatter in place", a->dtype, DT_SUM);
}

static void move_all(struct arrays *a)
{
    size_t mine = a->mine, own = a->count * size_of(a->dtype) * (size_t)dt_rank();
    int last = dt_size() - 1;
    size_t same[MOST];

    for (int r = 0; r < dt_size(); r++)
        same[r] = mine;
    scatter_in_place(a, false);
    scatter_in_place(a, true);
    BOTH(a, "broadcast", DT_SUM, dt_broadcast(COMM, OUT, a->count, a->dtype, last));
    BOTH(a, "all-gather", DT_SUM, dt_all_gather(COMM, IN, OUT, a->count, a->dtype));
    BOTH(a, "all-gather in place", DT_SUM, dt_all_gather(COMM, OUT + own, OUT, a->count, a->dtype));
    BOTH(a, "all-gatherv", DT_SUM, dt_all_gatherv(COMM, IN, OUT, a->counts, a->dtype));
    BOTH(a, "all-to-all", DT_SUM, dt_all_to_all(COMM, IN, OUT, a->count, a->dtype));
    BOTH(a, "all-to-all in place", DT_SUM,
         dt_all_to_all(COMM, DT_IN_PLACE, OUT, a->count, a->dtype));
    BOTH(a, "all-to-allv", DT_SUM, dt_all_to_allv(COMM, IN, a->counts, OUT, same, a->dtype));
    BOTH(a, "gather", DT_SUM, dt_gather(COMM, IN, OUT, a->count, a->dtype, last));
    BOTH(a, "gatherv", DT_SUM, dt_gatherv(COMM, IN, mine, OUT, a->counts, a->dtype, last));
    BOTH(a, "scatter", DT_SUM, dt_scatter(COMM, IN, OUT, a->count, a->dtype, last));
    BOTH(a, "scatterv", DT_SUM, dt_scatterv(COMM, IN, a->counts, OUT, mine, a->dtype, last));
}

static void small_calls(void)
{
    for (dt_dtype_t dtype = DT_I8; dtype <= DT_F64; dtype++) {
        struct arrays a = arrays_new(1000, dtype);

        for (dt_op_t op = DT_SUM; op <= (dtype < DT_F16 ? DT_BXOR : DT_AVG); op++)
            fold_all(&a, op);
        if (dtype >= DT_F16 && (dt_size() & (dt_size() - 1)) == 0)
            fold_all(&a, DT_ADASUM);
        move_all(&a);
        arrays_free(&a);
    }
    need(dt_barrier(DT_WORLD));
}

static void calls(void)
{
    const size_t sizes[] = { 0, 1, dt_size() > 2 ? SEVERAL / 2 : SEVERAL };

    small_calls();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && dt_size() <= 4; i++) {
        struct arrays a = arrays_new(sizes[i], DT_F32);

        fold_all(&a, DT_SUM);
        move_all(&a);
        arrays_free(&a);
    }
}

/* Makes a request on host memory and on device memory, and waits for both at the end. */
#define BEGUN(a, what, CALL)                                                                       \
    do {                                                                                           \
        dt_request_t requests[2], *REQUEST = requests;                                             \
        fill((a)->out, (a)->dtype);                                                                \
        for (int side = 0; side < 2; side++, REQUEST++) {                                          \
            char *IN = side ? (a)->in.device : (a)->in.host;                                       \
            char *OUT = side ? (a)->out.device : (a)->out.host;                                    \
            dt_comm_t *COMM = side ? device_comm : DT_WORLD;                                       \
            (void)IN;                                                                              \
            (void)OUT;                                                                             \
            need(CALL);                                                                            \
        }                                                                                          \
        need(dt_wait_all(requests, 2));                                                            \
        settle();                                                                                  \
        compare((a)->out, what, (a)->dtype, DT_SUM);                                               \
    } while (0)

static void begin_all(struct arrays *a)
{
    dt_all_reduce_options_t o = DT_ALL_REDUCE_OPTIONS_INIT;
    size_t n = a->count, mine = a->mine, same[MOST];
    int last = dt_size() - 1;
    dt_dtype_t d = a->dtype;

    o.prescale = 0.5;
    for (int r = 0; r < dt_size(); r++)
        same[r] = mine;
    BEGUN(a, "all-reduce", dt_iall_reduce(COMM, IN, OUT, n, d, DT_SUM, REQUEST));
    BEGUN(a, "with a factor",
          dt_iall_reduce_with(COMM, IN, OUT, n, d, DT_SUM, d == DT_F32 ? &o : NULL, REQUEST));
    BEGUN(a, "broadcast", dt_ibroadcast(COMM, OUT, n, d, last, REQUEST));
    BEGUN(a, "reduce", dt_ireduce(COMM, IN, OUT, n, d, DT_SUM, last, REQUEST));
    BEGUN(a, "reduce-scatter", dt_ireduce_scatter(COMM, IN, OUT, n, d, DT_SUM, REQUEST));
    BEGUN(a, "reduce-scatterv", dt_ireduce_scatterv(COMM, IN, OUT, a->counts, d, DT_SUM, REQUEST));
    BEGUN(a, "all-gather", dt_iall_gather(COMM, IN, OUT, n, d, REQUEST));
    BEGUN(a, "all-gatherv", dt_iall_gatherv(COMM, IN, OUT, a->counts, d, REQUEST));
    BEGUN(a, "all-to-all", dt_iall_to_all(COMM, IN, OUT, n, d, REQUEST));
    BEGUN(a, "all-to-allv", dt_iall_to_allv(COMM, IN, a->counts, OUT, same, d, REQUEST));
    BEGUN(a, "gather", dt_igather(COMM, IN, OUT, n, d, last, REQUEST));
    BEGUN(a, "gatherv", dt_igatherv(COMM, IN, mine, OUT, a->counts, d, last, REQUEST));
    BEGUN(a, "scatter", dt_iscatter(COMM, IN, OUT, n, d, last, REQUEST));
    BEGUN(a, "scatterv", dt_iscatterv(COMM, IN, a->counts, OUT, mine, d, last, REQUEST));
    BEGUN(a, "nothing", dt_ibarrier(COMM, REQUEST));
}

/* NCCL has the first type, but not the second. */
static void requests(void)
{
    const dt_dtype_t dtypes[] = { DT_F32, DT_I16 };

    for (int t = 0; t < 2; t++) {
        struct arrays a = arrays_new(1000, dtypes[t]);

        begin_all(&a);
        arrays_free(&a);
    }
}

static void factors(void)
{
    static const dt_dtype_t dtypes[] = { DT_F16, DT_BF16, DT_F32, DT_F64 };
    static const double factor[][2] = { { 0.25, 2 }, { 1, 0.5 }, { 3, 1 } };

    for (size_t t = 0; t < 4; t++) {
        struct arrays a = arrays_new(1000, dtypes[t]);

        for (size_t i = 0; i < 3; i++) {
            dt_all_reduce_options_t o = DT_ALL_REDUCE_OPTIONS_INIT;

            o.prescale = factor[i][0];
            o.postscale = factor[i][1];
            BOTH(&a, "all-reduce with factors", DT_SUM,
                 dt_all_reduce_with(COMM, IN, OUT, a.count, a.dtype, DT_SUM, &o));
            o.wire = dtypes[t] == DT_F32 ? DT_WIRE_BF16 : DT_WIRE_EXACT;
            BOTH(&a, "all-reduce with factors as bf16", DT_AVG,
                 dt_all_reduce_with(COMM, IN, OUT, a.count, a.dtype, DT_AVG, &o));
        }
        arrays_free(&a);
    }
}

/* ---- two ranks ---- */

static void pass(int before, int next)
{
    static const size_t sizes[] = { 0, 1, SEVERAL };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct twins in = twins_new(sizes[i] * 4), out = twins_new(sizes[i] * 4);

        fill(in, DT_F32);
        for (int side = 0; side < 2; side++) {
            void *from = side ? in.device : in.host, *to = side ? out.device : out.host;
            dt_comm_t *COMM = side ? device_comm : DT_WORLD;
            dt_request_t requests[2];

            if (COMM == DT_WORLD) {
                need(dt_irecv(COMM, to, sizes[i], DT_F32, before, &requests[0]));
                need(dt_send(COMM, from, sizes[i], DT_F32, next));
                need(dt_wait(&requests[0]));
            }
            /* Calls on a stream are made one after the other, so not all ranks can receive
             * first. */
            if (dt_rank() == 0)
                need(dt_isend(COMM, from, sizes[i], DT_F32, next, &requests[1]));
            need(dt_irecv(COMM, to, sizes[i], DT_F32, before, &requests[0]));
            if (dt_rank() != 0)
                need(dt_isend(COMM, from, sizes[i], DT_F32, next, &requests[1]));
            need(dt_wait_all(requests, 2));
        }
        compare(out, "send and receive", DT_F32, DT_SUM);
        twins_free(in);
        twins_free(out);
    }
}

static void pass_around(void)
{
    pass((dt_rank() + dt_size() - 1) % dt_size(), (dt_rank() + 1) % dt_size());
}

static void pairs(void)
{
    pass_around();
    pass(dt_rank(), dt_rank());
}

/* ---- the same on a stream ---- */

static void use_stream(void)
{
    CUstream stream;

    DRIVE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    need(dt_comm_on_stream(DT_WORLD, stream, &device_comm));
}

static void streamcalls(void)
{
    use_stream();
    calls();
}

static void streamrequests(void)
{
    use_stream();
    requests();
}

static void streamfactors(void)
{
    use_stream();
    factors();
}

static void streampairs(void)
{
    use_stream();
    pass_around();
}

/* ---- work that the GPU has not finished ---- */

static struct gate gate;

static void *open_later(void *arg)
{
    usleep(20000); /* long enough for a call that does not wait to return */
    (void)arg;
    gate_open(&gate);
    return NULL;
}

static float value_at(const float *device)
{
    float v;

    DRIVE(cuMemcpyDtoH_v2(&v, address(device), sizeof v));
    return v;
}

static void need_sum(float got, const char *what)
{
    float sum = (float)(dt_size() * (dt_size() + 1)) / 2;

    if (got == sum)
        return;
    printf("%s: %g and not %g\n", what, (double)got, (double)sum);
    exit(6);
}

/* The bits of rank + 1, as the GPU writes them. */
static unsigned mine(void)
{
    float v = (float)dt_rank() + 1;
    unsigned bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* Queues on the stream a copy into the buffer that runs when the gate is open. */
static void fill_later(CUdeviceptr buf, CUstream stream)
{
    gate_shut(&gate, stream);
    DRIVE(cuMemsetD32Async(buf, mine(), 1, stream));
}

static pthread_t begin_opening(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, open_later, NULL);
    return thread;
}

static void later_on(CUstream stream)
{
    float *buf = device_new(sizeof *buf);
    dt_bucket_t *bucket;
    dt_request_t request;
    pthread_t opener;

    fill_later(address(buf), stream);
    opener = begin_opening();
    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
    pthread_join(opener, NULL);
    need_sum(value_at(buf), "all-reduce");

    fill_later(address(buf), stream);
    need(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM, &request));
    opener = begin_opening();
    need(dt_wait(&request));
    pthread_join(opener, NULL);
    need_sum(value_at(buf), "request");

    need(dt_bucket_create(DT_WORLD, 0, DT_F32, DT_SUM, &bucket));
    fill_later(address(buf), stream);
    need(dt_bucket_push(bucket, buf, 1));
    opener = begin_opening();
    need(dt_bucket_wait(bucket));
    pthread_join(opener, NULL);
    need(dt_bucket_free(bucket));
    need_sum(value_at(buf), "bucket");
}

static void buckets(void)
{
    static const size_t counts[] = { 1, 1000, 0, 15000, 5000, 70000, 3, 7 };
    enum { PIECES = sizeof counts / sizeof *counts };
    struct twins pieces[PIECES];

    for (int i = 0; i < PIECES; i++) {
        pieces[i] = twins_new(counts[i] * 4);
        fill(pieces[i], DT_F32);
    }
    for (int side = 0; side < 2; side++) {
        dt_bucket_t *bucket;

        need(dt_bucket_create(DT_WORLD, 65536, DT_F32, DT_SUM, &bucket));
        for (int i = 0; i < PIECES; i++)
            need(dt_bucket_push(bucket, side ? pieces[i].device : pieces[i].host, counts[i]));
        need(dt_bucket_wait(bucket));
        need(dt_bucket_free(bucket));
    }
    for (int i = 0; i < PIECES; i++) {
        compare(pieces[i], "bucket", DT_F32, DT_SUM);
        twins_free(pieces[i]);
    }
}

/* Work that is queued after a request was made does not delay it, even before the call can begin:
 * the last rank makes it when the others have queued other work. */
static void not_later(CUstream stream)
{
    float *buf = device_new(sizeof *buf);
    bool last = dt_rank() == dt_size() - 1;
    dt_request_t request;
    dt_comm_t *aside;

    need(dt_comm_split(DT_WORLD, 0, 0, &aside));
    DRIVE(cuMemsetD32_v2(address(buf), mine(), 1));
    if (last)
        need(dt_barrier(aside));
    need(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM, &request));
    gate_shut(&gate, stream);
    if (!last)
        need(dt_barrier(aside));
    need(dt_wait(&request));
    gate_open(&gate);
    need_sum(value_at(buf), "request before other work");
    need(dt_comm_free(aside));
}

static void later(void)
{
    gate_make(&gate);
    later_on(CU_STREAM_LEGACY);
    later_on(CU_STREAM_PER_THREAD);
}

/* The first call comes before all gates, since it makes streams, pins memory and starts NCCL, which
 * may wait for the whole device. */
static void sooner(void)
{
    float *buf = device_new(sizeof *buf);

    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
    gate_make(&gate);
    not_later(CU_STREAM_LEGACY);
    not_later(CU_STREAM_PER_THREAD);
}

static void managed(void)
{
    CUdeviceptr buf;
    pthread_t opener;

    gate_make(&gate);
    DRIVE(cuMemAllocManaged(&buf, sizeof(float), CU_MEM_ATTACH_GLOBAL));
    fill_later(buf, CU_STREAM_LEGACY);
    opener = begin_opening();
    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, (void *)(uintptr_t)buf, 1, DT_F32, DT_SUM));
    pthread_join(opener, NULL);
    need_sum(*(float *)(uintptr_t)buf, "all-reduce of managed memory");
}

/* ---- others ---- */

static void join(void)
{
    float *buf = device_new(sizeof *buf);
    int last;

    need(dt_join_begin(DT_WORLD));
    for (int i = 0; i <= dt_rank(); i++) {
        DRIVE(cuMemsetD32_v2(address(buf), mine(), 1));
        need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
    }
    if (dt_rank() == dt_size() - 1 && value_at(buf) != (float)dt_size()) {
        printf("the last sum is %g\n", (double)value_at(buf));
        exit(6);
    }
    need(dt_join(DT_WORLD, &last));
}

/* Rank 0 makes one call on device memory. Rank 1 makes smaller ones, on either memory. The others
 * have no more data. */
static void join_unlike_by(size_t count, size_t of_rank_1, bool host)
{
    float *device = device_new(count * sizeof *device);
    float *buf = dt_rank() == 1 && host ? calloc(count, sizeof *buf) : device;
    size_t mine = dt_rank() == 1 ? of_rank_1 : count;
    dt_result_t r = DT_OK;
    dt_comm_t *comm;

    need(dt_comm_dup(DT_WORLD, &comm));
    need(dt_join_begin(comm));
    for (size_t at = 0; r == DT_OK && dt_rank() < 2 && at < count; at += mine)
        r = dt_all_reduce(comm, DT_IN_PLACE, buf + at, mine, DT_F32, DT_SUM);
    if (r == DT_OK)
        r = dt_join(comm, NULL);
    printf("%zu, %zu on the %s: %d: %s\n", count, of_rank_1, host ? "host" : "GPU", (int)r,
           dt_last_error());
    dt_comm_free(comm); /* returns the mismatch again */
    if (buf != device)
        free(buf);
    DRIVE(cuMemFree_v2(address(device)));
}

static void join_unlike(void)
{
    enum { STAGED = 1024 * 1024 }; /* f32 that are staged at the same time */

    join_unlike_by(1, 1, true);
    join_unlike_by(SEVERAL, SEVERAL, true);
    join_unlike_by((size_t)2 * STAGED, STAGED, true);
    join_unlike_by((size_t)2 * STAGED, STAGED, false);
}

static void split(void)
{
    float *buf = device_new(sizeof *buf);
    dt_comm_t *comm;

    need(dt_comm_split(DT_WORLD, dt_rank() % 2, 0, &comm));
    DRIVE(cuMemsetD32_v2(address(buf), 0x3f800000, 1));
    need(dt_all_reduce(comm, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
    printf("%g together\n", (double)value_at(buf));
    need(dt_comm_free(comm));
}

static void use_world(void)
{
    float *buf = device_new(sizeof *buf);

    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
    DRIVE(cuMemFree_v2(address(buf)));
}

/* Shows the numbers in DT_WORLD of the communicator's ranks. */
static void show_members(dt_comm_t *comm)
{
    uint32_t *mine = device_new(sizeof *mine), *all = device_new(MOST * sizeof *all);
    uint32_t members[MOST];
    int size = dt_comm_size(comm);

    DRIVE(cuMemsetD32_v2(address(mine), (unsigned)dt_rank(), 1));
    need(dt_all_gather(comm, mine, all, 1, DT_U32));
    DRIVE(cuMemcpyDtoH_v2(members, address(all), (size_t)size * sizeof *members));
    printf("members:");
    for (int i = 0; i < size; i++)
        printf(" %u", members[i]);
    printf("\n");
    DRIVE(cuMemFree_v2(address(mine)));
    DRIVE(cuMemFree_v2(address(all)));
}

static void split_later(void)
{
    dt_comm_t *half, *own, *again;
    int me = dt_rank();

    use_world();
    need(dt_comm_split(DT_WORLD, me ? me % 2 : DT_UNDEFINED, -me, &half));
    need(dt_comm_split(DT_WORLD, me, 0, &own));
    if (half != DT_COMM_NULL) {
        show_members(half);
        need(dt_comm_split(half, INT_MAX, me, &again));
        show_members(again);
        need(dt_comm_free(again));
        show_members(half);
        need(dt_comm_free(half));
    }
    show_members(own);
    use_world();
}

static void *call_beside(void *comm)
{
    float *buf;

    device_use(0);
    buf = device_new(sizeof *buf);
    for (unsigned i = 0; i < 200; i++) {
        need(dt_all_reduce(comm, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
        usleep(i * 97 % 1000);
    }
    return NULL;
}

static void split_beside(void)
{
    dt_comm_t *other, *half;
    pthread_t thread;

    use_world();
    need(dt_comm_dup(DT_WORLD, &other));
    if (pthread_create(&thread, NULL, call_beside, other) != 0)
        exit(7);
    for (int i = 0; i < 50; i++) {
        need(dt_comm_split(DT_WORLD, dt_rank() % 2, 0, &half));
        need(dt_comm_free(half));
    }
    pthread_join(thread, NULL);
    need(dt_comm_split(DT_WORLD, 0, 0, &half));
    show_members(half);
}

static void split_failing(void)
{
    dt_comm_t *comm;
    dt_result_t r;

    use_world();
    r = dt_comm_split(DT_WORLD, dt_rank() / 2, 0, &comm);
    printf("%d: %s\n", (int)r, dt_last_error());
    if (r != DT_OK)
        exit(1);
}

static void split_dup(void)
{
    dt_comm_t *comm;

    use_world();
    need(dt_comm_dup(DT_WORLD, &comm));
    show_members(comm);
}

static void refused_as_mixed(dt_result_t r, const char *call)
{
    if (r != DT_ERR_ARG || !strstr(dt_last_error(), "one of in and out is GPU memory")) {
        printf("%d from %s: %s\n", (int)r, call, dt_last_error());
        exit(6);
    }
}

#define REFUSED(call) refused_as_mixed(call, #call)

/* A call with a root names this rank, which alone has both buffers. */
static void mix(dt_comm_t *comm, const float *in, float *out)
{
    dt_all_reduce_options_t o = DT_ALL_REDUCE_OPTIONS_INIT;
    int me = dt_rank();
    size_t ones[MOST];

    for (int r = 0; r < MOST; r++)
        ones[r] = 1;
    o.prescale = 0.5;
    REFUSED(dt_all_reduce(comm, in, out, 1, DT_F32, DT_SUM));
    REFUSED(dt_all_reduce_with(comm, in, out, 1, DT_F32, DT_SUM, &o));
    REFUSED(dt_reduce(comm, in, out, 1, DT_F32, DT_SUM, me));
    REFUSED(dt_reduce_scatter(comm, in, out, 1, DT_F32, DT_SUM));
    REFUSED(dt_reduce_scatterv(comm, in, out, ones, DT_F32, DT_SUM));
    REFUSED(dt_all_gather(comm, in, out, 1, DT_F32));
    REFUSED(dt_all_gatherv(comm, in, out, ones, DT_F32));
    REFUSED(dt_all_to_all(comm, in, out, 1, DT_F32));
    REFUSED(dt_all_to_allv(comm, in, ones, out, ones, DT_F32));
    REFUSED(dt_gather(comm, in, out, 1, DT_F32, me));
    REFUSED(dt_gatherv(comm, in, 1, out, ones, DT_F32, me));
    REFUSED(dt_scatter(comm, in, out, 1, DT_F32, me));
    REFUSED(dt_scatterv(comm, in, ones, out, 1, DT_F32, me));
}

static void mix_requests(dt_comm_t *comm, const float *in, float *out)
{
    dt_request_t request;

    REFUSED(dt_iall_reduce(comm, in, out, 1, DT_F32, DT_SUM, &request));
    REFUSED(dt_iall_gather(comm, in, out, 1, DT_F32, &request));
    REFUSED(dt_igather(comm, in, out, 1, DT_F32, dt_rank(), &request));
}

static void mixed(void)
{
    float host[MOST] = { 0 }, *device = device_new(sizeof host);

    use_stream();
    for (int i = 0; i < 2; i++) {
        dt_comm_t *comm = i ? device_comm : DT_WORLD;

        mix(comm, host, device);
        mix(comm, device, host);
        mix_requests(comm, host, device);
        mix_requests(comm, device, host);
    }
    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, device, 1, DT_F32, DT_SUM));
}

static void misaligned(void)
{
    char *buf = device_new(64);
    dt_bucket_t *bucket;
    dt_result_t results[4];

    need(dt_bucket_create(DT_WORLD, 0, DT_F32, DT_SUM, &bucket));
    results[0] = dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf + 2, 1, DT_F32, DT_SUM);
    results[1] = dt_reduce(DT_WORLD, buf, buf + 34, 1, DT_F32, DT_SUM, dt_rank());
    results[2] = dt_reduce_scatter(DT_WORLD, buf + 1, buf + 32, 1, DT_F16, DT_SUM);
    results[3] = dt_bucket_push(bucket, buf + 1, 1);
    for (int i = 0; i < 4; i++) {
        if (results[i] != DT_ERR_ARG) {
            printf("misaligned buffer %d: %d\n", i, (int)results[i]);
            exit(6);
        }
    }
    need(dt_bucket_free(bucket));
    need(dt_broadcast(DT_WORLD, buf + 1, 1, DT_F32, 0));
    need(dt_all_gather(DT_WORLD, buf + 1, buf + 17, 1, DT_F16));
}

static void unlike(void)
{
    float host = 1, *device = device_new(sizeof *device);

    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, dt_rank() == 1 ? &host : device, 1, DT_F32, DT_SUM));
}

static dt_comm_t *used_comm(int color)
{
    float *buf = device_new(sizeof *buf);
    dt_comm_t *comm;

    need(dt_comm_split(DT_WORLD, color, 0, &comm));
    if (comm != DT_COMM_NULL)
        need(dt_all_reduce(comm, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
    DRIVE(cuMemFree_v2(address(buf)));
    return comm;
}

static void leak(void)
{
    const char *file = getenv("STANDIN_NCCL_BROKEN");
    size_t before, after, total;
    dt_comm_t *comm;

    DRIVE(cuMemGetInfo_v2(&before, &total));
    comm = used_comm(0);
    need(dt_barrier(DT_WORLD));
    if (file)
        fclose(fopen(file, "w"));
    need(dt_comm_free(comm));
    DRIVE(cuMemGetInfo_v2(&after, &total));
    printf("%zu bytes lost\n", before - after);
}

/* Rank 0 reuses the place of its first communicator. */
static void slots(void)
{
    dt_comm_t *first = used_comm(dt_rank() == 0 ? 0 : -1);

    used_comm(0);
    if (first != DT_COMM_NULL)
        need(dt_comm_free(first));
    used_comm(0);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void idle(void)
{
    float *buf = device_new(sizeof *buf);
    int8_t word = 0;
    double start;

    used_comm(0);
    if (dt_rank() == 1) { /* when the others' calls have returned, too */
        need(dt_recv(DT_WORLD, &word, 1, DT_I8, 0));
        need(dt_recv(DT_WORLD, &word, 1, DT_I8, 2));
        raise(SIGKILL);
    }
    dt_send(DT_WORLD, &word, 1, DT_I8, 1); /* fails if rank 1 is killed before it returns */
    while (dt_rank() == 2)
        pause();
    if (dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM) != DT_ERR_PEER)
        exit(6);
    start = seconds();
    dt_finalize();
    printf("left after %.0f s\n", seconds() - start);
    exit(3);
}

/* ---- training ---- */

enum { STEPS = 12, WEIGHTS = 1000, SAVED_EVERY = 4 };

/* Computes the gradients of the step from the weights and sums them on the GPUs. */
static void take_step(float *weights, float *device, int64_t step, bool stuck)
{
    float gradients[WEIGHTS];

    for (int i = 0; i < WEIGHTS; i++)
        gradients[i] = weights[i] / 3 + (float)((step * (dt_rank() + 1) + i) % 7);
    DRIVE(cuMemcpyHtoD_v2(address(device), gradients, sizeof gradients));
    if (stuck) {
        gate_make(&gate);
        gate_shut(&gate, CU_STREAM_PER_THREAD);
    }
    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, device, WEIGHTS, DT_F32, DT_AVG));
    DRIVE(cuMemcpyDtoH_v2(gradients, address(device), sizeof gradients));
    for (int i = 0; i < WEIGHTS; i++)
        weights[i] -= gradients[i] / 8;
}

/* With ISAVE=1 in the environment the save goes on in the background while the weights change. */
static void save_device(int64_t step, float *device, const float *weights, dt_request_t *request)
{
    static const float other[WEIGHTS] = { 1, 2, 3 };

    if (!getenv("ISAVE")) {
        need(dt_checkpoint_save(step));
        return;
    }
    need(dt_wait(request));
    need(dt_checkpoint_isave(step, request));
    DRIVE(cuMemcpyHtoDAsync_v2(address(device), other, sizeof other, CU_STREAM_LEGACY));
    DRIVE(cuMemcpyHtoDAsync_v2(address(device), weights, sizeof other, CU_STREAM_LEGACY));
}

/* Like train, but with weights in device memory that are registered there, and with enqueued calls.
 * Some of the weights, which no step changes, fill many pieces. */
static void devicetrain(void)
{
    enum { MUCH = 9 * 1024 * 1024 + 5 };
    static float weights[WEIGHTS];
    static unsigned char much[MUCH];
    float *device = device_new(sizeof weights), *gradients = device_new(sizeof weights);
    unsigned char *bulk = device_new(MUCH);
    dt_request_t request = { 0 };
    int64_t step;

    DRIVE(cuMemcpyHtoD_v2(address(device), weights, sizeof weights));
    for (int i = 0; i < MUCH; i++)
        much[i] = (unsigned char)(i * 7 + i / 4096 + dt_rank());
    need(dt_checkpoint_register("weights", device, sizeof weights));
    need(dt_checkpoint_register("bulk", bulk, MUCH));
    need(dt_checkpoint_restore(&step));
    if (step < 0)
        DRIVE(cuMemcpyHtoD_v2(address(bulk), much, MUCH));
    for (step = step < 0 ? 1 : step + 1; step <= STEPS; step++) {
        dt_step(step);
        DRIVE(cuMemcpyDtoH_v2(weights, address(device), sizeof weights));
        take_step(weights, gradients, step, false);
        gate_make(&gate);
        gate_shut(&gate, CU_STREAM_LEGACY);
        DRIVE(cuMemcpyHtoDAsync_v2(address(device), weights, sizeof weights, CU_STREAM_LEGACY));
        if (step % SAVED_EVERY == 0) {
            pthread_t opener = begin_opening();

            save_device(step, device, weights, &request);
            pthread_join(opener, NULL);
        }
        gate_open(&gate);
    }
    need(dt_wait(&request));
    DRIVE(cuMemcpyDtoH_v2(much, address(bulk), MUCH));
    for (int i = 0; i < MUCH; i++) {
        if (much[i] != (unsigned char)(i * 7 + i / 4096 + dt_rank())) {
            printf("byte %d is another\n", i);
            exit(6);
        }
    }
}

/* Saves what devicetrain saves. */
static void hosttrain(void)
{
    enum { MUCH = 9 * 1024 * 1024 + 5 };
    static float weights[WEIGHTS];
    static unsigned char much[MUCH];
    float *gradients = device_new(sizeof weights);

    for (int i = 0; i < MUCH; i++)
        much[i] = (unsigned char)(i * 7 + i / 4096 + dt_rank());
    need(dt_checkpoint_register("weights", weights, sizeof weights));
    need(dt_checkpoint_register("bulk", much, MUCH));
    for (int64_t step = 1; step <= STEPS; step++) {
        take_step(weights, gradients, step, false);
        if (step % SAVED_EVERY == 0)
            need(dt_checkpoint_save(step));
    }
}

/* A buffer that is only partly device memory is refused. One that was freed makes the save fail. */
static void register_wrong(void)
{
    unsigned char *part = device_new(4096), *freed = device_new(4096);
    dt_request_t request;

    if (dt_checkpoint_register("part", part, (size_t)1 << 40) != DT_ERR_ARG)
        exit(6);
    printf("%s\n", dt_last_error());
    need(dt_checkpoint_register("freed", freed, 4096));
    if (dt_rank() == 1)
        DRIVE(cuMemFree_v2(address(freed)));
    printf("%d: ", (int)dt_checkpoint_isave(1, &request));
    printf("%s\n", dt_last_error());
    if (dt_rank() != 1)
        DRIVE(cuMemFree_v2(address(freed)));
    printf("%d: ", (int)dt_checkpoint_save(1));
    printf("%s\n", dt_last_error());
    need(dt_barrier(DT_WORLD));
}

static void train_until_stuck(int64_t stuck)
{
    static float weights[WEIGHTS];
    float *device = device_new(sizeof weights);
    int64_t step;

    need(dt_checkpoint_register("weights", weights, sizeof weights));
    need(dt_checkpoint_restore(&step));
    for (step = step < 0 ? 1 : step + 1; step <= STEPS; step++) {
        dt_step(step);
        take_step(weights, device, step, step == stuck && dt_rank() == 1 && dt_generation() == 1);
        if (step % SAVED_EVERY == 0)
            need(dt_checkpoint_save(step));
    }
}

static void train(void)
{
    train_until_stuck(0);
}

static void stucktrain(void)
{
    train_until_stuck(7);
}

/* Waits until NCCL keeps the threads of all ranks. */
static void *abort_when_all_hang(void *arg)
{
    struct stat st;

    while (stat(getenv("STANDIN_NCCL_HANGS"), &st) != 0 || st.st_size < dt_size())
        usleep(1000);
    need(dt_comm_abort(DT_WORLD));
    return arg;
}

static void watched_train(void)
{
    pthread_t thread;

    if (dt_rank() == 0 && dt_generation() == 1)
        pthread_create(&thread, NULL, abort_when_all_hang, NULL);
    train();
}

static void die(void)
{
    float *buf = device_new(sizeof *buf);

    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
    if (dt_rank() == 1)
        raise(SIGKILL);
    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
}

static void stuck(void)
{
    float *buf = device_new(sizeof *buf);

    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM)); /* may start NCCL */
    gate_make(&gate);
    if (dt_rank() == 1)
        gate_shut(&gate, CU_STREAM_LEGACY);
    need(dt_barrier(DT_WORLD));
    need(dt_comm_set_timeout(DT_WORLD, 1));
    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
}

static void leaves(void)
{
    float *buf = device_new(sizeof *buf);
    dt_request_t request;

    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
    gate_make(&gate);
    if (dt_rank() == 1)
        gate_shut(&gate, CU_STREAM_LEGACY);
    need(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM, &request));
    if (dt_rank() == 1)
        exit(7);
    need(dt_wait(&request));
}

static void stucksave(void)
{
    float *buf = device_new(sizeof *buf);
    dt_request_t request;

    need(dt_checkpoint_register("buf", buf, sizeof *buf));
    need(dt_checkpoint_isave(1, &request));
    need(dt_wait(&request));
    need(dt_comm_set_timeout(DT_WORLD, 0.5));
    gate_make(&gate);
    if (dt_rank() == 1)
        gate_shut(&gate, CU_STREAM_LEGACY);
    for (int64_t step = 2; step < 4; step++) {
        dt_result_t r = dt_checkpoint_isave(step, &request);

        printf("%d: %s\n", (int)r, dt_last_error());
    }
    gate_open(&gate);
    printf("%d\n", (int)dt_finalize());
    exit(1);
}

static const char faulting_ptx[] = ".version 6.0\n"
                                   ".target sm_50\n"
                                   ".address_size 64\n"
                                   ".visible .entry fault()\n"
                                   "{\n"
                                   ".reg .b32 %r<2>;\n"
                                   ".reg .b64 %rd<2>;\n"
                                   "mov.u32 %r1, 1;\n"
                                   "mov.u64 %rd1, 0;\n"
                                   "st.global.u32 [%rd1], %r1;\n"
                                   "ret;\n"
                                   "}\n";

/* Ends the use of the context with a kernel that writes where no memory is. */
static void let_fault(void)
{
    void (*stand_in)(CUcontext context);
    CUcontext context;
    CUmodule module;
    CUfunction function;

    DRIVE(cuCtxGetCurrent(&context));
    *(void **)&stand_in = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "standin_fault");
    if (stand_in) {
        stand_in(context);
        return;
    }
    DRIVE(cuModuleLoadData(&module, faulting_ptx));
    DRIVE(cuModuleGetFunction(&function, module, "fault"));
    DRIVE(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_LEGACY, NULL, NULL));
    if (dt_cuda()->cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS)
        return;
    printf("the kernel has not faulted\n");
    exit(6);
}

/* Not on rank 1, which joins the requests only when the other GPUs have faulted. */
static void fault(void)
{
    float *buf = device_new(sizeof *buf), numbers[2] = { 0, (float)dt_rank() + 1 };
    bool faults = dt_rank() != 1;
    dt_request_t requests[2];
    dt_comm_t *comm, *other;
    dt_result_t r;

    need(dt_comm_dup(DT_WORLD, &comm));
    need(dt_comm_dup(DT_WORLD, &other));
    need(dt_all_reduce(comm, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
    if (faults) {
        need(dt_iall_reduce(comm, DT_IN_PLACE, numbers, 1, DT_F32, DT_SUM, &requests[0]));
        need(dt_iall_reduce(comm, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM, &requests[1]));
        let_fault();
        r = dt_all_reduce(other, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM);
        printf("%d: %s\n", (int)r, dt_last_error());
    }
    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, numbers + 1, 1, DT_F32, DT_SUM));
    need_sum(numbers[1], "sum in host memory");
    if (faults) {
        need(dt_wait(&requests[0]));
        r = dt_wait(&requests[1]);
    } else {
        need(dt_all_reduce(comm, DT_IN_PLACE, numbers, 1, DT_F32, DT_SUM));
        r = dt_all_reduce(comm, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM);
    }
    printf("%d: %s\n", (int)r, dt_last_error());
    exit(1);
}

/* Another rank's abort may come before this rank's. */
static void aborted(void)
{
    float *buf = device_new(sizeof *buf);
    int right = (dt_rank() + 1) % dt_size();

    gate_make(&gate);
    gate_shut(&gate, CU_STREAM_LEGACY);
    need(dt_comm_abort(DT_WORLD));
    printf("%d: %s\n", (int)dt_send(DT_WORLD, buf, 1, DT_F32, right), dt_last_error());
    printf("%d: %s\n", (int)dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM),
           dt_last_error());
    gate_open(&gate);
    exit(1);
}

static void capture(void)
{
    float *buf = device_new(sizeof *buf);
    CUstream stream;
    CUgraph graph;
    dt_result_t r;

    DRIVE(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    DRIVE(cuMemsetD32_v2(address(buf), mine(), 1));
    DRIVE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    r = dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM);
    printf("%d: %s\n", (int)r, dt_last_error());
    DRIVE(cuStreamEndCapture(stream, &graph));
    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
    need_sum(value_at(buf), "all-reduce after a capture");
}

/* The first call makes streams, connects NCCL and takes memory, in which the library's threads must
 * not disturb the capture. */
static void request_beside_capture(void)
{
    float *buf = device_new(sizeof *buf);
    dt_request_t request;
    CUstream stream;
    CUgraph graph;

    gate_make(&gate);
    DRIVE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 2; i++) {
        fill_later(address(buf), CU_STREAM_LEGACY);
        need(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM, &request));
        DRIVE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        gate_open(&gate);
        need(dt_wait(&request));
        DRIVE(cuStreamEndCapture(stream, &graph));
        need_sum(value_at(buf), "request beside a capture");
    }
}

int main(int argc, char **argv)
{
    static const struct doing doings[] = { { "calls", calls },
                                           { "smallcalls", small_calls },
                                           { "pairs", pairs },
                                           { "later", later },
                                           { "buckets", buckets },
                                           { "sooner", sooner },
                                           { "managed", managed },
                                           { "join", join },
                                           { "joinunlike", join_unlike },
                                           { "split", split },
                                           { "splitlater", split_later },
                                           { "splitfails", split_failing },
                                           { "splitdup", split_dup },
                                           { "splitbeside", split_beside },
                                           { "factors", factors },
                                           { "requests", requests },
                                           { "mixed", mixed },
                                           { "misaligned", misaligned },
                                           { "unlike", unlike },
                                           { "die", die },
                                           { "stuck", stuck },
                                           { "leaves", leaves },
                                           { "stucksave", stucksave },
                                           { "fault", fault },
                                           { "aborted", aborted },
                                           { "capture", capture },
                                           { "beside", request_beside_capture },
                                           { "leak", leak },
                                           { "slots", slots },
                                           { "idle", idle },
                                           { "streamcalls", streamcalls },
                                           { "streamrequests", streamrequests },
                                           { "streamfactors", streamfactors },
                                           { "streampairs", streampairs },
                                           { "train", train },
                                           { "devicetrain", devicetrain },
                                           { "hosttrain", hosttrain },
                                           { "registerwrong", register_wrong },
                                           { "stucktrain", stucktrain },
                                           { "watchedtrain", watched_train } };

    device_join();
    if (!device_do(doings, sizeof doings / sizeof *doings, argc, argv))
        return 2;
    printf("%s: %d comparisons\n", argv[1], compared);
    need(dt_finalize());
    return 0;
}
