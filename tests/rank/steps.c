/* A rank that takes ten steps and prints a line after each, for faults at exact steps. The argument
 * changes that:
 *
 * - meet: it waits for the other ranks in every step
 * - slow: the same, but it takes a while to report a failed call, as interpreters do, and rank 1 is
 *   late for calls ("slow dup": on another communicator, "slow recv": all receive from rank 1)
 * - idle: in the middle rank 0 is outside any call
 * - hang: in the first generation the last rank joins no call from the middle on ("hang SECONDS":
 *   from then on rank 0 waits for it no longer than that)
 *
 * Exits with 3 when a call fails, and prints why. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/dtrun.h"

enum { STEPS = 10, FAILED = 3, SLOW_US = 200 * 1000, LATE_US = 20 * 1000 };

static bool slow;
static dt_comm_t *comm = DT_WORLD;

static int failed(void)
{
    if (slow)
        usleep(SLOW_US);
    fprintf(stderr, "%s\n", dt_last_error());
    return FAILED;
}

static dt_result_t receive(void)
{
    dt_result_t r = DT_OK;
    int one = 1;

    if (dt_rank() != 1)
        return dt_recv(comm, &one, 1, DT_I32, 1);
    for (int rank = 0; rank < dt_size() && r == DT_OK; rank++) {
        if (rank != 1)
            r = dt_send(comm, &one, 1, DT_I32, rank);
    }
    return r;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "", *where = argc > 2 ? argv[2] : "";
    bool hang = strcmp(how, "hang") == 0, idle = strcmp(how, "idle") == 0;
    double limit;
    bool meet;

    slow = strcmp(how, "slow") == 0;
    meet = hang || idle || slow || strcmp(how, "meet") == 0;
    if (dt_init() != DT_OK)
        return failed();
    if (strcmp(where, "dup") == 0 && dt_comm_dup(DT_WORLD, &comm) != DT_OK)
        return failed();
    limit = hang && dt_rank() == 0 ? atof(where) : 0;
    hang = hang && dt_generation() == 1 && dt_rank() == dt_size() - 1;
    for (int64_t step = 0; step < STEPS; step++) {
        if (limit > 0 && step == STEPS / 2 && dt_comm_set_timeout(DT_WORLD, limit) != DT_OK)
            return failed();
        while ((hang || (idle && dt_rank() == 0)) && step == STEPS / 2)
            pause();
        if (meet && (strcmp(where, "recv") == 0 ? receive() : dt_barrier(comm)) != DT_OK)
            return failed();
        if (slow && dt_rank() == 1)
            usleep(LATE_US);
        dt_step(step);
        printf("%lld\n", (long long)step);
        fflush(stdout);
    }
    return dt_finalize() == DT_OK ? 0 : failed();
}
