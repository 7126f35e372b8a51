/* Ranks that do not join calls. The last rank stays away. The argument says from which call:
 *
 * - never: from a barrier of some ranks
 * - join: the same, but rank 0 has no more data
 * - send, recv, irecv: from a message that rank 0 sends or wants to receive
 * - behind: from a message that rank 0 sends before the one that the last rank waits for
 * - free: from a message that rank 0 wants to receive on a communicator that all free
 * - cross: it is in dt_finalize instead
 * - aside: it waits for rank 0, whose call with all ranks is in the background
 * - chain: from a barrier of all but rank 0, which rank 0 waits for
 * - own SECONDS: from a barrier with a timeout of its own, after which all go on
 * - several: from calls in the background, each with a timeout of its own
 * - loop: it joins every barrier of some ranks until it is stopped from outside
 * - crowd: from calls of rank 0's threads, one of which has a timeout
 * - differ: half of the ranks make a different call
 * - request: rank 0 waits briefly for a request, then until it is done
 * - ring: all ranks send to the next one, and none receives
 * - itself: rank 0 first sends to itself on a communicator of its own and only then receives; the
 *   others stay away
 * - told: as never, but it prints a line and ends when it gets SIGTERM; the others have one more
 *   thread and wait for a second
 *
 * Exits with 3 when a call fails, and prints why. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/dtrun.h"

enum { LOOPS = 1000 * 1000, CROWD = 16 };

static void check(dt_result_t r)
{
    if (r == DT_OK)
        return;
    fprintf(stderr, "%s\n", dt_last_error());
    exit(3);
}

static void stay_away(void)
{
    for (;;)
        pause();
}

static void behind(dt_comm_t *comm, int peer)
{
    dt_request_t request;
    int buf = 7;

    check(dt_isend(comm, &buf, 1, DT_I32, peer, &request));
    check(dt_send(comm, &buf, 1, DT_I32, peer));
}

static void free_early(dt_comm_t *comm)
{
    dt_request_t request = { 0 };
    int buf;

    if (dt_rank() == 0)
        check(dt_irecv(comm, &buf, 1, DT_I32, dt_size() - 1, &request));
    check(dt_comm_free(comm));
    if (dt_rank() > 0)
        stay_away();
    check(dt_wait(&request));
}

static void pass(dt_comm_t *comm, bool last, const char *how)
{
    dt_request_t request = { 0 };
    int buf = 7, peer = dt_size() - 1;

    if (last)
        stay_away();
    if (dt_rank() > 0)
        check(dt_barrier(DT_WORLD));
    else if (strcmp(how, "send") == 0)
        check(dt_send(comm, &buf, 1, DT_I32, peer));
    else if (strcmp(how, "behind") == 0)
        behind(comm, peer);
    else if (strcmp(how, "recv") == 0)
        check(dt_recv(comm, &buf, 1, DT_I32, peer));
    else
        check(dt_irecv(comm, &buf, 1, DT_I32, peer, &request));
    check(dt_wait(&request));
}

static void send_to_itself(dt_comm_t *comm)
{
    dt_comm_t *self;
    int buf = 7;

    check(dt_comm_split(comm, dt_rank(), 0, &self));
    if (dt_rank() > 0)
        stay_away();
    check(dt_send(self, &buf, 1, DT_I32, 0));
    check(dt_recv(self, &buf, 1, DT_I32, 0));
}

/* Rank 0 has a call with all ranks in the background, and might still send the message that the
 * last rank waits for. */
static void aside(dt_comm_t *comm, bool last)
{
    dt_request_t request;
    int buf;

    if (dt_rank() == 0) {
        check(dt_ibarrier(comm, &request));
        stay_away();
    }
    if (last)
        check(dt_recv(comm, &buf, 1, DT_I32, 0));
    check(dt_barrier(comm));
}

/* Rank 0 is in a call with all ranks. The others, except the last, are in a call without rank 0. */
static void chain(bool last)
{
    dt_comm_t *most;

    check(dt_comm_split(DT_WORLD, dt_rank() == 0 ? DT_UNDEFINED : 0, 0, &most));
    if (last)
        stay_away();
    check(dt_barrier(dt_rank() == 0 ? DT_WORLD : most));
}

static void join(dt_comm_t *comm, bool last)
{
    check(dt_join_begin(comm));
    if (last)
        stay_away();
    check(dt_rank() == 0 ? dt_join(comm, NULL) : dt_barrier(comm));
}

