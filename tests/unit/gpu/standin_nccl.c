/* The stand-in for libnccl.so.2 keeps the rules of NVIDIA's documents, whose sections comments
 * name, or else of NCCL's source. Ranks that must be late wait for a word in pinned memory, which
 * the test writes, so nothing depends on time. */
#include "tests/unit/gpu/standin_nccl.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/standin/nccl/elements.h"

/* Small types round to nearest, ties to even. The 8-bit types saturate. */
static void small_types_round_like_nvidias(void **state)
{
    static const struct {
        ncclDataType_t type;
        unsigned a, b;
        ncclRedOp_t op;
        unsigned result;
    } cases[] = {
        { ncclFloat16, 0x3c00, 0x1000, ncclSum, 0x3c00 },  /* 1 + 2^-11: a tie */
        { ncclFloat16, 0x3c01, 0x1000, ncclSum, 0x3c02 },  /* a tie, to even */
        { ncclFloat16, 0x7bff, 0x7bff, ncclSum, 0x7c00 },  /* overflow */
        { ncclFloat16, 0x0001, 0x0001, ncclSum, 0x0002 },  /* subnormal */
        { ncclFloat16, 0x3555, 0x4200, ncclProd, 0x3c00 }, /* 1/3 * 3 */
        { ncclFloat16, 0x7e00, 0x3c00, ncclMax, 0x3c00 },  /* a number wins over NaN */
        { ncclBfloat16, 0x4380, 0x3f80, ncclSum, 0x4380 }, /* 256 + 1 */
        { ncclBfloat16, 0x4380, 0x4040, ncclSum, 0x4382 }, /* 256 + 3 */
        { ncclBfloat16, 0xbf80, 0x3f80, ncclMin, 0xbf80 },
        { ncclFloat8e4m3, 0x7e, 0x7e, ncclSum, 0x7e },  /* 448 + 448 */
        { ncclFloat8e4m3, 0x38, 0x38, ncclSum, 0x40 },  /* 1 + 1 */
        { ncclFloat8e4m3, 0x38, 0x7f, ncclSum, 0x7f },  /* NaN */
        { ncclFloat8e5m2, 0x7b, 0x7b, ncclProd, 0x7b }, /* beyond 57344 */
        { ncclFloat8e5m2, 0x3c, 0xbc, ncclSum, 0x00 },
        { ncclInt8, 127, 1, ncclSum, 0x80 },
        { ncclInt8, 0xff, 1, ncclMax, 1 },
        { ncclUint8, 0xff, 1, ncclMax, 0xff },
    };
    unsigned sum;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sum = cases[i].a;
        standin_fold(cases[i].type, cases[i].op, &sum, &cases[i].b, 0, 1);
        if (sum != cases[i].result)
            fail_msg("case %zu: 0x%x", i, sum);
    }
}

static void all_of_one_kind(struct rank *me, ncclDataType_t type, ncclRedOp_t op)
{
    size_t size = standin_element_size(type), count = 1000;
    unsigned char elements[8 * 1000], expected[8 * 1000];
    const char *found;

    memset(elements, 0, sizeof(elements));
    for (size_t i = 0; i < count; i++)
        elements[i * size + size - 1] = (unsigned char)(0x20 + me->rank);
    fill(me, elements, count * size);
    OK(ncclAllReduce((void *)me->from, (void *)me->to, count, type, op, me->comm, me->stream));
    found = result(me, count * size);
    for (size_t i = 0; i < count; i++) {
        int last = (int)(i / ((count + 2) / 3));

        for (int k = 1; k <= 3; k++) {
            unsigned char one[8] = { 0 };

            one[size - 1] = (unsigned char)(0x20 + (last + k) % 3);
            if (k == 1)
                memcpy(expected, one, size);
            else
                standin_fold(type, op, expected, one, 0, 1);
        }
        HOLDS(memcmp(found + i * size, expected, size) == 0);
    }
}

static void reduce_all_kinds(struct rank *me)
{
    start_both(me);
    for (int type = 0; type < STANDIN_TYPES; type++)
        for (int op = ncclSum; op < ncclAvg; op++)
            all_of_one_kind(me, (ncclDataType_t)type, (ncclRedOp_t)op);
    end_comm(me);
}

