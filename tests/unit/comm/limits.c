/* What the agent reads of a rank's calls. First of all how long each may wait: as long as
 * dt_comm_set_timeout said when the call was made, whatever it says later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "runtime/api/context.h"
#include "runtime/comm/slots.h"
#include "runtime/dtrun.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

enum { LARGE = 1 << 20 }; /* rank 1 must take some of it before it is told to go on */

static const char *const placements[] = { "2", "1 1", NULL };

static _Atomic int *come; /* how many of rank 0's calls rank 1 may join */
static dt_comm_t *comm;

static int follow(int call)
{
    while (*come < call)
        usleep(500);
    return 1;
}

/* ---- what is noted about this rank ---- */

struct noted {
    uint64_t words[DT_HOSTSHM_PLACES];
    uint32_t limits_ms[DT_HOSTSHM_PLACES];
    uint32_t least_ms;
    uint64_t signature;
    uint32_t calls; /* that have reached the communicator and are not over */
};

static void see_noted(struct dt_comm *c, void *arg)
{
    struct dt_hostshm_rank *me = &c->shm.map.ranks[c->local_rank];
    struct dt_ticketlock *lock = &c->slot->lock;
    struct noted *n = arg;

    for (int i = 0; i < DT_HOSTSHM_PLACES; i++) {
        n->words[i] = i ? me->pairs[i - 1] : me->call;
        n->limits_ms[i] = me->limits_ms[i];
    }
    n->least_ms = me->least_limit_ms;
    n->signature = me->signature;
    n->calls = lock->next - lock->served;
}

static struct noted look(dt_comm_t *at)
{
    struct noted n = { 0 };

    dt_context_visit("look", at, see_noted, &n);
    return n;
}

static uint32_t limit_of(const struct noted *n, enum dt_call_kind kind)
{
    for (int i = 0; i < DT_HOSTSHM_PLACES; i++) {
        if ((n->words[i] & 0xff) == (DT_HOSTSHM_INSIDE | (unsigned)kind))
            return n->limits_ms[i];
    }
    return DT_HOSTSHM_NO_LIMIT;
}

/* The limit of the call of that kind that this rank is in, or will be in unless rank 1 has
 * failed. */
static uint32_t limit_in(dt_comm_t *at, enum dt_call_kind kind)
{
    struct noted n = look(at);

    while (limit_of(&n, kind) == DT_HOSTSHM_NO_LIMIT && *come < INT_MAX) {
        usleep(500);
        n = look(at);
    }
    return limit_of(&n, kind);
}

static int begin(dt_comm_t **out)
{
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_dup(DT_WORLD, out) == DT_OK);
    return 0;
}

static int (*follows)(int rank, void *arg);

/* A rank that fails lets the other one go on and fail, too. */
static int pass(int rank, void *arg)
{
    int failed = follows(rank, arg);

    if (failed)
        *come = INT_MAX;
    return failed;
}

static void run(int (*body)(int rank, void *arg))
{
    follows = body;
    for (int i = 0; placements[i]; i++) {
        *come = 0;
        testjob_must_pass(placements[i], pass, NULL);
    }
}

/* ---- of all ranks ---- */

