/* The stand-in for libcuda.so.1 keeps the rules of NVIDIA's driver. Comments name the sections of
 * NVIDIA's documents that have them. Streams that must be busy wait for a word in pinned memory,
 * which the test writes, so nothing depends on time. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/standin/cudart.h"
#include "tests/standin/driver.h"

#define OK(call)           assert_int_equal(call, CUDA_SUCCESS)
#define FAILS(error, call) assert_int_equal(call, error)

enum { BYTES = 4096, WHOLE = 2 << 20 };

static struct {
    CUcontext context;
    CUstream blocking, other, free; /* free is non-blocking */
    CUdeviceptr memory;
    _Atomic uint32_t *word; /* busy streams wait for it */
    unsigned char *pinned;
} dti_gpu;

static CUdeviceptr address(const volatile void *ptr)
{
    return (CUdeviceptr)(uintptr_t)ptr;
}

static void make_busy(CUstream stream)
{
    *dti_gpu.word = 0;
    OK(cuStreamWaitValue32_v2(stream, address(dti_gpu.word), 1, CU_STREAM_WAIT_VALUE_GEQ));
}

static void let_go(void)
{
    *dti_gpu.word = 1;
    OK(cuCtxSynchronize());
}

static unsigned char first_byte(CUdeviceptr ptr)
{
    unsigned char byte;

    OK(cuMemcpyDtoH_v2(&byte, ptr, 1));
    return byte;
}

/* Runs this program again as MODE, as a process that is not a fork, and returns its exit code. */
static int run_again(const char *mode, const char *argument, const char *setting)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        if (setting)
            putenv((char *)(uintptr_t)setting);
        execl("/proc/self/exe", "standin_cuda", mode, argument, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Driver API, "Initialization". */
static void nothing_works_before_init(void **state)
{
    int count;

    (void)state;
    FAILS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    assert_int_equal(count, 2);
}

/* Driver API, "Driver Entry Point Access". */
static void every_function_is_found_by_name(void **state)
{
    CUdriverProcAddressQueryResult found;
    void *function;

    (void)state;
#define CHECK(result, name, arguments)                                                             \
    OK(cuGetProcAddress_v2(#name, &function, 12000, 0, NULL));                                     \
    assert_ptr_equal(function, (void *)name);                                                      \
    assert_ptr_equal(function, dlsym(RTLD_DEFAULT, #name));
    DT_CUDA_FUNCTIONS(CHECK)
    OK(cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, NULL));
    assert_ptr_equal(function, (void *)cuMemAlloc_v2);
    FAILS(CUDA_ERROR_NOT_FOUND, cuGetProcAddress_v2("cuNothing", &function, 12000, 0, &found));
    assert_int_equal(found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

/* Driver API, "Context Management". */
static void a_thread_without_context_can_do_nothing(void **state)
{
    CUdeviceptr ptr;

    (void)state;
    assert_int_equal(standin_contexts(), 0);
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&ptr, BYTES));
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cuStreamSynchronize(NULL));
}

/* Driver API, "Primary Context Management", "Context Management". */
static void contexts_are_counted_and_stacked(void **state)
{
    CUcontext primary, again, made, now;
    CUdevice device;
    unsigned flags;
    int active;

    (void)state;
    OK(cuDevicePrimaryCtxRetain(&primary, 1));
    OK(cuDevicePrimaryCtxRetain(&again, 1));
    assert_ptr_equal(primary, again);
    assert_int_equal(standin_contexts(), 1);
    OK(cuCtxPushCurrent_v2(primary));
    OK(cuCtxCreate_v2(&made, 0, 0));
    assert_int_equal(standin_contexts(), 2);
    OK(cuCtxGetDevice(&device));
    assert_int_equal(device, 0);
    OK(cuCtxDestroy_v2(made));
    OK(cuCtxGetCurrent(&now));
    assert_ptr_equal(now, primary);
    OK(cuCtxPopCurrent_v2(NULL));
    OK(cuDevicePrimaryCtxRelease_v2(1));
    OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
    assert_true(active);
    OK(cuDevicePrimaryCtxRelease_v2(1));
    assert_int_equal(standin_contexts(), 0);
}

static int start(void **state)
{
    void *word, *pinned;

    (void)state;
    OK(cuDevicePrimaryCtxRetain(&dti_gpu.context, 0));
    OK(cuCtxSetCurrent(dti_gpu.context));
    OK(cuStreamCreate(&dti_gpu.blocking, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&dti_gpu.other, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&dti_gpu.free, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc_v2(&dti_gpu.memory, BYTES));
    OK(cuMemsetD8_v2(dti_gpu.memory, 0, BYTES));
    OK(cuCtxSynchronize());
    OK(cuMemHostAlloc(&word, sizeof(uint32_t), 0));
    OK(cuMemHostAlloc(&pinned, BYTES, 0));
    dti_gpu.word = word;
    dti_gpu.pinned = pinned;
    return 0;
}

static int finish(void **state)
{
    (void)state;
    let_go();
    OK(cuMemFree_v2(dti_gpu.memory));
    OK(cuMemFreeHost((void *)(uintptr_t)dti_gpu.word));
    OK(cuMemFreeHost(dti_gpu.pinned));
    OK(cuStreamDestroy_v2(dti_gpu.blocking));
    OK(cuStreamDestroy_v2(dti_gpu.other));
    OK(cuStreamDestroy_v2(dti_gpu.free));
    OK(cuCtxSetCurrent(NULL));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}

/* Driver API, "Memory Management". */
static void the_host_cannot_touch_device_memory(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], (void *)(uintptr_t)dti_gpu.memory, 1), -1);
    assert_int_equal(errno, EFAULT);
    OK(cuMemsetD8_v2(dti_gpu.memory, 7, 1));
    assert_int_equal(first_byte(dti_gpu.memory), 7);
    close(ends[0]);
    close(ends[1]);
}

static void copies_past_the_end_are_refused(void **state)
{
    char buffer[BYTES + 1] = "";

    (void)state;
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(dti_gpu.memory, buffer, BYTES + 1));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(buffer, address(buffer), 1));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(dti_gpu.memory, 0, BYTES));
}

