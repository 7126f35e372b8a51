#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "tests/gpu/probe.h"
#include "tests/gpu/spin.h"

enum { GRACE_S = 5 }; /* as in dtrun's --kill-grace */

static double seconds_since(uint64_t ns)
{
    return (double)(dt_clock_ns() - ns) / 1e9;
}

/* This rank's call must have returned `result`, and its error must name rank 1. */
static void expect(dt_result_t got, dt_result_t result)
{
    dt_error_info_t info = { .size = sizeof info };

    need(dt_last_error_info(&info));
    printf("%d: %s\n", (int)got, info.message);
    fflush(stdout);
    if (got != result || info.rank != 1)
        exit(6);
}

static size_t count = 1; /* elements of each call */

static void warm_up(float *buf)
{
    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, count, DT_F32, DT_SUM));
}

/* ---- a rank is killed ---- */

static void note_time(const char *file)
{
    FILE *f = fopen(file, "w");

    if (!f)
        exit(2);
    fprintf(f, "%" PRIu64 "\n", dt_clock_ns());
    fclose(f);
}

static uint64_t time_of_death(const char *file)
{
    FILE *f = fopen(file, "r");
    uint64_t ns = 0;

    if (!f || fscanf(f, "%" SCNu64, &ns) != 1)
        exit(2);
    fclose(f);
    return ns;
}

/* If NCCL makes the call, the peers' GPUs wait for this rank's until the gate is opened. */
static void keep_waiting(float *buf, struct gate *gate)
{
    dt_request_t request;
    int done;

    gate_make(gate);
    spin(gate, SPIN_FOR_EVER, CU_STREAM_LEGACY);
    need(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, buf, count, DT_F32, DT_SUM, &request));
    need(dt_wait_for(&request, 0.5, &done));
}

static _Noreturn void die(float *buf, const char *file)
{
    struct gate gate;

    keep_waiting(buf, &gate);
    note_time(file);
    raise(SIGKILL);
    exit(2);
}

static float *begin(void)
{
    float *buf;

    device_use(0);
    buf = device_new(count * sizeof *buf);
    warm_up(buf);
    return buf;
}

/* Seconds from the moment that rank 1 has noted until this rank's call has failed as expected. */
static double fail_after(float *buf, const char *file, dt_result_t expected)
{
    dt_result_t r = dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, count, DT_F32, DT_SUM);
    double seconds = seconds_since(time_of_death(file));

    expect(r, expected);
    DRIVE(cuCtxSynchronize());
    return seconds;
}

/* Seconds from rank 1's death until this rank's call has returned. Also waits until the GPU is
 * idle. */
static double outlive(const char *file)
{
    float *buf = begin();

    if (dt_rank() == 1)
        die(buf, file);
    return fail_after(buf, file, DT_ERR_PEER);
}

void probe_kill(const char *arg)
{
    printf("= %.3f s\n", outlive(arg));
    fflush(stdout);
    exit(3);
}

/* The same with calls of so many bytes that they fill the driver's queue. arg is BYTES:FILE. */
void probe_killlarge(const char *arg)
{
    count = (size_t)atol(arg) / sizeof(float);
    probe_kill(strchr(arg, ':') + 1);
}

void probe_grace(const char *arg)
{
    outlive(arg);
    printf("= %.3f s\n", GRACE_S - seconds_since(time_of_death(arg)));
    fflush(stdout);
    exit(3);
}

/* ---- a rank aborts ---- */

/* Rank 0's call could still succeed if rank 1's GPU went on before rank 0 has seen the abort. */
static void await_file(const char *file)
{
    for (int i = 0; i < 2000 && access(file, F_OK) != 0; i++)
        usleep(5000);
}

/* Seconds from rank 1's abort until this rank's call has returned. Also waits until the GPU is
 * idle. */
void probe_abort(const char *arg)
{
    float *buf = begin();
    char seen[4096];
    struct gate gate;

    snprintf(seen, sizeof seen, "%s.seen", arg);
    if (dt_rank() == 1) {
        keep_waiting(buf, &gate);
        note_time(arg);
        need(dt_comm_abort(DT_WORLD));
        await_file(seen);
        gate_open(&gate);
        DRIVE(cuCtxSynchronize());
        exit(3);
    }
    printf("= %.3f s\n", fail_after(buf, arg, DT_ERR_ABORTED));
    fflush(stdout);
    note_time(seen);
    exit(3);
}

/* ---- a kernel never ends ---- */

void probe_endless(const char *arg)
{
    struct gate gate;
    float *buf;
    uint64_t start;
    double seconds;
    dt_result_t r;

    (void)arg;
    device_use(0);
    buf = device_new(sizeof *buf);
    warm_up(buf);
    need(dt_comm_set_timeout(DT_WORLD, 1));
    gate_make(&gate);
    if (dt_rank() == 1)
        spin(&gate, SPIN_FOR_EVER, CU_STREAM_LEGACY);
    start = dt_clock_ns();
    r = dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM);
    seconds = seconds_since(start);
    expect(r, DT_ERR_TIMEOUT);
    printf("= %.3f s\n", seconds);
    fflush(stdout);
    exit(1);
}