static void all_types_and_operations_are_reduced(void **state)
{
    (void)state;
    run_ranks(3, reduce_all_kinds, NULL);
}

/* Each hop rounds to bfloat16, where 256 + 1 is 256 but 1 + 1 + 256 is 258. The sum of each third
 * begins at a different rank. */
static void round_each_hop(struct rank *me)
{
    static const uint16_t values[3] = { 0x4380, 0x3f80, 0x3f80 };
    uint16_t own[3] = { values[me->rank], values[me->rank], values[me->rank] };
    const uint16_t *sums;

    start_both(me);
    fill(me, own, sizeof(own));
    OK(ncclAllReduce((void *)me->from, (void *)me->to, 3, ncclBfloat16, ncclSum, me->comm,
                     me->stream));
    sums = result(me, sizeof(own));
    HOLDS(sums[0] == 0x4381 && sums[1] == 0x4380 && sums[2] == 0x4380);
    end_comm(me);
}

/* NCCL, device/all_reduce.h. */
static void sums_are_rounded_at_each_hop(void **state)
{
    (void)state;
    run_ranks(3, round_each_hop, NULL);
}

static void average(struct rank *me)
{
    int integers[2] = { me->rank == 0 ? -5 : 0, 7 };
    float floats[2] = { (float)me->rank, 0.3f };
    const int *ints;
    const float *sums;

    start_both(me);
    fill(me, integers, sizeof(integers));
    OK(ncclAllReduce((void *)me->from, (void *)me->to, 2, ncclInt32, ncclAvg, me->comm,
                     me->stream));
    ints = result(me, sizeof(integers));
    HOLDS(ints[0] == -2 && ints[1] == 7);
    fill(me, floats, sizeof(floats));
    OK(ncclAllReduce((void *)me->from, (void *)me->to, 2, ncclFloat32, ncclAvg, me->comm,
                     me->stream));
    sums = result(me, sizeof(floats));
    HOLDS(sums[0] == 0.5f && sums[1] == 0.3f * 0.5f + 0.3f * 0.5f);
    end_comm(me);
}

/* NCCL User Guide, "ncclRedOp_t". */
static void averages_divide_integers_last_and_floats_first(void **state)
{
    (void)state;
    run_ranks(2, average, NULL);
}

/* Checks the result of each call, in place and out of place, on more data than a slot holds. */
static void move_all(struct rank *me)
{
    size_t count = BUFFER / sizeof(int) / MAX_RANKS, all = count * (size_t)me->size;
    int *values = malloc(all * sizeof(int));
    const int *found;
    CUdeviceptr own;

    start_both(me);
    for (size_t i = 0; i < all; i++)
        values[i] = (int)i * (me->rank + 1);
    fill(me, values, all * sizeof(int));
    OK(ncclBroadcast((void *)me->from, (void *)me->to, count, ncclInt32, 1, me->comm, me->stream));
    found = result(me, count * sizeof(int));
    for (size_t i = 0; i < count; i++)
        HOLDS(found[i] == 2 * (int)i);
    OK(cuMemsetD8Async(me->to, 0, count * sizeof(int), me->stream));
    OK(ncclReduce((void *)me->from, (void *)me->to, count, ncclInt32, ncclSum, 2, me->comm,
                  me->stream));
    found = result(me, count * sizeof(int));
    for (size_t i = 0; i < count; i++)
        HOLDS(found[i] == (me->rank == 2 ? 6 * (int)i : 0));
    OK(ncclAllGather((void *)me->from, (void *)me->to, count, ncclInt32, me->comm, me->stream));
    found = result(me, all * sizeof(int));
    for (size_t i = 0; i < all; i++)
        HOLDS(found[i] == (int)(i % count) * ((int)(i / count) + 1));
    own = me->from + (CUdeviceptr)me->rank * count * sizeof(int); /* in place */
    OK(ncclReduceScatter((void *)me->from, (void *)own, count, ncclInt32, ncclSum, me->comm,
                         me->stream));
    OK(cuMemcpyDtoDAsync_v2(me->to, own, count * sizeof(int), me->stream));
    found = result(me, count * sizeof(int));
    for (size_t i = 0; i < count; i++)
        HOLDS(found[i] == 6 * (int)((size_t)me->rank * count + i));
    end_comm(me);
    free(values);
}