static int ask_for_two(int rank, void *arg)
{
    dt_request_t reduced, met;
    int x = 1;

    (void)arg;
    NEED(begin(&comm) == 0);
    if (rank == 1) {
        NEED(follow(1) && dt_all_reduce(comm, DT_IN_PLACE, &x, 1, DT_I32, DT_SUM) == DT_OK);
        NEED(follow(2) && dt_barrier(comm) == DT_OK);
        NEED(dt_finalize() == DT_OK);
        return 0;
    }
    NEED(dt_comm_set_timeout(comm, 5) == DT_OK);
    NEED(dt_iall_reduce(comm, DT_IN_PLACE, &x, 1, DT_I32, DT_SUM, &reduced) == DT_OK);
    NEED(dt_comm_set_timeout(comm, 60) == DT_OK);
    NEED(dt_ibarrier(comm, &met) == DT_OK);
    NEED(dt_comm_set_timeout(comm, DT_TIMEOUT_DEFAULT) == DT_OK);
    NEED(limit_in(comm, DT_CALL_ALL_REDUCE) == 5000 && look(comm).least_ms == 5000);
    *come = 1;
    NEED(dt_wait(&reduced) == DT_OK && x == 2);
    NEED(limit_in(comm, DT_CALL_BARRIER) == 60000 && look(comm).least_ms == 5000);
    *come = 2;
    NEED(dt_wait(&met) == DT_OK && look(comm).least_ms == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void each_background_call_has_its_own_limit(void **state)
{
    (void)state;
    run(ask_for_two);
}

static void *meet(void *result)
{
    *(dt_result_t *)result = dt_barrier(comm);
    return NULL;
}

static int come_behind(int rank, void *arg)
{
    dt_result_t met = DT_ERR_INTERNAL;
    dt_request_t first;
    pthread_t thread;

    (void)arg;
    NEED(begin(&comm) == 0);
    if (rank == 1) {
        NEED(follow(1) && dt_barrier(comm) == DT_OK);
        NEED(follow(2) && dt_barrier(comm) == DT_OK);
        NEED(dt_finalize() == DT_OK);
        return 0;
    }
    NEED(dt_comm_set_timeout(comm, 0) == DT_OK && dt_ibarrier(comm, &first) == DT_OK);
    NEED(dt_comm_set_timeout(comm, 7) == DT_OK);
    NEED(pthread_create(&thread, NULL, meet, &met) == 0);
    while (look(comm).calls < 2)
        usleep(500);
    NEED(dt_comm_set_timeout(comm, 9) == DT_OK && look(comm).least_ms == 7000);
    *come = 1;
    NEED(dt_wait(&first) == DT_OK);
    NEED(limit_in(comm, DT_CALL_BARRIER) == 7000);
    *come = 2;
    pthread_join(thread, NULL);
    NEED(met == DT_OK && look(comm).least_ms == 9000);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_thread_that_waits_for_its_turn_keeps_its_limit(void **state)
{
    (void)state;
    run(come_behind);
}

static int push(int rank, void *arg)
{
    dt_bucket_t *bucket;
    int x[2] = { rank, 1 };

    (void)arg;
    NEED(begin(&comm) == 0);
    NEED(dt_bucket_create(comm, sizeof x, DT_I32, DT_SUM, &bucket) == DT_OK);
    NEED(rank == 0 || follow(1));
    NEED(dt_comm_set_timeout(comm, 5) == DT_OK);
    NEED(dt_bucket_push(bucket, x, 2) == DT_OK);
    NEED(dt_comm_set_timeout(comm, 60) == DT_OK);
    NEED(rank == 1 || limit_in(comm, DT_CALL_ALL_REDUCE) == 5000);
    *come = 1;
    NEED(dt_bucket_wait(bucket) == DT_OK && x[0] == 1 && x[1] == 2);
    NEED(look(comm).least_ms == 60000);
    NEED(dt_bucket_free(bucket) == DT_OK && dt_finalize() == DT_OK);
    return 0;
}

static void a_bucket_keeps_the_limit_of_its_push(void **state)
{
    (void)state;
    run(push);
}

/* ---- between two ranks ---- */

static void *await(void *request)
{
    return dt_wait(request) == DT_OK ? NULL : request;
}

static void *give(void *buf)
{
    return dt_send(comm, buf, 1, DT_I32, 1) == DT_OK ? NULL : buf;
}

static int take_and_give(void)
{
    static char large[LARGE];
    int x = 7;

    NEED(follow(1) && dt_send(comm, &x, 1, DT_I32, 0) == DT_OK);
    NEED(dt_recv(comm, large, LARGE, DT_I8, 0) == DT_OK);
    NEED(follow(2) && dt_recv(comm, &x, 1, DT_I32, 0) == DT_OK && x == 8);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static int pass_both_ways(int rank, void *arg)
{
    static char large[LARGE];
    dt_request_t taken, given;
    pthread_t taker, giver;
    int got = 0, x = 8;
    struct noted n;
    void *bad[2];

    (void)arg;
    NEED(begin(&comm) == 0);
    if (rank == 1)
        return take_and_give();
    NEED(dt_comm_set_timeout(comm, 5) == DT_OK);
    NEED(dt_irecv(comm, &got, 1, DT_I32, 1, &taken) == DT_OK);
    NEED(dt_comm_set_timeout(comm, 600) == DT_OK);
    NEED(dt_isend(comm, large, LARGE, DT_I8, 1, &given) == DT_OK);
    NEED(dt_comm_set_timeout(comm, 60) == DT_OK);
    NEED(pthread_create(&taker, NULL, await, &taken) == 0);
    NEED(pthread_create(&giver, NULL, give, &x) == 0); /* behind the sends under way */
    NEED(limit_in(comm, DT_CALL_SEND) == 60000 && limit_in(comm, DT_CALL_RECV) == 5000);
    NEED(dt_comm_set_timeout(comm, 100) == DT_OK);
    n = look(comm);
    NEED(limit_of(&n, DT_CALL_SEND) == 60000 && limit_of(&n, DT_CALL_RECV) == 5000);
    NEED(n.least_ms == 5000);
    *come = 1;
    pthread_join(taker, &bad[0]);
    NEED(!bad[0] && got == 7 && dt_wait(&given) == DT_OK && look(comm).least_ms == 5000);
    *come = 2;
    pthread_join(giver, &bad[1]);
    NEED(!bad[1]);
    n = look(comm);
    for (int i = 1; i < DT_HOSTSHM_PLACES; i++)
        NEED(!(n.words[i] & DT_HOSTSHM_INSIDE));
    NEED(n.least_ms == 100000);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void each_call_of_a_pair_has_its_own_limit(void **state)
{
    (void)state;
    run(pass_both_ways);
}

/* ---- new communicators, and the end of communicators ---- */

static dt_comm_t *child;

static void *free_child(void *result)
{
    *(dt_result_t *)result = dt_comm_free(child);
    return NULL;
}

static void *leave(void *result)
{
    *(dt_result_t *)result = dt_finalize();
    return NULL;
}

static int end_it(void *(*ends)(void *), dt_comm_t *at, enum dt_call_kind kind)
{
    dt_result_t result = DT_ERR_INTERNAL;
    pthread_t thread;

    NEED(pthread_create(&thread, NULL, ends, &result) == 0);
    NEED(limit_in(at, kind) == 5000);
    NEED(dt_comm_set_timeout(at, 60) == (kind == DT_CALL_FREE ? DT_OK : DT_ERR_STATE));
    NEED(limit_in(at, kind) == 5000);
    *come += 1;
    pthread_join(thread, NULL);
    NEED(result == DT_OK && dt_comm_set_timeout(at, 60) == DT_ERR_STATE);
    return 0;
}

static int make_and_end(int rank, void *arg)
{
    dt_request_t request;

    (void)arg;
    NEED(begin(&comm) == 0);
    NEED(dt_comm_set_timeout(comm, 5) == DT_OK);
    NEED(dt_comm_dup(comm, &child) == DT_OK && look(child).least_ms == 5000);
    NEED(dt_comm_set_timeout(comm, 60) == DT_OK);
    if (rank == 1) {
        NEED(follow(1) && dt_barrier(child) == DT_OK);
        NEED(follow(2) && dt_comm_free(child) == DT_OK);
        NEED(follow(3) && dt_finalize() == DT_OK);
        return 0;
    }
    NEED(dt_ibarrier(child, &request) == DT_OK && limit_in(child, DT_CALL_BARRIER) == 5000);
    *come = 1;
    NEED(dt_wait(&request) == DT_OK);
    NEED(end_it(free_child, child, DT_CALL_FREE) == 0);
    NEED(dt_comm_set_timeout(DT_WORLD, 5) == DT_OK);
    NEED(end_it(leave, DT_WORLD, DT_CALL_FINALIZE) == 0);
    return 0;
}

static void a_new_communicator_inherits_its_parents_limit(void **state)
{
    (void)state;
    run(make_and_end);
}

/* Frees a communicator with calls under way between two ranks. */
static int free_early(int rank, void *arg)
{
    dt_result_t freed = DT_ERR_INTERNAL;
    dt_request_t request;
    pthread_t thread;
    int x;

    (void)arg;
    NEED(begin(&child) == 0);
    if (rank == 1) {
        freed = dt_comm_free(child); /* it may learn of the abort inside the call */
        NEED((freed == DT_OK || freed == DT_ERR_ABORTED) && dt_finalize() == DT_OK);
        return 0;
    }
    NEED(dt_comm_set_timeout(child, 60) == DT_OK);
    NEED(dt_irecv(child, &x, 1, DT_I32, 1, &request) == DT_OK);
    NEED(dt_comm_set_timeout(child, 5) == DT_OK);
    NEED(pthread_create(&thread, NULL, free_child, &freed) == 0);
    NEED(limit_in(child, DT_CALL_RECV) == 5000);
    NEED(dt_comm_abort(child) == DT_OK);
    pthread_join(thread, NULL);
    NEED(freed == DT_OK && dt_wait(&request) == DT_ERR_ABORTED && dt_finalize() == DT_OK);
    return 0;
}

static void dt_comm_free_waits_with_the_communicators_limit(void **state)
{
    (void)state;
    run(free_early);
}

/* ---- what the agent learns ---- */

/* A report costs a message, and another one to dtrun. */
static int set_some(int rank, void *arg)
{
    static const struct {
        uint32_t ms;
        bool least;
        bool least_after; /* when no call with a shorter limit is under way */
    } cases[] = {
        { 5000, true, true },  { 5000, false, false }, { 60000, false, false },
        { 5000, false, true }, { 0, false, false },    { DT_HOSTSHM_NO_LIMIT, false, false },
        { 5000, false, true }, { 3000, true, true },   { 0, false, false },
    };
    const size_t n = sizeof cases / sizeof *cases;
    dt_request_t met;
    bool least;

    (void)arg;
    NEED(begin(&comm) == 0);
    if (rank == 0)
        NEED(dt_ibarrier(comm, &met) == DT_OK);
    for (size_t i = 0; i < n && rank == 0; i++)
        NEED(dt_slot_set_limit(comm, cases[i].ms, &least) && least == cases[i].least);
    *come = rank == 0 ? 1 : *come;
    NEED(rank == 0 ? dt_wait(&met) == DT_OK : follow(1) && dt_barrier(comm) == DT_OK);
    for (size_t i = 0; i < n; i++)
        NEED(dt_slot_set_limit(comm, cases[i].ms, &least) && least == cases[i].least_after);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void only_a_shorter_limit_is_reported_to_the_agent(void **state)
{
    (void)state;
    run(set_some);
}

static dt_result_t look_inside(struct dt_comm *c, void *arg)
{
    see_noted(c, arg);
    return DT_OK;
}

static void be_aside(struct dt_comm *c, void *arg)
{
    dt_comm_aside(c, DT_CALL_GPU_CHOICE, look_inside, arg);
}

/* It has the number of the collective before it, in which another host's rank may still be. */
static int be_alone(int rank, void *arg)
{
    struct noted n = { 0 };

    (void)arg;
    NEED(begin(&comm) == 0);
    NEED(dt_barrier(comm) == DT_OK);
    NEED((look(comm).signature != 0) == (dt_local_size() == 1)); /* of the barrier, between hosts */
    dt_context_visit("look", comm, be_aside, &n);
    NEED(limit_of(&n, DT_CALL_GPU_CHOICE) != DT_HOSTSHM_NO_LIMIT && n.signature == 0);
    NEED(dt_finalize() == DT_OK);
    return rank < 0;
}

static void a_call_of_one_rank_is_not_compared_with_others(void **state)
{
    (void)state;
    run(be_alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_background_call_has_its_own_limit),
        cmocka_unit_test(a_thread_that_waits_for_its_turn_keeps_its_limit),
        cmocka_unit_test(a_bucket_keeps_the_limit_of_its_push),
        cmocka_unit_test(each_call_of_a_pair_has_its_own_limit),
        cmocka_unit_test(a_new_communicator_inherits_its_parents_limit),
        cmocka_unit_test(dt_comm_free_waits_with_the_communicators_limit),
        cmocka_unit_test(only_a_shorter_limit_is_reported_to_the_agent),
        cmocka_unit_test(a_call_of_one_rank_is_not_compared_with_others),
    };

    come = testjob_shared(sizeof *come);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
