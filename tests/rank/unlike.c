/* unlike: rank 1 makes another call than the others, several times, each on a communicator of its
 * own. Every rank prints for each such call its kind, how many milliseconds it took, and the error:
 * "count 3: rank 0 (a) called ...".
 *
 * - world: only one such call, on DT_WORLD
 * - abort: rank 1 aborts DT_WORLD instead
 * - keep: one such call, on a communicator that no rank frees
 * - drop: one on a communicator that all abort afterwards
 * - end: rank 1 aborts that communicator instead
 * - pair: only rank 1's send to rank 0 and that rank's receive there are unlike
 * - late: rank 1 makes no call there until the others' limit is over
 *
 * Exits with 3 if a call returns a wrong result. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/dtrun.h"

enum { MOST_RANKS = 8, FEW = 10 };

static float in[MOST_RANKS * FEW], out[MOST_RANKS * FEW];

static void check(bool good)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", dt_last_error());
    exit(3);
}

static dt_result_t count(dt_comm_t *comm, bool odd)
{
    return dt_all_reduce(comm, in, out, odd ? FEW - 1 : FEW, DT_F32, DT_SUM);
}

static dt_result_t type(dt_comm_t *comm, bool odd)
{
    return dt_all_gather(comm, in, out, FEW, odd ? DT_I32 : DT_F32);
}

static dt_result_t op(dt_comm_t *comm, bool odd)
{
    return dt_all_reduce(comm, in, out, FEW, DT_F32, odd ? DT_MAX : DT_SUM);
}

static dt_result_t root(dt_comm_t *comm, bool odd)
{
    return dt_scatter(comm, in, out, FEW, DT_F32, odd);
}

static dt_result_t collective(dt_comm_t *comm, bool odd)
{
    return odd ? dt_all_to_all(comm, in, out, FEW, DT_F32)
               : dt_all_gather(comm, in, out, FEW, DT_F32);
}

static dt_result_t order(dt_comm_t *comm, bool odd)
{
    dt_result_t r = odd ? dt_barrier(comm) : dt_all_reduce(comm, in, out, FEW, DT_F32, DT_SUM);

    return r != DT_OK ? r
           : odd      ? dt_all_reduce(comm, in, out, FEW, DT_F32, DT_SUM)
                      : dt_barrier(comm);
}

static dt_result_t spread(dt_comm_t *comm, bool odd)
{
    return dt_broadcast(comm, in, FEW, DT_F32, odd);
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void quarrel(const char *name, dt_result_t (*call)(dt_comm_t *comm, bool odd))
{
    dt_comm_t *comm;
    double began;

    check(dt_comm_dup(DT_WORLD, &comm) == DT_OK && dt_barrier(DT_WORLD) == DT_OK);
    began = now_ms();
    check(call(comm, dt_rank() == 1) == DT_ERR_MISMATCH);
    printf("%s %.0f: %s\n", name, now_ms() - began, dt_last_error());
    check(dt_comm_free(comm) == DT_ERR_MISMATCH);
}

static void break_one(dt_comm_t *comm, bool abort_it)
{
    if (abort_it && dt_rank() == 1)
        check(dt_comm_abort(comm) == DT_OK);
    check(count(comm, dt_rank() == 1) == (abort_it ? DT_ERR_ABORTED : DT_ERR_MISMATCH));
}

static void miss(dt_comm_t *comm)
{
    check(dt_comm_set_timeout(comm, 1) == DT_OK);
    while (dt_rank() == 1 && dt_comm_status(comm) == DT_OK)
        usleep(1000);
    check(dt_barrier(comm) == DT_ERR_TIMEOUT);
}

static void pass(dt_comm_t *comm)
{
    if (dt_rank() == 0)
        check(dt_recv(comm, in, FEW, DT_F32, 1) == DT_ERR_MISMATCH);
    if (dt_rank() == 1)
        check(dt_send(comm, out, FEW - 1, DT_F32, 0) == DT_ERR_MISMATCH);
}

/* Exits with 0 in spite of the error, as programs do that ignore results. */
static int break_what(const char *how)
{
    bool world = strcmp(how, "world") == 0 || strcmp(how, "abort") == 0;
    dt_comm_t *comm = DT_WORLD;

    check(world || dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    if (strcmp(how, "late") == 0)
        miss(comm);
    else if (strcmp(how, "pair") == 0)
        pass(comm);
    else
        break_one(comm, strcmp(how, "abort") == 0 || strcmp(how, "end") == 0);
    if (strcmp(how, "drop") == 0)
        check(dt_comm_abort(comm) == DT_OK);
    (void)dt_finalize();
    return 0;
}

int main(int argc, char **argv)
{
    check(dt_init() == DT_OK && dt_size() <= MOST_RANKS);
    if (argc > 1)
        return break_what(argv[1]);
    quarrel("count", count);
    quarrel("type", type);
    quarrel("op", op);
    quarrel("root", root);
    quarrel("collective", collective);
    quarrel("order", order);
    quarrel("spread", spread);
    check(dt_finalize() == DT_OK);
    return 0;
}
