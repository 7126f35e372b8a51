/* The NCCL backend against a CUDA and an NCCL of our own, which do what the test at hand wants.
 * They define only what the backend may call: one that waits inside CUDA would not link. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/nccl/comm.h"
#include "tests/unit/checks.h"

#define RANK 3
#define SIZE 4

const struct dt_device_ops *dti_device_plugin(void);

static struct fake {
    /* CUDA */
    cudaError_t count_error;
    int devices;
    cudaError_t stream; /* once busy polls are over */
    int busy;           /* polls of the stream that say: not ready; -1: all of them */
    enum cudaMemoryType memory;
    int memory_device;
    int streams, allocations;
    /* NCCL */
    ncclResult_t id, init, started, state;
    int in_progress; /* polls of the communicator that say so; -1: all of them */
    int collectives;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root;
    atomic_int aborted, destroyed;
    /* the host */
    int abort_after; /* looks at the abort word until it is set; 0: never */
    int culprit;
    int32_t id_ok;
    dt_result_t broadcast;
    dt_result_t result;
    char text[512];
} fake;

static _Thread_local int current_device;
static sem_t hang_over, hang_left;

/* --- CUDA --- */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = fake.devices;
    return fake.count_error;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current_device;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    current_device = device;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *ptr)
{
    memset(a, 0, sizeof *a);
    a->type = ptr ? fake.memory : cudaMemoryTypeHost;
    a->device = fake.memory_device;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    assert_int_equal(flags, cudaStreamDefault); /* it must keep order with the default stream */
    fake.streams++;
    *stream = (cudaStream_t)&fake;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    assert_ptr_equal(stream, &fake);
    fake.streams--;
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    assert_ptr_equal(stream, &fake);
    if (fake.busy == 0)
        return fake.stream;
    if (fake.busy > 0)
        fake.busy--;
    return cudaErrorNotReady;
}

cudaError_t cudaMalloc(void **ptr, size_t size)
{
    fake.allocations++;
    *ptr = malloc(size);
    return *ptr ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *ptr)
{
    fake.allocations -= ptr != NULL;
    free(ptr);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *ptr, int value, size_t size, cudaStream_t stream)
{
    (void)stream;
    memset(ptr, value, size);
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorNoDevice ? "no CUDA-capable device is detected" : "some CUDA error";
}

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorNoDevice ? "cudaErrorNoDevice" : "cudaErrorOther";
}

/* --- NCCL --- */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    memset(id, 7, sizeof *id);
    return fake.id;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int n, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    (void)id;
    assert_int_equal(n, SIZE);
    assert_in_range(rank, 0, SIZE - 1);
    assert_int_equal(config->blocking, 0);
    *comm = (ncclComm_t)&fake;
    return fake.init;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    assert_ptr_equal(comm, &fake);
    *state = fake.in_progress == 0 ? fake.state : ncclInProgress;
    if (fake.in_progress > 0)
        fake.in_progress--;
    return ncclSuccess;
}

static ncclResult_t collective(size_t count, ncclDataType_t type, ncclComm_t comm,
                               cudaStream_t stream)
{
    assert_ptr_equal(comm, &fake);
    assert_ptr_equal(stream, &fake);
    fake.collectives++;
    fake.count = count;
    fake.type = type;
    return fake.started;
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    (void)in;
    (void)out;
    fake.op = op;
    return collective(count, type, comm, stream);
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    assert_ptr_equal(in, out);
    fake.root = root;
    return collective(count, type, comm, stream);
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    (void)comm;
    atomic_fetch_add(&fake.aborted, 1);
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    (void)comm;
    atomic_fetch_add(&fake.destroyed, 1);
    return ncclSuccess;
}

static ncclResult_t hanging_end(ncclComm_t comm)
{
    (void)comm;
    sem_wait(&hang_over);
    sem_post(&hang_left);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclSystemError ? "unhandled system error" : "some NCCL error";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    assert_ptr_equal(comm, &fake);
    return "Connect to 192.0.2.1 failed";
}

/* --- the host's side --- */

static dt_result_t host_broadcast(void *ctx, void *buf, size_t bytes, int root)
{
    (void)ctx;
    (void)bytes;
    assert_int_equal(root, 0);
    if (fake.id_ok >= 0)
        memcpy(buf, &fake.id_ok, sizeof fake.id_ok); /* as rank 0 sent it */
    else
        memcpy(&fake.id_ok, buf, sizeof fake.id_ok);
    return fake.broadcast;
}

static dt_result_t host_min(void *ctx, int32_t *value)
{
    (void)ctx;
    (void)value;
    return DT_OK;
}

