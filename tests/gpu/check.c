#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "tests/gpu/probe.h"
#include "tests/gpu/raw.h"
#include "tests/gpu/spin.h"

enum { COUNT = 1000 };

static void fail(const char *what)
{
    printf("%s\n", what);
    fflush(stdout);
    exit(6);
}

/* Sums an array of ones over all ranks and checks the result. */
static void reduce_ones(CUdeviceptr buf, bool host)
{
    float ones[COUNT], *here = (void *)(uintptr_t)buf;

    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    if (host)
        memcpy(here, ones, sizeof ones);
    else
        DRIVE(cuMemcpyHtoD_v2(buf, ones, sizeof ones));
    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, here, COUNT, DT_F32, DT_SUM));
    if (host)
        memcpy(ones, here, sizeof ones);
    else
        DRIVE(cuMemcpyDtoH_v2(ones, buf, sizeof ones));
    if (ones[0] != (float)dt_size() || ones[COUNT - 1] != (float)dt_size())
        fail("the sum is wrong");
}

/* ---- what the machine has ---- */

void probe_found(const char *arg)
{
    int count, version;
    char name[256];
    CUdevice device;

    (void)arg;
    device_load();
    DRIVE(cuDeviceGetCount(&count));
    DRIVE(cuDriverGetVersion(&version));
    DRIVE(cuDeviceGet(&device, 0));
    DRIVE(cuDeviceGetName(name, sizeof name, device));
    printf("= %d x %s, driver for CUDA %d.%d\n", count, name, version / 1000, version % 1000 / 10);
}

static bool has(CUdevice device, CUdevice_attribute attribute)
{
    int value;

    DRIVE(cuDeviceGetAttribute(&value, attribute, device));
    return value;
}