/* NCCL User Guide, "Collective Communication Functions", "In-place Operations". */
static void every_collective_gives_the_right_result(void **state)
{
    (void)state;
    run_ranks(3, move_all, NULL);
}

/* Keeps the stream busy until the caller sets the returned word to 1. */
static _Atomic uint32_t *make_busy(struct rank *me)
{
    _Atomic uint32_t *word = (_Atomic uint32_t *)(void *)(me->host + BUFFER / 2);

    *word = 0;
    OK(cuStreamWaitValue32_v2(me->stream, (CUdeviceptr)(uintptr_t)word, 1, 0));
    return word;
}

/* Rank 1's stream is busy until the test frees it. Until then no rank's all-reduce ends. */
static void follow_streams(struct rank *me)
{
    _Atomic uint32_t *word = NULL;
    int one = 1;
    CUstream after;
    CUevent event;

    start_both(me);
    OK(cuStreamCreate(&after, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    fill(me, &one, sizeof(one));
    if (me->rank == 1)
        word = make_busy(me);
    OK(ncclAllReduce((void *)me->from, (void *)me->to, 1, ncclInt32, ncclSum, me->comm,
                     me->stream));
    OK(cuEventRecord(event, me->stream));
    OK(cuStreamWaitEvent(after, event, 0));
    OK(cuMemcpyDtoHAsync_v2(me->host, me->to, sizeof(int), after));
    meet(me);
    IS(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    IS(CUDA_ERROR_NOT_READY, cuStreamQuery(after));
    meet(me);
    if (word)
        *word = 1;
    OK(cuStreamSynchronize(after));
    HOLDS(*(int *)(void *)me->host == 2);
    OK(cuEventDestroy_v2(event));
    OK(cuStreamDestroy_v2(after));
    end_comm(me);
}

/* NCCL User Guide, "CUDA Stream Semantics". */
static void collectives_run_in_stream_order_when_all_have_launched(void **state)
{
    (void)state;
    run_ranks(2, follow_streams, NULL);
}

/* Of a context that the program creates on the same device. */
static void *memory_elsewhere(struct rank *me)
{
    CUcontext other;
    CUdeviceptr ptr;
    CUdevice device;

    OK(cuCtxGetDevice(&device));
    OK(cuCtxCreate_v2(&other, 0, device));
    OK(cuMemAlloc_v2(&ptr, 16));
    OK(cuCtxPopCurrent_v2(&other));
    return (void *)ptr;
}

static void fault(struct rank *me, bool on_host)
{
    static int host[4];
    _Atomic uint32_t *word;
    void *from;

    start_both(me);
    if (me->rank == 0) {
        from = on_host ? host : memory_elsewhere(me);
        word = make_busy(me);
        OK(ncclAllReduce(from, (void *)me->to, 4, ncclInt32, ncclSum, me->comm, me->stream));
        *word = 1;
        IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(me->stream));
        IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc_v2(&me->to, 4));
        IS(ncclUnhandledCudaError, ncclAllReduce((void *)me->from, (void *)me->to, 4, ncclInt32,
                                                 ncclSum, me->comm, me->stream));
    } else {
        OK(ncclAllReduce((void *)me->from, (void *)me->to, 4, ncclInt32, ncclSum, me->comm,
                         me->stream));
    }
    OK(ncclCommAbort(me->comm));
}

static void fault_on_host(struct rank *me)
{
    fault(me, true);
}

static void fault_elsewhere(struct rank *me)
{
    fault(me, false);
}

/* NCCL User Guide, "Data Pointers". */
static void touching_host_memory_loses_the_context(void **state)
{
    (void)state;
    run_ranks(2, fault_on_host, NULL);
}

static void touching_memory_of_another_context_loses_the_context(void **state)
{
    (void)state;
    run_ranks(2, fault_elsewhere, NULL);
}

/* Ranks 0 and 1 share a device, rank 2 has its own. */
static void share_a_device(struct rank *me)
{
    start_device(me, me->rank / 2);
    if (me->rank == 0)
        OK(ncclGetUniqueId(&me->lab->id));
    meet(me);
    IS(me->rank < 2 ? ncclInvalidUsage : ncclRemoteError,
       ncclCommInitRank(&me->comm, me->size, me->lab->id, me->rank));
    if (me->rank < 2)
        HOLDS(strstr(ncclGetLastError(NULL), "Duplicate GPU detected : rank"));
    OK(ncclCommAbort(me->comm));
    meet(me);
    setenv("NCCL_HOSTID", me->rank ? "a" : "b", 1);
    start_comm(me);
    end_comm(me);
}

/* NCCL User Guide, "Creating a Communicator"; init.cc. */
static void two_ranks_on_one_device_need_different_host_ids(void **state)
{
    (void)state;
    run_ranks(3, share_a_device, NULL);
}

static void be_alone(struct rank *me)
{
    int two[2] = { 3, 4 };

    start_both(me);
    fill(me, two, sizeof(two));
    OK(ncclGroupStart());
    OK(ncclAllReduce((void *)me->from, (void *)me->to, 2, ncclInt32, ncclAvg, me->comm,
                     me->stream));
    HOLDS(((const int *)result(me, sizeof(two)))[1] == 4);
    OK(ncclGroupEnd());
    end_comm(me);
}

/* NCCL, enqueue.cc. */
static void one_rank_needs_no_group(void **state)
{
    (void)state;
    run_ranks(1, be_alone, NULL);
}

static void ask_wrongly(struct rank *me)
{
    ncclConfig_t config = DT_NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;

    start_device(me, 0);
    IS(ncclInvalidArgument, ncclGetUniqueId(NULL));
    OK(ncclGetUniqueId(&id));
    IS(ncclInvalidArgument, ncclCommInitRank(&me->comm, 2, id, 2));
    HOLDS(!me->comm);
    config.blocking = 2;
    IS(ncclInvalidArgument, ncclCommInitRankConfig(&me->comm, 1, id, 0, &config));
    config.blocking = 1;
    config.magic = 0;
    IS(ncclInvalidArgument, ncclCommInitRankConfig(&me->comm, 1, id, 0, &config));
    config.magic = DT_NCCL_CONFIG_MAGIC;
    OK(ncclCommInitRankConfig(&me->comm, 1, id, 0, &config));
    IS(ncclInvalidArgument, ncclBroadcast(NULL, NULL, 1, ncclInt8, 1, me->comm, NULL));
    IS(ncclInvalidArgument, ncclAllGather(NULL, NULL, 1, (ncclDataType_t)12, me->comm, NULL));
    IS(ncclInvalidArgument,
       ncclAllReduce(NULL, NULL, 1, ncclInt8, (ncclRedOp_t)99, me->comm, NULL));
    OK(ncclAllReduce(NULL, NULL, 0, ncclInt8, ncclSum, me->comm, NULL));
    IS(ncclInvalidUsage, ncclGroupEnd());
    end_comm(me);
}

/* NCCL User Guide, "ncclResult_t". */
static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    run_ranks(1, ask_wrongly, NULL);
}