/* Driver API, "Unified Addressing". */
static void attributes_tell_kinds_of_memory_apart(void **state)
{
    CUpointer_attribute kinds[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
    unsigned type, managed, registered[2] = { 0 };
    int ordinal;
    void *values[] = { &type, &managed, &ordinal };
    CUdeviceptr shared;
    struct {
        CUdeviceptr ptr;
        unsigned type, managed;
    } cases[4] = { { dti_gpu.memory + 5, CU_MEMORYTYPE_DEVICE, 0 },
                   { address(dti_gpu.pinned), CU_MEMORYTYPE_HOST, 0 },
                   { address(registered), CU_MEMORYTYPE_HOST, 0 } };

    (void)state;
    OK(cuMemAllocManaged(&shared, BYTES, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemHostRegister_v2(registered, sizeof(registered), 0));
    FAILS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(registered, 1, 0));
    cases[3].ptr = shared;
    cases[3].type = CU_MEMORYTYPE_DEVICE;
    cases[3].managed = 1;
    for (size_t i = 0; i < 4; i++) {
        OK(cuPointerGetAttributes(3, kinds, values, cases[i].ptr));
        assert_int_equal(type, cases[i].type);
        assert_int_equal(managed, cases[i].managed);
    }
    OK(cuMemHostUnregister(registered));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, kinds[0], address(registered)));
    OK(cuPointerGetAttributes(3, kinds, values, address(registered)));
    assert_int_equal(type, 0);
    OK(cuMemFree_v2(shared));
}

static void every_allocation_has_its_own_id(void **state)
{
    unsigned long long before, after;
    CUdeviceptr base, ptr;
    CUcontext context;
    size_t size;

    (void)state;
    OK(cuMemGetAddressRange_v2(&base, &size, dti_gpu.memory + 9));
    assert_true(base == dti_gpu.memory && size == BYTES);
    OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, base));
    assert_ptr_equal(context, dti_gpu.context);
    OK(cuMemAlloc_v2(&ptr, BYTES));
    OK(cuPointerGetAttribute(&before, CU_POINTER_ATTRIBUTE_BUFFER_ID, ptr));
    OK(cuMemFree_v2(ptr));
    OK(cuMemAlloc_v2(&ptr, BYTES));
    OK(cuPointerGetAttribute(&after, CU_POINTER_ATTRIBUTE_BUFFER_ID, ptr));
    assert_true(before != after);
    OK(cuMemFree_v2(ptr));
}

