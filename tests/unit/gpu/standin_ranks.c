#include "tests/unit/gpu/standin_nccl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct lab *new_lab(int size)
{
    pthread_barrierattr_t shared;
    struct lab *lab =
        mmap(NULL, sizeof(*lab), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&lab->barrier, &shared, (unsigned)size);
    return lab;
}

int lab_hosts = 1;

static _Noreturn void be_rank(struct lab *lab, int size, int rank, void (*body)(struct rank *))
{
    struct rank me = { .lab = lab, .rank = rank, .size = size };
    char host[16];

    snprintf(host, sizeof(host), "%d", rank % lab_hosts);
    setenv("STANDIN_HOST", host, 1);
    alarm(300); /* a watchdog */
    body(&me);
    exit(0); /* lets a sanitizer look for leaks */
}

static int end_of(int process)
{
    int status;

    assert_int_equal(waitpid(process, &status, 0), process);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

void run_ranks(int size, void (*body)(struct rank *), int *ends)
{
    struct lab *lab = new_lab(size);
    int end, failed = 0, process;

    fflush(NULL);
    for (int r = 0; r < size; r++) {
        process = fork();
        if (process == 0)
            be_rank(lab, size, r, body);
        lab->processes[r] = process;
    }
    for (int r = 0; r < size; r++) {
        end = end_of(lab->processes[r]);
        if (ends)
            ends[r] = end;
        failed += end != 0;
    }
    munmap(lab, sizeof(*lab));
    if (!ends)
        assert_int_equal(failed, 0);
}

void meet(struct rank *me)
{
    pthread_barrier_wait(&me->lab->barrier);
}

void start_device(struct rank *me, CUdevice device)
{
    void *host;

    me->device = device;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&me->context, device));
    OK(cuCtxSetCurrent(me->context));
    OK(cuStreamCreate(&me->stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc_v2(&me->from, BUFFER));
    OK(cuMemAlloc_v2(&me->to, BUFFER));
    OK(cuMemHostAlloc(&host, BUFFER, 0));
    me->host = host;
}

void start_comm(struct rank *me)
{
    if (me->rank == 0)
        OK(ncclGetUniqueId(&me->lab->id));
    meet(me);
    OK(ncclCommInitRank(&me->comm, me->size, me->lab->id, me->rank));
}

void start_both(struct rank *me)
{
    start_device(me, me->rank);
    start_comm(me);
}

void end_comm(struct rank *me)
{
    OK(cuStreamSynchronize(me->stream));
    OK(ncclCommDestroy(me->comm));
}

void fill(struct rank *me, const void *values, size_t size)
{
    OK(cuMemcpyHtoDAsync_v2(me->from, values, size, me->stream));
}

const void *result(struct rank *me, size_t size)
{
    OK(cuMemcpyDtoHAsync_v2(me->host, me->to, size, me->stream));
    OK(cuStreamSynchronize(me->stream));
    return me->host;
}

void await_state(struct rank *me, ncclComm_t comm, ncclResult_t state)
{
    ncclResult_t now;

    do
        OK(ncclCommGetAsyncError(comm, &now));
    while (now != state && usleep(1000) == 0);
}