static void attributes_and_version_are_told(struct rank *me)
{
    int value;

    start_device(me, me->rank);
    start_comm(me);
    OK(ncclCommCount(me->comm, &value));
    HOLDS(value == 2);
    OK(ncclCommUserRank(me->comm, &value));
    HOLDS(value == me->rank);
    OK(ncclCommCuDevice(me->comm, &value));
    HOLDS(value == me->rank);
    OK(ncclGetVersion(&value));
    HOLDS(value == 22809);
    end_comm(me);
    setenv("STANDIN_NCCL_VERSION", "22304", 1);
    OK(ncclGetVersion(&value));
    HOLDS(value == 22304);
    start_comm(me);
    IS(ncclInvalidArgument, ncclAllReduce(NULL, NULL, 1, ncclFloat8e4m3, ncclSum, me->comm, NULL));
    end_comm(me);
    setenv("STANDIN_NCCL_VERSION", me->rank ? "22304" : "22809", 1);
    if (me->rank == 0)
        OK(ncclGetUniqueId(&me->lab->id));
    meet(me);
    IS(ncclInvalidUsage, ncclCommInitRank(&me->comm, 2, me->lab->id, me->rank));
    OK(ncclCommAbort(me->comm));
}

static void versions_must_agree(void **state)
{
    (void)state;
    run_ranks(2, attributes_and_version_are_told, NULL);
}