/* Driver API, "Stream synchronization behavior". Whether earlier work in `first` holds up work in
 * `second`. */
static void default_streams_wait_for_blocking_ones(void **state)
{
    const struct {
        CUstream first, second;
        bool waits;
    } cases[] = {
        { dti_gpu.blocking, CU_STREAM_LEGACY, true },
        { CU_STREAM_LEGACY, dti_gpu.blocking, true },
        { NULL, dti_gpu.blocking, true },
        { CU_STREAM_PER_THREAD, CU_STREAM_LEGACY, true },
        { CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, true },
        { dti_gpu.blocking, dti_gpu.other, false },
        { dti_gpu.blocking, CU_STREAM_PER_THREAD, false },
        { CU_STREAM_LEGACY, dti_gpu.free, false },
        { dti_gpu.free, CU_STREAM_LEGACY, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        make_busy(cases[i].first);
        OK(cuMemsetD8Async(dti_gpu.memory, 1, 1, cases[i].second));
        if (cases[i].waits)
            FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(cases[i].second));
        else
            OK(cuStreamSynchronize(cases[i].second));
        FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(cases[i].first));
        let_go();
        OK(cuStreamQuery(cases[i].second));
    }
}

static void *ask_default_stream(void *result)
{
    cuCtxSetCurrent(dti_gpu.context);
    *(CUresult *)result = cuStreamQuery(CU_STREAM_PER_THREAD);
    return NULL;
}

static void each_thread_has_a_default_stream_of_its_own(void **state)
{
    CUresult elsewhere = CUDA_ERROR_UNKNOWN;
    pthread_t thread;

    (void)state;
    make_busy(CU_STREAM_PER_THREAD);
    assert_int_equal(pthread_create(&thread, NULL, ask_default_stream, &elsewhere), 0);
    pthread_join(thread, NULL);
    OK(elsewhere);
    FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(CU_STREAM_PER_THREAD));
    let_go();
}

static void *last_error(void *error)
{
    *(CUresult *)error = cudaPeekAtLastError();
    return NULL;
}

/* Runtime API, "Error Handling". */
static void the_runtime_keeps_the_last_error_of_each_thread(void **state)
{
    CUresult elsewhere = CUDA_ERROR_UNKNOWN;
    pthread_t thread;

    (void)state;
    make_busy(dti_gpu.free);
    FAILS(CUDA_ERROR_NOT_READY, cudaStreamQuery(dti_gpu.free));
    OK(cudaStreamQuery(dti_gpu.other));
    FAILS(CUDA_ERROR_NOT_READY, cudaPeekAtLastError());
    assert_int_equal(pthread_create(&thread, NULL, last_error, &elsewhere), 0);
    pthread_join(thread, NULL);
    OK(elsewhere);
    FAILS(CUDA_ERROR_NOT_READY, cudaGetLastError());
    OK(cudaGetLastError());
    let_go();
}

/* Driver API, "API synchronization behavior". */
static void pageable_memory_is_read_at_once_and_pinned_memory_is_not(void **state)
{
    unsigned char pageable = 1;

    (void)state;
    *dti_gpu.pinned = 1;
    make_busy(dti_gpu.blocking);
    OK(cuMemcpyHtoDAsync_v2(dti_gpu.memory, &pageable, 1, dti_gpu.blocking));
    OK(cuMemcpyHtoDAsync_v2(dti_gpu.memory + 1, dti_gpu.pinned, 1, dti_gpu.blocking));
    pageable = *dti_gpu.pinned = 2;
    let_go();
    assert_int_equal(first_byte(dti_gpu.memory), 1);
    assert_int_equal(first_byte(dti_gpu.memory + 1), 2);
}

static void a_copy_to_pinned_memory_does_not_wait(void **state)
{
    (void)state;
    OK(cuMemsetD8_v2(dti_gpu.memory, 5, 1));
    OK(cuCtxSynchronize());
    *dti_gpu.pinned = 0;
    make_busy(dti_gpu.blocking);
    OK(cuMemcpyDtoHAsync_v2(dti_gpu.pinned, dti_gpu.memory, 1, dti_gpu.blocking));
    assert_int_equal(*dti_gpu.pinned, 0);
    let_go();
    assert_int_equal(*dti_gpu.pinned, 5);
}