static bool host_aborted(void *ctx, int *culprit)
{
    (void)ctx;
    *culprit = fake.culprit;
    return fake.abort_after > 0 && --fake.abort_after == 0;
}

static dt_result_t host_fail(void *ctx, dt_result_t result, const char *text)
{
    (void)ctx;
    snprintf(fake.text, sizeof fake.text, "%s", text);
    return fake.result = result;
}

static const struct dt_device_host host = {
    .rank = RANK,
    .size = SIZE,
    .broadcast = host_broadcast,
    .min = host_min,
    .aborted = host_aborted,
    .fail = host_fail,
};

static int all_is_well(void **state)
{
    (void)state;
    unsetenv("NCCL_COMM_BLOCKING");
    unsetenv("DTRUN_NCCL_INIT_TIMEOUT");
    memset(&fake, 0, sizeof fake);
    fake.devices = 1;
    fake.memory = cudaMemoryTypeDevice;
    fake.init = ncclInProgress;
    fake.in_progress = 3;
    fake.id_ok = 1;
    return 0;
}

static void assert_nothing_left(void)
{
    assert_int_equal(fake.streams, 0);
    assert_int_equal(fake.allocations, 0);
}

static void *opened(void)
{
    void *state = NULL;

    assert_int_equal(dti_device_plugin()->open(&host, 0, &state), DT_OK);
    assert_non_null(state);
    return state;
}

/* --- tests --- */

static void ranks_connect_and_part(void **state)
{
    void *s = opened();

    (void)state;
    dti_device_plugin()->close(s);
    assert_int_equal(fake.destroyed, 1);
    assert_int_equal(fake.aborted, 0);
    assert_nothing_left();
}

static const struct connect_case {
    const char *name;
    struct fake fake;
    dt_result_t result;
    const char *text;
    int aborted;
} connect_cases[] = {
    { "network",
      { .state = ncclSystemError },
      DT_ERR_NCCL,
      "rank 3: ncclCommInitRankConfig failed: unhandled system error; NCCL's last error: Connect "
      "to "
      "192.0.2.1 failed; NCCL_DEBUG=INFO makes NCCL tell more",
      1 },
    { "refused",
      { .init = ncclInvalidUsage },
      DT_ERR_NCCL,
      "rank 3: ncclCommInitRankConfig failed: some NCCL error",
      1 },
    { "never",
      { .in_progress = -1 },
      DT_ERR_TIMEOUT,
      "rank 3: NCCL has not connected the 4 ranks within 1 s (DTRUN_NCCL_INIT_TIMEOUT)",
      1 },
    { "peer dies",
      { .in_progress = -1, .abort_after = 5, .culprit = 2 },
      DT_ERR_PEER,
      "rank 3: ncclCommInitRankConfig was ended: rank 2 was lost",
      1 },
    { "rank 0 has no id",
      { .id_ok = 0 },
      DT_ERR_NCCL,
      "rank 3: rank 0 could not make an NCCL id",
      0 },
    { "host's broadcast", { .broadcast = DT_ERR_IO }, DT_ERR_IO, "", 0 },
};

static void a_failing_connection_says_why(void **state)
{
    for (size_t i = 0; i < sizeof connect_cases / sizeof *connect_cases; i++) {
        const struct connect_case *c = &connect_cases[i];
        void *s = NULL;

        all_is_well(state);
        fake.state = c->fake.state;
        fake.init = c->fake.init ? c->fake.init : fake.init;
        fake.in_progress = c->fake.in_progress ? c->fake.in_progress : fake.in_progress;
        fake.abort_after = c->fake.abort_after;
        fake.culprit = c->fake.culprit;
        fake.broadcast = c->fake.broadcast;
        fake.id_ok = strcmp(c->name, "rank 0 has no id") != 0;
        setenv("DTRUN_NCCL_INIT_TIMEOUT", "1", 1);
        print_message("case: %s\n", c->name);
        assert_int_equal(dti_device_plugin()->open(&host, 0, &s), c->result);
        assert_null(s);
        assert_int_equal(strncmp(fake.text, c->text, strlen(c->text)), 0);
        assert_int_equal(fake.aborted, c->aborted);
        assert_int_equal(fake.destroyed, 0);
        assert_nothing_left();
    }
}

static void rank_0_tells_that_it_has_no_id(void **state)
{
    struct dt_device_host zero = host;
    struct dt_nccl *n;

    (void)state;
    zero.rank = 0;
    fake.id = ncclSystemError;
    fake.id_ok = -1;
    assert_int_equal(dt_nccl_connect(&zero, 0, 1000, &n), DT_ERR_NCCL);
    assert_int_equal(fake.id_ok, 0);
    assert_non_null(strstr(fake.text, "rank 0: ncclGetUniqueId failed"));
}