static void scale(struct rank *me)
{
    float scalar = (float)(me->rank + 2), values[1] = { 10 }, again = 3;
    ncclRedOp_t op, device;

    start_both(me);
    OK(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, me->comm));
    scalar = 99;
    fill(me, &again, sizeof(again));
    OK(cuMemcpyDtoDAsync_v2(me->from + 64, me->from, sizeof(again), me->stream));
    OK(ncclRedOpCreatePreMulSum(&device, (void *)(me->from + 64), ncclFloat32, ncclScalarDevice,
                                me->comm));
    fill(me, values, sizeof(values));
    OK(ncclAllReduce((void *)me->from, (void *)me->to, 1, ncclFloat32, op, me->comm, me->stream));
    HOLDS(*(const float *)result(me, sizeof(values)) == 50);
    OK(ncclAllReduce((void *)me->from, (void *)me->to, 1, ncclFloat32, device, me->comm,
                     me->stream));
    OK(ncclRedOpDestroy(device, me->comm));
    HOLDS(*(const float *)result(me, sizeof(values)) == 60);
    IS(ncclInvalidArgument,
       ncclAllReduce((void *)me->from, (void *)me->to, 1, ncclInt32, op, me->comm, me->stream));
    IS(ncclInvalidArgument, ncclRedOpDestroy(device, me->comm));
    IS(ncclInvalidArgument, ncclRedOpDestroy(ncclSum, me->comm));
    OK(ncclRedOpDestroy(op, me->comm));
    end_comm(me);
}

/* NCCL User Guide, "User Defined Reduction Operators". */
static void a_custom_operator_scales_before_it_sums(void **state)
{
    (void)state;
    run_ranks(2, scale, NULL);
}

/* Each rank sends two messages to the next rank and one to itself. */
static void pass_on(struct rank *me)
{
    int next = (me->rank + 1) % me->size, previous = (me->rank + me->size - 1) % me->size;
    size_t count = 100000;
    int *values = calloc(count, sizeof(int));
    const int *found;

    start_both(me);
    for (size_t i = 0; i < count; i++)
        values[i] = (int)i + me->rank;
    fill(me, values, count * sizeof(int));
    OK(ncclGroupStart());
    OK(ncclSend((void *)me->from, count, ncclInt32, next, me->comm, me->stream));
    OK(ncclSend((void *)(me->from + 4), 1, ncclInt32, next, me->comm, me->stream));
    OK(ncclSend((void *)me->from, 1, ncclInt32, me->rank, me->comm, me->stream));
    OK(ncclSend(NULL, 0, ncclInt32, next, me->comm, me->stream));
    OK(ncclRecv((void *)me->to, count, ncclInt32, previous, me->comm, me->stream));
    OK(ncclRecv((void *)(me->to + count * 4), 1, ncclInt32, previous, me->comm, me->stream));
    OK(ncclRecv((void *)(me->to + count * 4 + 4), 1, ncclInt32, me->rank, me->comm, me->stream));
    OK(ncclRecv(NULL, 0, ncclInt32, previous, me->comm, me->stream));
    OK(ncclGroupEnd());
    found = result(me, (count + 2) * sizeof(int));
    for (size_t i = 0; i < count; i++)
        HOLDS(found[i] == (int)i + previous);
    HOLDS(found[count] == 1 + previous && found[count + 1] == me->rank);
    end_comm(me);
    free(values);
}

/* NCCL User Guide, "Point-to-point communication". */
static void messages_of_a_group_proceed_side_by_side(void **state)
{
    (void)state;
    run_ranks(3, pass_on, NULL);
}