/* Driver API, "Event Management", "Stream Management". */
static void a_wait_uses_the_latest_record_before_it(void **state)
{
    CUevent event;
    float time;

    (void)state;
    OK(cuEventCreate(&event, CU_EVENT_DEFAULT));
    OK(cuEventQuery(event));
    OK(cuEventRecord(event, dti_gpu.free));
    OK(cuStreamWaitEvent(dti_gpu.other, event, CU_EVENT_WAIT_DEFAULT));
    make_busy(dti_gpu.blocking);
    OK(cuEventRecord(event, dti_gpu.blocking));
    OK(cuStreamSynchronize(dti_gpu.other));
    FAILS(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    OK(cuStreamWaitEvent(dti_gpu.free, event, CU_EVENT_WAIT_DEFAULT));
    FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(dti_gpu.free));
    let_go();
    OK(cuEventSynchronize(event));
    OK(cuEventElapsedTime(&time, event, event));
    OK(cuEventDestroy_v2(event));
}

/* Driver API, "Stream Memory Operations". */
static void streams_write_and_await_words(void **state)
{
    static uint64_t words[2];

    (void)state;
    OK(cuMemHostRegister_v2(words, sizeof(words), 0));
    OK(cuStreamWaitValue64_v2(dti_gpu.blocking, address(&words[0]), 5, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWriteValue64_v2(dti_gpu.blocking, address(&words[1]), 6, 0));
    FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(dti_gpu.blocking));
    OK(cuStreamWriteValue64_v2(dti_gpu.free, address(&words[0]), 5, 0));
    OK(cuStreamSynchronize(dti_gpu.blocking));
    assert_true(words[1] == 6);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32_v2(NULL, address(words) + 1, 0, 0));
    OK(cuMemHostUnregister(words));
}

static void note_result(void *data)
{
    *(CUresult *)data = cuStreamQuery(CU_STREAM_LEGACY);
}

/* Driver API, "Execution Control": cuLaunchHostFunc. */
static void host_functions_cannot_call_the_driver(void **state)
{
    CUresult result = CUDA_SUCCESS;

    (void)state;
    OK(cuLaunchHostFunc(dti_gpu.blocking, note_result, &result));
    OK(cuStreamSynchronize(dti_gpu.blocking));
    assert_int_equal(result, CUDA_ERROR_NOT_PERMITTED);
}

static void *let_go_from_thread(void *unused)
{
    *dti_gpu.word = 1;
    return unused;
}

/* Driver API, "Memory Management": cuMemFree. */
static void freeing_waits_for_the_device(void **state)
{
    CUdeviceptr ptr;
    pthread_t thread;

    (void)state;
    OK(cuMemAlloc_v2(&ptr, BYTES));
    make_busy(dti_gpu.free);
    OK(cuMemsetD8Async(address(dti_gpu.pinned), 9, 1, dti_gpu.free));
    assert_int_equal(pthread_create(&thread, NULL, let_go_from_thread, NULL), 0);
    OK(cuMemFree_v2(ptr));
    assert_int_equal(*dti_gpu.pinned, 9);
    pthread_join(thread, NULL);
}

/* CUDA C++ Programming Guide, "Creating a Graph Using Stream Capture". */
static void waiting_for_a_capturing_stream_is_refused(void **state)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUstreamCaptureStatus status;
    CUgraph graph;
    CUevent event;

    (void)state;
    OK(cuEventCreate(&event, 0));
    OK(cuStreamBeginCapture_v2(dti_gpu.free, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemsetD8Async(dti_gpu.memory, 77, 1, dti_gpu.free));
    OK(cuStreamIsCapturing(dti_gpu.free, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuStreamEndCapture(dti_gpu.free, &graph));
    OK(cuGraphDestroy(graph));
    assert_true(first_byte(dti_gpu.memory) != 77);

    OK(cuStreamBeginCapture_v2(dti_gpu.free, CU_STREAM_CAPTURE_MODE_GLOBAL));
    FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(dti_gpu.free));
    FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(dti_gpu.free, &graph));

    OK(cuStreamBeginCapture_v2(dti_gpu.blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    FAILS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamQuery(CU_STREAM_LEGACY));
    FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(dti_gpu.blocking, &graph));

    OK(cuStreamBeginCapture_v2(dti_gpu.free, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    OK(cuEventQuery(event));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuEventQuery(event));
    FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(dti_gpu.free, &graph));
    OK(cuEventDestroy_v2(event));
}