static void time_out(dt_comm_t *comm, bool last, double seconds)
{
    dt_comm_t *child;

    check(dt_comm_set_timeout(comm, seconds));
    check(dt_comm_dup(comm, &child));
    if (!last) {
        dt_result_t r = dt_barrier(child);

        fprintf(stderr, "%d: %s\n", r, dt_last_error());
        r = dt_barrier(child);
        printf("again: %s\n", dt_strerror(r));
    }
    check(dt_barrier(DT_WORLD));
    check(dt_barrier(comm));
    check(dt_comm_abort(child)); /* it has been dealt with */
    check(dt_finalize());
    exit(0);
}

static void tell_last(void)
{
    int word = 0;

    if (dt_rank() == 0)
        check(dt_send(DT_WORLD, &word, 1, DT_I32, dt_size() - 1));
}

static void be_told(void)
{
    int word;

    check(dt_recv(DT_WORLD, &word, 1, DT_I32, 0));
}

static void end_of(const char *name, dt_request_t *request)
{
    dt_result_t r = dt_wait(request);

    fprintf(stderr, "%s: %d: %s\n", name, r, r == DT_OK ? "" : dt_last_error());
}

/* Of two calls with all ranks, the first has the shorter timeout on "brief", and the second on
 * "lasting". The last rank joins the first call on "lasting" once those on "brief" are over. */
static void time_out_in_turn(dt_comm_t *brief, dt_comm_t *lasting, bool last)
{
    dt_request_t first, second, third;
    int x[3] = { 1, 1, 1 }, done = 1;

    if (last) {
        be_told();
        be_told();
        check(dt_all_reduce(lasting, DT_IN_PLACE, x, 1, DT_I32, DT_SUM));
        return;
    }
    check(dt_comm_set_timeout(lasting, 600));
    check(dt_iall_reduce(lasting, DT_IN_PLACE, x, 1, DT_I32, DT_SUM, &third));
    check(dt_comm_set_timeout(lasting, 1));
    check(dt_comm_set_timeout(brief, 2));
    check(dt_iall_reduce(brief, DT_IN_PLACE, x + 1, 1, DT_I32, DT_SUM, &first));
    check(dt_comm_set_timeout(brief, 600));
    check(dt_iall_reduce(brief, DT_IN_PLACE, x + 2, 1, DT_I32, DT_SUM, &second));
    tell_last();
    end_of("first", &first);
    end_of("second", &second);
    check(dt_test(&third, &done));
    tell_last();
    check(dt_wait(&third));
    printf("third: %d, then %d\n", done, x[0]);
    check(dt_ibarrier(lasting, &third));
    end_of("fourth", &third);
}

static void time_out_each(dt_comm_t *comm, bool last)
{
    dt_comm_t *brief, *lasting;
    dt_request_t request;
    int buf;

    check(dt_comm_dup(comm, &brief));
    check(dt_comm_dup(comm, &lasting));
    time_out_in_turn(brief, lasting, last);
    if (dt_rank() == 0) {
        check(dt_comm_set_timeout(comm, 1));
        check(dt_irecv(comm, &buf, 1, DT_I32, dt_size() - 1, &request));
        check(dt_comm_set_timeout(comm, 600));
        end_of("fifth", &request);
    }
    check(dt_barrier(DT_WORLD));
    check(dt_comm_abort(comm));
    check(dt_comm_abort(brief));
    check(dt_comm_abort(lasting));
    check(dt_finalize());
    exit(0);
}

static void meet_often(void)
{
    for (int i = 0; i < 1000; i++)
        check(dt_barrier(DT_WORLD));
}

static void *wait_in_vain(void *request)
{
    return dt_wait(request) == DT_ERR_TIMEOUT ? NULL : request;
}

/* Starts to wait when most of the other threads are waiting already. */
static void wait_in_crowd(dt_comm_t *comm)
{
    dt_request_t requests[CROWD], last;
    pthread_t threads[CROWD];
    void *failed = NULL;
    int buf[CROWD + 1];

    check(dt_comm_set_timeout(comm, 0));
    for (int i = 0; i < CROWD; i++)
        check(dt_irecv(comm, &buf[i], 1, DT_I32, 1, &requests[i]));
    check(dt_comm_set_timeout(comm, 1));
    check(dt_irecv(comm, &buf[CROWD], 1, DT_I32, dt_size() - 1, &last));
    for (int i = 0; i < CROWD; i++) {
        if (pthread_create(&threads[i], NULL, wait_in_vain, &requests[i]))
            abort();
    }
    meet_often();
    end_of("last", &last);
    for (int i = 0; i < CROWD && !failed; i++)
        pthread_join(threads[i], &failed);
    printf("all: %d\n", !failed);
}