static void receive_late(struct rank *me)
{
    int one = 1;

    start_both(me);
    fill(me, &one, sizeof(one));
    if (me->rank == 0) {
        OK(ncclSend((void *)me->from, 1, ncclInt32, 1, me->comm, me->stream));
        IS(CUDA_ERROR_NOT_READY, cuStreamQuery(me->stream));
        meet(me);
    } else {
        meet(me);
        OK(ncclRecv((void *)me->to, 1, ncclInt32, 0, me->comm, me->stream));
        HOLDS(*(const int *)result(me, sizeof(one)) == 1);
    }
    end_comm(me);
}

static void a_send_ends_when_it_is_received(void **state)
{
    (void)state;
    run_ranks(2, receive_late, NULL);
}

/* Two streams in one group: the kernel waits for both, and both wait for it. */
static void join_two_streams(struct rank *me)
{
    _Atomic uint32_t *word;
    int one = 1;
    CUstream other;

    start_both(me);
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    fill(me, &one, sizeof(one));
    word = make_busy(me);
    OK(ncclGroupStart());
    OK(ncclAllReduce((void *)me->from, (void *)me->to, 1, ncclInt32, ncclSum, me->comm, other));
    OK(ncclAllReduce((void *)me->from, (void *)(me->to + 4), 1, ncclInt32, ncclSum, me->comm,
                     me->stream));
    OK(cuStreamQuery(other));
    OK(ncclGroupEnd());
    IS(CUDA_ERROR_NOT_READY, cuStreamQuery(other));
    *word = 1;
    OK(cuStreamSynchronize(other));
    HOLDS(((const int *)result(me, 8))[0] == 2 && ((const int *)result(me, 8))[1] == 2);
    OK(cuStreamDestroy_v2(other));
    end_comm(me);
}

/* NCCL User Guide, "Group Calls", "CUDA Stream Semantics". */
static void a_group_is_one_kernel_launched_at_its_end(void **state)
{
    (void)state;
    run_ranks(2, join_two_streams, NULL);
}