static void run_add(void *const *parameters, size_t threads)
{
    unsigned *at = standin_view(*(CUdeviceptr *)parameters[0], threads * sizeof(unsigned));

    for (size_t i = 0; i < threads; i++)
        at[i] += *(unsigned *)parameters[1];
}

static const size_t dti_add_sizes[] = { sizeof(CUdeviceptr), sizeof(unsigned) };
extern const struct standin_kernel standin_kernel_add;
STANDIN_API const struct standin_kernel standin_kernel_add = { 2, dti_add_sizes, run_add };

/* Driver API, "Module Management", "Execution Control". */
static void a_kernel_runs_its_c_version(void **state)
{
    unsigned summand = 3, sum;
    void *parameters[] = { &dti_gpu.memory, &summand };
    CUmodule module;
    CUfunction function;

    (void)state;
    OK(cuMemsetD32_v2(dti_gpu.memory, 4, 16));
    OK(cuModuleLoadData(&module, "ptx"));
    FAILS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "subtract"));
    OK(cuModuleGetFunction(&function, module, "add"));
    make_busy(dti_gpu.blocking);
    OK(cuLaunchKernel(function, 2, 1, 1, 8, 1, 1, 0, dti_gpu.blocking, parameters, NULL));
    summand = 100;
    let_go();
    OK(cuMemcpyDtoH_v2(&sum, dti_gpu.memory + 15 * sizeof(sum), sizeof(sum)));
    assert_int_equal(sum, 7);
    OK(cuModuleUnload(module));
}

/* In a context of its own, with a kernel and an event of another one. */
static void use_of_another_context(CUfunction function, void **parameters)
{
    CUcontext other;
    CUstream stream;
    CUevent event;

    OK(cuEventCreate(&event, 0));
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuStreamCreate(&stream, 0));
    FAILS(CUDA_ERROR_INVALID_HANDLE,
          cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(event, stream));
    OK(cuEventRecord(event, dti_gpu.blocking));
    OK(cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_DEFAULT));
    OK(cuCtxDestroy_v2(other));
    OK(cuEventDestroy_v2(event));
}

static void kernels_and_events_stay_in_their_context(void **state)
{
    unsigned summand = 1;
    void *parameters[] = { &dti_gpu.memory, &summand };
    CUmodule module;
    CUfunction function;
    CUcontext other;

    (void)state;
    OK(cuModuleLoadData(&module, "ptx"));
    OK(cuModuleGetFunction(&function, module, "add"));
    use_of_another_context(function, parameters);
    OK(cuCtxCreate_v2(&other, 0, 0));
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cuModuleGetFunction(&function, module, "add"));
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cuModuleUnload(module));
    OK(cuCtxDestroy_v2(other));
    OK(cuModuleUnload(module));
}

static void *destroy(void *context)
{
    OK(cuCtxDestroy_v2(context));
    return NULL;
}

static void a_context_that_another_thread_has_destroyed_is_destroyed(void **state)
{
    CUcontext made;
    pthread_t thread;

    (void)state;
    OK(cuCtxCreate_v2(&made, 0, 0));
    assert_int_equal(pthread_create(&thread, NULL, destroy, made), 0);
    pthread_join(thread, NULL);
    FAILS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    OK(cuCtxPopCurrent_v2(NULL));
}

static void pooled_memory_belongs_to_no_context(void **state)
{
    CUcontext context = dti_gpu.context;
    CUdeviceptr ptr;
    unsigned type;
    int ipc;

    (void)state;
    OK(cuMemAllocAsync(&ptr, BYTES, dti_gpu.free));
    OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, ptr));
    assert_null(context);
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    OK(cuPointerGetAttribute(&ipc, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, ptr));
    assert_false(ipc);
    OK(cuMemFreeAsync(ptr, dti_gpu.free));
}