static void collectives_are_handed_to_nccl(void **state)
{
    static const struct {
        dt_dtype_t dtype;
        ncclDataType_t type;
    } types[] = { { DT_I8, ncclInt8 },     { DT_U8, ncclUint8 },      { DT_I32, ncclInt32 },
                  { DT_U32, ncclUint32 },  { DT_I64, ncclInt64 },     { DT_U64, ncclUint64 },
                  { DT_F16, ncclFloat16 }, { DT_BF16, ncclBfloat16 }, { DT_F32, ncclFloat32 },
                  { DT_F64, ncclFloat64 } };
    static const struct {
        dt_dtype_t dtype;
        dt_op_t op;
    } lacking[] = {
        { DT_I16, DT_SUM }, { DT_U16, DT_MAX }, { DT_I32, DT_BAND }, { DT_U8, DT_BXOR }
    };
    static const ncclRedOp_t ops[] = { [DT_SUM] = ncclSum,
                                       [DT_PROD] = ncclProd,
                                       [DT_MIN] = ncclMin,
                                       [DT_MAX] = ncclMax,
                                       [DT_AVG] = ncclAvg };
    const struct dt_device_ops *plugin = dti_device_plugin();
    void *s = opened();
    char buf[8];

    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (dt_op_t op = DT_SUM; op <= DT_AVG; op++) {
            fake.in_progress = 1;
            fake.busy = 3000; /* past the polls that do not nap */
            assert_int_equal(plugin->all_reduce(s, buf, buf, 17 + t, types[t].dtype, op), DT_OK);
            assert_int_equal(fake.busy, 0);
            assert_int_equal(fake.count, 17 + t);
            assert_int_equal(fake.type, types[t].type);
            assert_int_equal(fake.op, ops[op]);
        }
    }
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++)
        assert_int_equal(plugin->all_reduce(s, buf, buf, 1, lacking[i].dtype, lacking[i].op),
                         DT_ERR_UNSUPPORTED);
    assert_int_equal(plugin->broadcast(s, buf, 5, DT_I16, 2), DT_OK);
    assert_int_equal(fake.root, 2);
    assert_int_equal(fake.type, ncclUint8);
    assert_int_equal(fake.count, 10);
    assert_int_equal(plugin->barrier(s), DT_OK);
    assert_int_equal(fake.count, 1);
    plugin->close(s);
    assert_nothing_left();
}

static const struct wait_case {
    const char *name;
    struct fake fake;
    dt_result_t result;
    const char *text;
} wait_cases[] = {
    { "peer, kernel spins",
      { .busy = -1, .abort_after = 3000, .culprit = 1 },
      DT_ERR_PEER,
      "rank 3: ncclAllReduce was ended: rank 1 was lost" },
    { "peer unknown",
      { .busy = -1, .abort_after = 1, .culprit = -1 },
      DT_ERR_PEER,
      "rank 3: ncclAllReduce was ended: a rank was lost" },
    { "peer, still enqueuing",
      { .in_progress = -1, .abort_after = 9, .culprit = 0 },
      DT_ERR_PEER,
      "rank 3: ncclAllReduce was ended: rank 0 was lost" },
    { "remote error",
      { .busy = -1, .state = ncclRemoteError },
      DT_ERR_PEER,
      "rank 3: ncclAllReduce failed: some NCCL error; NCCL's last error" },
    { "network",
      { .busy = -1, .state = ncclSystemError },
      DT_ERR_NCCL,
      "rank 3: ncclAllReduce failed: unhandled system error; NCCL's last error" },
    { "refused", { .started = ncclInvalidArgument }, DT_ERR_NCCL, "rank 3: ncclAllReduce failed" },
    { "device",
      { .busy = 2, .stream = cudaErrorIllegalAddress },
      DT_ERR_CUDA,
      "rank 3: ncclAllReduce failed: some CUDA error (cudaErrorOther)" },
};