static void capture(struct rank *me)
{
    int one = 1;
    CUgraph graph;

    start_both(me);
    fill(me, &one, sizeof(one));
    OK(cuStreamBeginCapture_v2(me->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    if (me->rank == 0)
        OK(ncclAllReduce((void *)me->from, (void *)me->to, 1, ncclInt32, ncclSum, me->comm,
                         me->stream));
    OK(cuStreamEndCapture(me->stream, &graph));
    OK(cuGraphDestroy(graph));
    OK(ncclAllReduce((void *)me->from, (void *)me->to, 1, ncclInt32, ncclSum, me->comm,
                     me->stream));
    HOLDS(*(const int *)result(me, sizeof(one)) == 2);
    end_comm(me);
}

/* NCCL User Guide, "Using NCCL with CUDA Graphs". */
static void captured_calls_do_not_run(void **state)
{
    (void)state;
    run_ranks(2, capture, NULL);
}

static ncclResult_t reduce(struct rank *me)
{
    return ncclAllReduce((void *)me->from, (void *)me->to, 1, ncclFloat32, ncclSum, me->comm,
                         me->stream);
}

/* Ranks 0 and 2 are on one host, rank 1 on another. Members on other hosts learn that the victim
 * has ended. Nothing tells a member on its own host, which waits until all others know. */
static void lose(struct rank *me, int victim)
{
    int told = victim == 1 ? 2 : 1;

    start_both(me);
    OK(reduce(me)); /* connects all, so that the next one does not wait for the victim */
    OK(cuStreamSynchronize(me->stream));
    meet(me);
    if (me->rank == victim)
        raise(SIGKILL);
    OK(reduce(me));
    if (me->rank % 2 != victim % 2) {
        await_state(me, me->comm, ncclRemoteError);
        atomic_fetch_add(&me->lab->number, 1);
    }
    while (atomic_load(&me->lab->number) < told)
        usleep(1000);
    OK(ncclCommAbort(me->comm));
    OK(cuStreamSynchronize(me->stream));
}

static void lose_a_member(struct rank *me)
{
    lose(me, 1);
}

static void lose_a_neighbour_of_the_founder(struct rank *me)
{
    lose(me, 2);
}

static void lose_the_founder(struct rank *me)
{
    lose(me, 0);
}

/* NCCL User Guide, "Fault Tolerance". */
static void the_end_of_a_member_is_noticed_on_other_hosts(void **state)
{
    int ends[3];

    (void)state;
    run_ranks(3, lose_a_member, ends);
    assert_true(ends[0] == 0 && ends[1] == SIGKILL && ends[2] == 0);
    run_ranks(3, lose_a_neighbour_of_the_founder, ends);
    assert_true(ends[0] == 0 && ends[1] == 0 && ends[2] == SIGKILL);
    run_ranks(3, lose_the_founder, ends);
    assert_true(ends[0] == SIGKILL && ends[1] == 0 && ends[2] == 0);
}

/* Splits off a communicator of ranks 0 and 2 and one of rank 1, then one of all ranks in reverse
 * order. */
static void split_up(struct rank *me)
{
    ncclConfig_t blocks = DT_NCCL_CONFIG_INITIALIZER;
    ncclComm_t half, turned;
    int one = 1 << me->rank, value;

    start_both(me);
    fill(me, &one, sizeof(one));
    OK(ncclCommSplit(me->comm, me->rank % 2, 0, &half, &blocks));
    OK(ncclCommSplit(me->comm, 0, -me->rank, &turned, NULL));
    OK(ncclCommUserRank(turned, &value));
    HOLDS(value == 2 - me->rank);
    OK(ncclAllReduce((void *)me->from, (void *)me->to, 1, ncclInt32, ncclSum, half, me->stream));
    HOLDS(*(const int *)result(me, sizeof(one)) == (me->rank % 2 ? 2 : 5));
    OK(ncclAllReduce((void *)me->from, (void *)me->to, 1, ncclInt32, ncclSum, turned, me->stream));
    HOLDS(*(const int *)result(me, sizeof(one)) == 7);
    OK(ncclCommDestroy(half));
    OK(ncclCommDestroy(turned));
    end_comm(me);
}

/* NCCL User Guide, "Creating more communicators". */
static void a_communicator_can_be_split(void **state)
{
    (void)state;
    run_ranks(3, split_up, NULL);
}

static size_t free_memory(struct rank *me)
{
    size_t unused, total;

    OK(cuMemGetInfo_v2(&unused, &total));
    return unused;
}

/* Aborts the new communicator in a group. Returns whether it exists until the group ends. */
static bool lasts_until_the_group_ends(struct rank *me)
{
    size_t before = free_memory(me), inside;

    start_comm(me);
    OK(ncclGroupStart());
    OK(ncclCommAbort(me->comm));
    inside = free_memory(me);
    OK(ncclGroupEnd());
    HOLDS(free_memory(me) == before);
    return inside < before;
}

static void abort_in_groups(struct rank *me)
{
    start_device(me, me->rank);
    HOLDS(lasts_until_the_group_ends(me));
    setenv("STANDIN_NCCL_VERSION", "22203", 1);
    HOLDS(lasts_until_the_group_ends(me));
    setenv("STANDIN_NCCL_VERSION", "22105", 1);
    HOLDS(!lasts_until_the_group_ends(me));
}

/* NCCL User Guide, "Group Calls". */
static void an_abort_frees_when_its_group_ends(void **state)
{
    (void)state;
    run_ranks(2, abort_in_groups, NULL);
}

static void *reduce_beside(void *arg)
{
    struct rank *me = arg;

    OK(cuCtxSetCurrent(me->context));
    me->reduced = reduce(me);
    return NULL;
}

/* On rank 0: what its first all-reduce returns, which rank 1 does not join. */
static ncclResult_t reduce_until_an_abort(struct rank *me)
{
    pthread_t thread;

    HOLDS(pthread_create(&thread, NULL, reduce_beside, me) == 0);
    OK(ncclGroupStart());
    OK(ncclCommAbort(me->comm));
    pthread_join(thread, NULL);
    OK(ncclGroupEnd());
    return me->reduced;
}

static void connect_late(struct rank *me)
{
    start_both(me);
    if (me->rank == 0)
        IS(ncclInternalError, reduce_until_an_abort(me));
    else
        OK(ncclCommAbort(me->comm));
}

static void connect_at_once(struct rank *me)
{
    setenv("STANDIN_NCCL_VERSION", "22105", 1);
    start_both(me);
    if (me->rank == 0)
        OK(reduce(me));
    OK(ncclCommAbort(me->comm));
}

static void a_first_collective_that_blocks_waits_for_all_until_an_abort(void **state)
{
    (void)state;
    run_ranks(2, connect_late, NULL);
    run_ranks(2, connect_at_once, NULL);
}

/* Starts a communicator and ends while NCCL's own thread still connects it. */
static void *begin_beside(void *arg)
{
    struct dt_nccl_config config = DT_NCCL_CONFIG_INITIALIZER;
    struct rank *me = arg;

    OK(cuCtxSetCurrent(me->context));
    config.blocking = 0;
    IS(ncclInProgress,
       ncclCommInitRankConfig(&me->comm, me->size, me->lab->id, me->rank, (ncclConfig_t *)&config));
    return NULL;
}

static void begin_in_a_thread(struct rank *me)
{
    pthread_t thread;

    if (me->rank == 0)
        OK(ncclGetUniqueId(&me->lab->id));
    meet(me);
    if (me->rank != 0)
        return;
    start_device(me, me->rank);
    HOLDS(pthread_create(&thread, NULL, begin_beside, me) == 0);
    pthread_join(thread, NULL);
    OK(ncclCommAbort(me->comm));
}

static void begin_with_an_old_library(struct rank *me)
{
    setenv("STANDIN_NCCL_VERSION", "22606", 1);
    begin_in_a_thread(me);
}

static void before_2_27_a_caller_that_does_not_block_must_stay(void **state)
{
    int ends[2];

    (void)state;
    run_ranks(2, begin_with_an_old_library, ends);
    assert_int_equal(ends[0], SIGABRT);
    run_ranks(2, begin_in_a_thread, NULL);
}

/* Tests of what members do together run on one host and on several. */
static int on_one_host(void **state)
{
    (void)state;
    lab_hosts = 1;
    return 0;
}

static int on_two_hosts(void **state)
{
    (void)state;
    lab_hosts = 2;
    return 0;
}

#define ONE_HOST(f)                                                                                \
    {                                                                                              \
#f "_on_one_host", f, on_one_host, NULL, NULL                                              \
    }
#define TWO_HOSTS(f)                                                                               \
    {                                                                                              \
#f "_on_two_hosts", f, on_two_hosts, NULL, NULL                                            \
    }
#define BOTH(f) ONE_HOST(f), TWO_HOSTS(f)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        BOTH(all_types_and_operations_are_reduced),
        BOTH(sums_are_rounded_at_each_hop),
        BOTH(averages_divide_integers_last_and_floats_first),
        BOTH(every_collective_gives_the_right_result),
        BOTH(collectives_run_in_stream_order_when_all_have_launched),
        BOTH(a_custom_operator_scales_before_it_sums),
        BOTH(messages_of_a_group_proceed_side_by_side),
        BOTH(a_send_ends_when_it_is_received),
        BOTH(a_group_is_one_kernel_launched_at_its_end),
        BOTH(versions_must_agree),
        BOTH(a_communicator_can_be_split),
        ONE_HOST(small_types_round_like_nvidias),
        ONE_HOST(captured_calls_do_not_run),
        ONE_HOST(touching_host_memory_loses_the_context),
        ONE_HOST(touching_memory_of_another_context_loses_the_context),
        ONE_HOST(two_ranks_on_one_device_need_different_host_ids),
        ONE_HOST(one_rank_needs_no_group),
        ONE_HOST(wrong_arguments_are_refused),
        ONE_HOST(an_abort_frees_when_its_group_ends),
        ONE_HOST(a_first_collective_that_blocks_waits_for_all_until_an_abort),
        ONE_HOST(before_2_27_a_caller_that_does_not_block_must_stay),
        TWO_HOSTS(the_end_of_a_member_is_noticed_on_other_hosts),
    };

    setenv("STANDIN_DEVICES", "4", 1);
    alarm(600); /* a watchdog */
    return cmocka_run_group_tests_name("standin_nccl", tests, NULL, NULL);
}