/* Driver API, cuMemHostRegister. */
static void memory_that_is_read_only_or_registered_is_not_registered(void **state)
{
    char *memory = mmap(NULL, 2 * BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(memory, MAP_FAILED);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(memory, BYTES, 0));
    assert_int_equal(mprotect(memory, BYTES, PROT_READ | PROT_WRITE), 0);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(memory, 2 * BYTES, 0));
    OK(cuMemHostRegister_v2(memory, BYTES, CU_MEMHOSTREGISTER_PORTABLE));
    assert_int_equal(mprotect(memory, 2 * BYTES, PROT_READ | PROT_WRITE), 0);
    FAILS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
          cuMemHostRegister_v2(memory + BYTES / 2, BYTES, 0));
    OK(cuMemHostUnregister(memory));
    OK(cuMemHostRegister_v2(memory, 2 * BYTES, 0));
    FAILS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(memory + BYTES, 1, 0));
    FAILS(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(memory + BYTES));
    OK(cuMemHostUnregister(memory));
    munmap(memory, 2 * BYTES);
}

static void words_of_streams_are_not_in_managed_memory(void **state)
{
    CUdeviceptr ptr;

    (void)state;
    OK(cuMemAllocManaged(&ptr, BYTES, CU_MEM_ATTACH_GLOBAL));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32_v2(dti_gpu.free, ptr, 1, 0));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32_v2(dti_gpu.free, ptr, 0, 0));
    OK(cuMemFree_v2(ptr));
}

static CUdeviceptr map_shared(CUmemGenericAllocationHandle handle)
{
    CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUdeviceptr ptr;

    OK(cuMemAddressReserve(&ptr, WHOLE, 0, 0, 0));
    OK(cuMemMap(ptr, WHOLE, 0, handle, 0));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(ptr, 1, 1));
    OK(cuMemSetAccess(ptr, WHOLE, &access, 1));
    return ptr;
}

static void unmap_shared(CUdeviceptr ptr)
{
    OK(cuMemUnmap(ptr, WHOLE));
    OK(cuMemAddressFree(ptr, WHOLE));
}

/* Driver API, "Virtual Memory Management". */
static void created_memory_is_shared_by_descriptor(void **state)
{
    CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    CUmemGenericAllocationHandle handle;
    char number[16];
    CUdeviceptr ptr;
    int shared;

    (void)state;
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, BYTES, &prop, 0));
    OK(cuMemCreate(&handle, WHOLE, &prop, 0));
    FAILS(
        CUDA_ERROR_INVALID_VALUE,
        cuMemExportToShareableHandle(&shared, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemRelease(handle));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    OK(cuMemCreate(&handle, WHOLE, &prop, 0));
    ptr = map_shared(handle);
    OK(cuMemExportToShareableHandle(&shared, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemRelease(handle));
    fcntl(shared, F_SETFD, 0);
    snprintf(number, sizeof(number), "%d", shared);
    assert_int_equal(run_again("import", number, NULL), 0);
    assert_int_equal(first_byte(ptr), 42);
    unmap_shared(ptr);
    close(shared);
}

static int import(int shared)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr ptr;

    OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)shared,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ptr = map_shared(handle);
    OK(cuMemRelease(handle));
    OK(cuMemsetD8_v2(ptr, 42, 1));
    OK(cuCtxSynchronize());
    unmap_shared(ptr);
    return 0;
}

/* Driver API, "Memory Management": cuIpcOpenMemHandle. */
static void memory_is_shared_by_ipc_with_other_processes_only(void **state)
{
    char text[2 * sizeof(CUipcMemHandle) + 1];
    CUipcMemHandle handle;
    CUdeviceptr ptr;

    (void)state;
    OK(cuIpcGetMemHandle(&handle, dti_gpu.memory + 1));
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&ptr, handle, 1));
    for (size_t i = 0; i < sizeof(handle); i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned char)handle.reserved[i]);
    assert_int_equal(run_again("open", text, NULL), 0);
    assert_int_equal(first_byte(dti_gpu.memory), 43);
}