static void a_failing_wait_ends_at_once_and_for_good(void **state)
{
    const struct dt_device_ops *plugin = dti_device_plugin();
    char buf[8];

    for (size_t i = 0; i < sizeof wait_cases / sizeof *wait_cases; i++) {
        const struct wait_case *c = &wait_cases[i];
        void *s;

        all_is_well(state);
        s = opened();
        fake.busy = c->fake.busy;
        fake.abort_after = c->fake.abort_after;
        fake.culprit = c->fake.culprit;
        fake.in_progress = c->fake.in_progress;
        fake.state = c->fake.state;
        fake.started = c->fake.started;
        fake.stream = c->fake.stream;
        print_message("case: %s\n", c->name);
        assert_int_equal(plugin->all_reduce(s, buf, buf, 1, DT_F32, DT_SUM), c->result);
        assert_int_equal(strncmp(fake.text, c->text, strlen(c->text)), 0);
        assert_int_equal(fake.aborted, 1);
        assert_int_equal(fake.collectives, 1);
        assert_int_equal(plugin->barrier(s), c->result);
        assert_non_null(strstr(fake.text, "given up after an earlier failure"));
        assert_int_equal(fake.collectives, 1);
        plugin->close(s);
        assert_int_equal(fake.aborted, 1);
        assert_int_equal(fake.destroyed, 0);
        assert_nothing_left();
    }
}

static void an_end_that_hangs_is_left_alone(void **state)
{
    (void)state;
    assert_int_equal(dt_nccl_end((ncclComm_t)&fake, 0, hanging_end, 50), -1);
    sem_post(&hang_over);
    sem_wait(&hang_left);
    assert_int_equal(dt_nccl_end((ncclComm_t)&fake, 0, ncclCommAbort, 5000), 0);
    assert_int_equal(fake.aborted, 1);
}

static void what_cannot_work_is_refused_before_anyone_waits(void **state)
{
    const struct dt_device_ops *plugin = dti_device_plugin();
    int device = -1;
    char buf[8];

    assert_int_equal(plugin->probe(&host, buf, &device), DT_OK);
    assert_int_equal(device, 0);
    fake.count_error = cudaErrorNoDevice;
    assert_int_equal(plugin->probe(&host, buf, &device), DT_ERR_CUDA);
    assert_string_equal(fake.text, "rank 3: cudaGetDeviceCount failed: no CUDA-capable device is "
                                   "detected (cudaErrorNoDevice)");
    all_is_well(state);
    fake.devices = 0;
    assert_int_equal(plugin->probe(&host, buf, &device), DT_ERR_CUDA);
    all_is_well(state);
    assert_int_equal(plugin->probe(&host, NULL, &device), DT_ERR_ARG);
    setenv("NCCL_COMM_BLOCKING", "1", 1);
    assert_int_equal(plugin->probe(&host, buf, &device), DT_ERR_NCCL);
    setenv("NCCL_COMM_BLOCKING", "0", 1);
    assert_int_equal(plugin->probe(&host, buf, &device), DT_OK);
    setenv("DTRUN_NCCL_INIT_TIMEOUT", "1x", 1);
    assert_int_equal(plugin->probe(&host, buf, &device), DT_ERR_ARG);
    setenv("DTRUN_NCCL_INIT_TIMEOUT", "0", 1);
    assert_int_equal(plugin->probe(&host, buf, &device), DT_ERR_ARG);
    assert_string_equal(fake.text,
                        "rank 3: DTRUN_NCCL_INIT_TIMEOUT=0: seconds from 1 to 86400 were expected");
}

static void a_wrong_pointer_harms_nothing(void **state)
{
    const struct dt_device_ops *plugin = dti_device_plugin();
    void *s = opened();
    char buf[8];

    (void)state;
    assert_int_equal(plugin->all_reduce(s, NULL, buf, 1, DT_F32, DT_SUM), DT_ERR_ARG);
    assert_non_null(strstr(fake.text, "\"in\" is not device memory"));
    fake.memory_device = 1;
    assert_int_equal(plugin->broadcast(s, buf, 1, DT_F32, 0), DT_ERR_ARG);
    assert_non_null(strstr(fake.text, "\"buf\" is on device 1"));
    assert_int_equal(fake.collectives, 0);
    fake.memory_device = 0;
    assert_int_equal(plugin->broadcast(s, buf, 1, DT_F32, 0), DT_OK);
    plugin->close(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, all_is_well)
    static const struct CMUnitTest tests[] = {
        TEST(ranks_connect_and_part),
        CHECKS_SETUP("45", a_failing_connection_says_why, all_is_well),
        TEST(rank_0_tells_that_it_has_no_id),
        TEST(collectives_are_handed_to_nccl),
        CHECKS_SETUP("45", a_failing_wait_ends_at_once_and_for_good, all_is_well),
        CHECKS_SETUP("45", an_end_that_hangs_is_left_alone, all_is_well),
        TEST(what_cannot_work_is_refused_before_anyone_waits),
        TEST(a_wrong_pointer_harms_nothing),
    };

    alarm(300); /* a wait that does not end is a failure */
    sem_init(&hang_over, 0, 0);
    sem_init(&hang_left, 0, 0);
    return cmocka_run_group_tests_name("nccl", tests, NULL, NULL);
}