static void crowd(dt_comm_t *comm)
{
    if (dt_rank() == 0)
        wait_in_crowd(comm);
    else
        meet_often();
    check(dt_barrier(DT_WORLD));
    check(dt_comm_abort(comm));
    check(dt_finalize());
    exit(0);
}

/* Half of the ranks make a different call. */
static void differ(void)
{
    dt_all_reduce_options_t options = DT_ALL_REDUCE_OPTIONS_INIT;
    static float data[65536];

    options.wire = DT_WIRE_F16;
    if (dt_rank() < dt_size() / 2)
        check(dt_all_reduce_with(DT_WORLD, data, data, 65536, DT_F32, DT_SUM, &options));
    else
        check(dt_barrier(DT_WORLD));
}

static void loop(dt_comm_t *comm)
{
    for (int i = 0; i < LOOPS; i++) {
        check(dt_barrier(comm));
        printf("%d\n", i);
        fflush(stdout);
        usleep(10000);
    }
}

static void request(dt_comm_t *comm, bool last)
{
    dt_request_t request;
    int in = 1, out = 0, done = 1;

    if (!last) {
        check(dt_iall_reduce(comm, &in, &out, 1, DT_I32, DT_SUM, &request));
        check(dt_wait_for(&request, 0.2, &done));
        printf("done: %d\n", done);
    }
    check(dt_barrier(DT_WORLD));
    if (last)
        check(dt_iall_reduce(comm, &in, &out, 1, DT_I32, DT_SUM, &request));
    check(dt_wait_for(&request, 1000, &done));
    printf("done: %d, %d, none: %d\n", done, out, request.id == 0);
    check(dt_wait_for(&request, 0, &done));
    check(dt_finalize());
    exit(0);
}

static void ring(dt_comm_t *comm)
{
    int buf = 7;

    check(dt_barrier(comm));
    check(dt_send(comm, &buf, 1, DT_I32, (dt_rank() + 1) % dt_size()));
}

static void *idle(void *arg)
{
    (void)arg;
    stay_away();
    return NULL;
}

static void told(bool last)
{
    pthread_t thread;
    sigset_t term;
    int signo;

    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    if (last)
        pthread_sigmask(SIG_BLOCK, &term, NULL);
    check(dt_barrier(DT_WORLD));
    if (last) {
        sigwait(&term, &signo);
        puts("told to end");
        fflush(stdout);
        exit(0);
    }
    if (pthread_create(&thread, NULL, idle, NULL))
        abort();
    check(dt_comm_set_timeout(DT_WORLD, 1));
    check(dt_barrier(DT_WORLD));
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    dt_comm_t *some;
    bool last;

    check(dt_init());
    last = dt_rank() == dt_size() - 1;
    check(dt_comm_split(DT_WORLD, 0, 0, &some));
    if (strcmp(how, "own") == 0)
        time_out(some, last, argc > 2 ? atof(argv[2]) : 1);
    else if (strcmp(how, "several") == 0)
        time_out_each(some, last);
    else if (strcmp(how, "crowd") == 0)
        crowd(some);
    else if (strcmp(how, "differ") == 0)
        differ();
    else if (strcmp(how, "request") == 0)
        request(some, last);
    else if (strcmp(how, "loop") == 0)
        loop(some);
    else if (strcmp(how, "free") == 0)
        free_early(some);
    else if (strcmp(how, "aside") == 0)
        aside(some, last);
    else if (strcmp(how, "chain") == 0)
        chain(last);
    else if (strcmp(how, "join") == 0)
        join(some, last);
    else if (strcmp(how, "ring") == 0)
        ring(some);
    else if (strcmp(how, "itself") == 0)
        send_to_itself(some);
    else if (strcmp(how, "told") == 0)
        told(last);
    else if (strstr("send recv irecv behind", how) && *how)
        pass(some, last, how);
    else if (last && strcmp(how, "never") == 0)
        stay_away();
    else if (last && strcmp(how, "cross") == 0)
        check(dt_finalize());
    else
        check(dt_barrier(some));
    return 0;
}