static int open_handle(const char *text)
{
    CUipcMemHandle handle = { 0 };
    CUdeviceptr ptr;
    unsigned byte;

    for (size_t i = 0; i < sizeof(handle) && sscanf(text + 2 * i, "%2x", &byte) == 1; i++)
        handle.reserved[i] = (char)byte;
    OK(cuIpcOpenMemHandle_v2(&ptr, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(ptr));
    OK(cuMemsetD8_v2(ptr, 43, 1));
    OK(cuCtxSynchronize());
    OK(cuIpcCloseMemHandle(ptr));
    return 0;
}

/* The child returns 10 times the number of devices plus the bus number of device 0. */
static int count_devices(void)
{
    unsigned bus = 0;
    char id[16];
    int count;

    if (cuDeviceGetCount(&count) || cuDeviceGetPCIBusId(id, sizeof(id), 0))
        return 0;
    sscanf(id, "0000:%x:", &bus);
    return 10 * count + (int)bus;
}

/* CUDA C++ Programming Guide, "CUDA Environment Variables". */
static void visible_devices_are_named_by_index_or_uuid(void **state)
{
    static const struct {
        const char *setting;
        int answer;
    } cases[] = {
        { "CUDA_VISIBLE_DEVICES=1", 12 },     { "CUDA_VISIBLE_DEVICES=1,0", 22 },
        { "CUDA_VISIBLE_DEVICES=0,9,1", 11 }, { "CUDA_VISIBLE_DEVICES=GPU-02", 12 },
        { "STANDIN_DEVICES=4", 41 },          { "CUDA_VISIBLE_DEVICES=", 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(run_again("count", "", cases[i].setting), cases[i].answer);
}

/* CUDA C++ Programming Guide, "Initialization". */
static void a_forked_process_has_no_driver(void **state)
{
    int status, count;
    pid_t child = fork();

    (void)state;
    if (child == 0)
        _exit(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int be_child(char **argv)
{
    CUcontext context;

    if (cuInit(0) != CUDA_SUCCESS)
        return 0;
    if (strcmp(argv[1], "count") == 0)
        return count_devices();
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    return strcmp(argv[1], "import") == 0 ? import(atoi(argv[2])) : open_handle(argv[2]);
}

int main(int argc, char **argv)
{
#define ON_GPU(test) cmocka_unit_test_setup_teardown(test, start, finish)
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_works_before_init),
        cmocka_unit_test(every_function_is_found_by_name),
        cmocka_unit_test(a_thread_without_context_can_do_nothing),
        cmocka_unit_test(contexts_are_counted_and_stacked),
        ON_GPU(the_host_cannot_touch_device_memory),
        ON_GPU(copies_past_the_end_are_refused),
        ON_GPU(attributes_tell_kinds_of_memory_apart),
        ON_GPU(every_allocation_has_its_own_id),
        ON_GPU(default_streams_wait_for_blocking_ones),
        ON_GPU(each_thread_has_a_default_stream_of_its_own),
        ON_GPU(the_runtime_keeps_the_last_error_of_each_thread),
        ON_GPU(pageable_memory_is_read_at_once_and_pinned_memory_is_not),
        ON_GPU(a_copy_to_pinned_memory_does_not_wait),
        ON_GPU(a_wait_uses_the_latest_record_before_it),
        ON_GPU(streams_write_and_await_words),
        ON_GPU(host_functions_cannot_call_the_driver),
        ON_GPU(freeing_waits_for_the_device),
        ON_GPU(waiting_for_a_capturing_stream_is_refused),
        ON_GPU(a_kernel_runs_its_c_version),
        ON_GPU(kernels_and_events_stay_in_their_context),
        ON_GPU(a_context_that_another_thread_has_destroyed_is_destroyed),
        ON_GPU(pooled_memory_belongs_to_no_context),
        ON_GPU(memory_that_is_read_only_or_registered_is_not_registered),
        ON_GPU(words_of_streams_are_not_in_managed_memory),
        ON_GPU(created_memory_is_shared_by_descriptor),
        ON_GPU(memory_is_shared_by_ipc_with_other_processes_only),
        cmocka_unit_test(visible_devices_are_named_by_index_or_uuid),
        cmocka_unit_test(a_forked_process_has_no_driver),
    };

    if (argc == 3)
        return be_child(argv);
    alarm(300); /* a watchdog */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