/* Why ranks cannot share the device, or NULL. */
static const char *why_unshared(CUdevice device)
{
    char name[256];

    DRIVE(cuDeviceGetName(name, sizeof name, device));
    if (strstr(name, " MIG "))
        return "is a MIG device";
    if (!has(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
        return "has no virtual memory management";
    if (!has(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
        return "cannot export memory";
    if (!has(device, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS))
        return "has no stream memory operations";
    return NULL;
}

/* What some rows need: MiB of memory, and what device 0 can do. */
void probe_has(const char *arg)
{
    const char *why;
    CUdevice device;
    size_t bytes;

    (void)arg;
    device_load();
    DRIVE(cuDeviceGet(&device, 0));
    DRIVE(cuDeviceTotalMem_v2(&bytes, device));
    why = why_unshared(device);
    printf("= %zu%s%s%s\n", bytes >> 20,
           has(device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY) ? " managed" : "",
           why ? " unshared: " : " shared", why ? why : "");
}

/* The version of an NCCL whose CUDA runtime works with the driver. */
void probe_nccl(const char *arg)
{
    const struct dt_ncclapi *api = raw_api();
    int v = api->version;
    ncclResult_t result;

    (void)arg;
    device_use(0);
    result = api->ncclMemFree ? api->ncclMemFree(NULL) : ncclSuccess;
    if (result) {
        printf("%d.%d.%d does not start: %s\n", v / 10000, v / 100 % 100, v % 100,
               api->ncclGetLastError(NULL));
        exit(5);
    }
    printf("= %d.%d.%d\n", v / 10000, v / 100 % 100, v % 100);
}

/* ---- kinds of pointers ---- */

static CUdeviceptr of_alloc(void)
{
    return address(device_new(COUNT * sizeof(float)));
}

static CUdeviceptr of_managed(void)
{
    CUdeviceptr ptr;

    DRIVE(cuMemAllocManaged(&ptr, COUNT * sizeof(float), CU_MEM_ATTACH_GLOBAL));
    return ptr;
}

static CUdeviceptr of_host_alloc(void)
{
    void *ptr;

    DRIVE(cuMemHostAlloc(&ptr, COUNT * sizeof(float), CU_MEMHOSTALLOC_PORTABLE));
    return address(ptr);
}

static CUdeviceptr of_registered(void)
{
    size_t page = 4096;
    void *ptr = aligned_alloc(page, page);

    DRIVE(cuMemHostRegister_v2(ptr, page, 0));
    return address(ptr);
}

/* Memory like that of PyTorch's expandable segments and of ncclMemAlloc. */
static CUdeviceptr of_create(void)
{
    CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
    CUmemAccessDesc access = { .location = prop.location,
                               .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUmemGenericAllocationHandle handle;
    CUdeviceptr ptr;
    size_t size;

    DRIVE(cuMemGetAllocationGranularity(&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    DRIVE(cuMemCreate(&handle, size, &prop, 0));
    DRIVE(cuMemAddressReserve(&ptr, size, 0, 0, 0));
    DRIVE(cuMemMap(ptr, size, 0, handle, 0));
    DRIVE(cuMemSetAccess(ptr, size, &access, 1));
    return ptr;
}

/* Memory like that of PyTorch's backend cudaMallocAsync. */
static CUdeviceptr of_pool(void)
{
    CUdeviceptr ptr;

    DRIVE(cuMemAllocAsync(&ptr, COUNT * sizeof(float), CU_STREAM_LEGACY));
    return ptr;
}

/* Leaves out the kinds that the device does not have. */
void probe_kinds(const char *arg)
{
    static const struct {
        const char *name;
        CUdeviceptr (*make)(void);
        bool host;
        CUdevice_attribute attribute;
    } kinds[] = {
        { "cuMemAlloc", of_alloc, false, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING },
        { "cuMemAllocAsync", of_pool, false, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED },
        { "cuMemAllocManaged", of_managed, true, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY },
        { "cuMemHostAlloc", of_host_alloc, true, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING },
        { "cuMemHostRegister", of_registered, true, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING },
        { "cuMemCreate", of_create, false,
          CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED },
    };
    enum { KINDS = sizeof kinds / sizeof *kinds };
    CUdevice device;
    int n = 0;

    (void)arg;
    device_use(0);
    DRIVE(cuCtxGetDevice(&device));
    for (int i = 0; i < KINDS; i++) {
        if (!has(device, kinds[i].attribute))
            continue;
        printf("%s\n", kinds[i].name); /* the last one is the one that failed */
        fflush(stdout);
        reduce_ones(kinds[i].make(), kinds[i].host);
        n++;
    }
    printf("= %d of %d\n", n, KINDS);
}

/* ---- contexts ---- */

/* In a thread without a context. */
static void *reduce_elsewhere(void *buf)
{
    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, COUNT, DT_F32, DT_SUM));
    return NULL;
}

/* The number of devices that have a primary context in this process. */
static int primary_contexts(void)
{
    int devices, active = 0, all = 0;
    CUdevice device;
    unsigned flags;

    DRIVE(cuDeviceGetCount(&devices));
    for (int i = 0; i < devices; i++) {
        DRIVE(cuDeviceGet(&device, i));
        DRIVE(cuDevicePrimaryCtxGetState(device, &flags, &active));
        all += active;
    }
    return all;
}

/* The last device that this rank sees and no other rank uses. Code that ignores which device is
 * current would use the first. */
static int own_device(void)
{
    int devices;

    DRIVE(cuDeviceGetCount(&devices));
    return devices > dt_size() ? devices - 1 - dt_rank() : dt_rank() % devices;
}

static CUcontext own_context(void)
{
    CUcontext context;
    CUdevice device;

    DRIVE(cuDeviceGet(&device, own_device()));
    DRIVE(cuCtxCreate_v2(&context, 0, device));
    return context;
}

/* The program has one context, which no call may change or add to. That is the device's primary
 * context, or one that the program has created if arg is "own". */
void probe_contexts(const char *arg)
{
    CUcontext before, after;
    CUdeviceptr buf;
    pthread_t thread;
    dt_request_t request;
    bool own = strcmp(arg, "own") == 0;

    device_load();
    if (own)
        own_context();
    else
        device_use(own_device());
    DRIVE(cuCtxGetCurrent(&before));
    DRIVE(cuMemAlloc_v2(&buf, COUNT * sizeof(float)));
    reduce_ones(buf, false);
    need(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, (void *)(uintptr_t)buf, COUNT, DT_F32, DT_SUM,
                        &request));
    need(dt_wait(&request));
    DRIVE(cuCtxGetCurrent(&after));
    if (before != after)
        fail("the current context has changed");
    DRIVE(cuCtxSetCurrent(NULL));
    pthread_create(&thread, NULL, reduce_elsewhere, (void *)(uintptr_t)buf);
    pthread_join(thread, NULL);
    printf("= %d\n", own + primary_contexts());
}

/* The program resets the device. What libdtrun has there is gone then: it must notice, from the
 * number of memory that it has pinned, although the next context has the same handle. */
void probe_reset(const char *arg)
{
    CUdevice device;

    (void)arg;
    device_use(0);
    DRIVE(cuDeviceGet(&device, 0));
    reduce_ones(of_alloc(), false);
    DRIVE(cuCtxSetCurrent(NULL));
    DRIVE(cuDevicePrimaryCtxReset_v2(device));
    device_use(0);
    reduce_ones(of_alloc(), false);
    printf("= ok\n");
}

/* ---- streams that are held ---- */

/* Calls that hold their stream until they have been made, on one stream after the other. If the
 * stream shares a hardware queue with one that the call needs, the call may time out. Since there
 * is a second communicator, NCCL's calls hold their streams, too. */
void probe_held(const char *arg)
{
    enum { STREAMS = 32, LIMIT_S = 10 };
    CUstream streams[STREAMS];
    dt_comm_t *comm, *view;
    float *buf;

    (void)arg;
    device_use(0);
    buf = device_new(sizeof *buf);
    need(dt_comm_dup(DT_WORLD, &comm));
    need(dt_comm_set_timeout(comm, LIMIT_S));
    for (int i = 0; i < STREAMS; i++)
        DRIVE(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < STREAMS; i++) {
        printf("stream %d\n", i); /* the last one is the one that failed */
        fflush(stdout);
        need(dt_comm_on_stream(comm, streams[i], &view));
        need(dt_all_reduce(view, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
        need(dt_stream_wait(view));
        need(dt_comm_free(view));
    }
    printf("= %d of %d streams\n", STREAMS, STREAMS);
}

/* ---- many calls at once ---- */

/* Enqueues calls without waiting for any, so that the library's thread watches some of them while
 * this thread enqueues the next. */
void probe_burst(const char *arg)
{
    enum { CALLS = 500 };
    float one = 1, *buf;
    CUstream stream;
    dt_comm_t *view;

    (void)arg;
    device_use(0);
    buf = device_new(sizeof *buf);
    DRIVE(cuMemcpyHtoD_v2(address(buf), &one, sizeof one));
    DRIVE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    need(dt_comm_on_stream(DT_WORLD, stream, &view));
    for (int i = 0; i < CALLS; i++)
        need(dt_all_reduce(view, DT_IN_PLACE, buf, 1, DT_F32, DT_AVG));
    need(dt_stream_wait(view));
    need(dt_comm_free(view));
    DRIVE(cuMemcpyDtoH_v2(&one, address(buf), sizeof one));
    if (one < 0.99f || one > 1.01f)
        fail("the average is wrong");
    printf("= %d calls\n", CALLS);
}

/* ---- a full queue ---- */

/* Rank 0 queues more work behind a call than the driver accepts, and rank 1 joins the call a second
 * later. While the driver makes rank 0's thread wait, others must be able to use it: if it makes
 * them wait, too, the call times out. */
void probe_behind(const char *arg)
{
    enum { OPERATIONS = 4000, LATE_S = 1, LIMIT_S = 10 };
    CUstream stream;
    dt_comm_t *view;
    float *buf, *other;
    uint64_t start;
    double seconds;

    (void)arg;
    device_use(0);
    buf = device_new(sizeof *buf);
    other = device_new(sizeof *other);
    DRIVE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    need(dt_comm_on_stream(DT_WORLD, stream, &view));
    need(dt_all_reduce(view, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
    need(dt_stream_wait(view));
    need(dt_comm_set_timeout(view, LIMIT_S));
    if (dt_rank() == 1)
        sleep(LATE_S);
    start = dt_clock_ns();
    need(dt_all_reduce(view, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
    for (int i = 0; dt_rank() == 0 && i < OPERATIONS; i++)
        DRIVE(cuMemsetD32Async(address(other), 0, 1, stream));
    seconds = (double)(dt_clock_ns() - start) / 1e9;
    need(dt_stream_wait(view));
    need(dt_comm_free(view));
    if (dt_rank() == 0)
        printf("= %.3f s to queue %d operations\n", seconds, OPERATIONS);
}

/* ---- a kernel behind a call ---- */

/* The same with a kernel that rank 0 launches for the first time: the driver may load it only when
 * the GPU is idle, and make all threads wait until then. arg: the limit in seconds, 10 by default.
 */
void probe_kernel(const char *arg)
{
    enum { LATE_S = 1, LIMIT_S = 10 };
    struct gate gate;
    CUstream stream;
    dt_comm_t *view;
    float *buf;
    uint64_t start;
    double seconds;

    device_use(0);
    buf = device_new(sizeof *buf);
    gate_make(&gate);
    gate_open(&gate);
    DRIVE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    need(dt_comm_on_stream(DT_WORLD, stream, &view));
    need(dt_all_reduce(view, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
    need(dt_stream_wait(view));
    need(dt_comm_set_timeout(view, *arg ? atoi(arg) : LIMIT_S));
    if (dt_rank() == 1)
        sleep(LATE_S);
    start = dt_clock_ns();
    need(dt_all_reduce(view, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
    if (dt_rank() == 0)
        spin(&gate, 0, stream);
    seconds = (double)(dt_clock_ns() - start) / 1e9;
    need(dt_stream_wait(view));
    need(dt_comm_free(view));
    if (dt_rank() == 0)
        printf("= %.3f s to load a kernel\n", seconds);
}

/* ---- the last error ---- */

/* The last error of the runtime API, which keeps one for each thread. arg is the file of
 * libcudart. */
void probe_error(const char *arg)
{
    void *library = dlopen(arg, RTLD_NOW);
    int (*last)(void) = NULL;
    int before, after;

    if (library)
        *(void **)&last = dlsym(library, "cudaGetLastError");
    if (!last)
        fail(dlerror());
    device_use(0);
    before = last();
    if (before)
        fail("cudaGetLastError fails before any call: the CUDA runtime cannot be used here");
    reduce_ones(of_alloc(), false);
    after = last();
    if (after)
        fail("cudaGetLastError reports an error that the program did not cause");
    printf("= %d\n", after);
}
