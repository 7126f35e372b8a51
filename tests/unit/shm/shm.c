/* The collectives of a host between threads that share one mapping, so that a thread sanitizer sees
 * all accesses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/kernels/reduce.h"
#include "runtime/shm/rounds.h"
#include "runtime/world/config.h"
#include "tests/unit/forbid.h"
#include "tests/unit/sanitized.h"

enum {
    RANKS = 4,
    CALLS = 300,
    LARGE = SANITIZED ? 50000 : 200000,
    HUGE_CALL = 91,
    MOST = SANITIZED ? 300000 : 2200000, /* without a sanitizer, more bytes than shm_huge */
    UNTOUCHED = 0xa5
};

static struct dt_hostshm map;
static pthread_barrier_t stopping;

struct seat {
    pthread_t thread;
    uint32_t me;
    unsigned cpus;   /* one for each: waits spin first; otherwise they yield and sleep */
    bool far;        /* data bypasses the caches */
    bool forbidden;  /* membarrier(2), after the first round */
    const char *bad; /* what went wrong */
};

/* The counts are the same on every rank. */
static size_t count_of(unsigned call)
{
    unsigned x = call * 2654435761U;

    if (call == HUGE_CALL)
        return MOST;
    return (x >> 8) % (call % 10 == 0 ? LARGE : 3000);
}

/* In place and out of place in turns. reduce: to one rank only. */
static bool sums_are_right(struct dt_shm *s, const struct dt_call *call, int64_t *buf, bool reduce)
{
    uint32_t root = (uint32_t)(call->number / 3 % RANKS);
    bool mine = !reduce || s->me == root;
    int64_t *in = call->number % 2 ? buf : buf + MOST, *seen = mine ? buf : in;
    dt_result_t r;

    for (size_t i = 0; i < call->count; i++)
        in[i] = (int64_t)(i + s->me + call->number);
    r = reduce ? dt_shm_reduce(s, call, in, mine ? buf : NULL, root, 1)
               : dt_shm_all_reduce(s, call, in, buf);
    if (r != DT_OK)
        return false;
    for (size_t i = 0; i < call->count; i++) {
        if (seen[i] != (mine ? (int64_t)(RANKS * (i + call->number) + RANKS * (RANKS - 1) / 2)
                             : (int64_t)(i + s->me + call->number)))
            return false;
    }
    return true;
}

static bool share_is_right(struct dt_shm *s, const struct dt_call *call, int64_t *buf)
{
    uint32_t root = (uint32_t)(call->number % RANKS);

    for (size_t i = 0; i < call->count; i++)
        buf[i] = s->me == root ? (int64_t)(i + call->number) : -1;
    if (dt_shm_broadcast(s, buf, call->count * sizeof *buf, root) != DT_OK)
        return false;
    for (size_t i = 0; i < call->count; i++) {
        if (buf[i] != (int64_t)(i + call->number))
            return false;
    }
    return true;
}

static void *rank(void *arg)
{
    struct seat *seat = arg;
    struct dt_coll_error coll_error;
    struct dt_shm s = { .map = map, .me = seat->me, .n = RANKS, .coll_error = &coll_error };
    const uint64_t cpus[DT_HOSTSHM_CPUS / 64] = { [1] = 1U << seat->me % seat->cpus };
    const struct dt_call first = { .kind = 2 };
    struct dt_tuning past = dt_tuning_builtin;
    int64_t *buf = malloc(2 * MOST * sizeof *buf);
    unsigned delay = seat->me;
    uint64_t packed;

    dt_shm_start(&s, cpus);
    packed = s.yields;
    if (dt_shm_begin(&s, &first) != DT_OK)
        seat->bad = "first meeting";
    dt_shm_choose_wait(&s);
    if ((s.spins > 0) != (seat->cpus == RANKS))
        seat->bad = "spins";
    if ((s.yields > packed) != (seat->cpus > RANKS / 2))
        seat->bad = "yields";
    if (s.packed != (seat->cpus <= RANKS / 2))
        seat->bad = "whether ranks share every CPU";
    if (seat->forbidden && !forbid(SYS_membarrier, EPERM))
        seat->bad = "seccomp";
    if (seat->forbidden)
        s.yields = 0; /* it asks for the barrier when it falls asleep */
    past.shm_huge = 1;
    if (seat->far)
        s.tuning = &past;
    for (unsigned i = 1; i <= CALLS && !seat->bad; i++) {
        struct dt_call call = {
            .number = i, .count = count_of(i), .kind = 1, .dtype = DT_I64, .op = DT_SUM
        };

        if (rand_r(&delay) % 10 == 0)
            usleep((unsigned)rand_r(&delay) % 3000);
        if (i % 3 == 0 && (dt_shm_begin(&s, &call) != DT_OK || !share_is_right(&s, &call, buf)))
            seat->bad = "share";
        else if (i % 3 != 0 && !sums_are_right(&s, &call, buf, i % 3 == 1))
            seat->bad = "sum";
    }
    free(buf);
    return NULL;
}

static void run(unsigned cpus, bool fences, bool far, bool forbidden)
{
    struct seat seats[RANKS];
    int fd = dt_hostshm_create(&map, 1, RANKS, 0);

    assert_true(fd >= 0);
    close(fd);
    map.head->fences = fences;
    for (uint32_t i = 0; i < RANKS; i++) {
        seats[i] =
            (struct seat){ .me = i, .cpus = cpus, .far = far, .forbidden = forbidden && i == 1 };
        assert_int_equal(pthread_create(&seats[i].thread, NULL, rank, &seats[i]), 0);
    }
    for (uint32_t i = 0; i < RANKS; i++)
        pthread_join(seats[i].thread, NULL);
    for (uint32_t i = 0; i < RANKS; i++)
        assert_null(seats[i].bad);
    if (forbidden)
        assert_true(map.head->fences); /* all ranks know that they need fences */
    dt_hostshm_unmap(&map);
}

static void results_are_right_while_waits_spin(void **state)
{
    (void)state;
    run(RANKS, false, false, false);
}

/* All ranks but two have a CPU to themselves. */
static void results_are_right_if_only_some_ranks_have_a_cpu_to_themselves(void **state)
{
    (void)state;
    run(RANKS - 1, false, false, false);
}

static void results_are_right_while_waits_yield(void **state)
{
    (void)state;
    run(1, false, false, false);
}

/* Without membarrier(2). */
static void results_are_right_while_waits_yield_with_fences(void **state)
{
    (void)state;
    run(1, true, false, false);
}

/* A program forbids itself system calls after its start. */
static void results_are_right_after_the_barrier_is_forbidden(void **state)
{
    (void)state;
    run(1, false, false, true);
}

/* The caches of the others are far away and too small for the result. */
static void results_are_right_when_data_bypasses_the_caches(void **state)
{
    (void)state;
    run(RANKS, false, true, false);
}

/* How a sum of this many bytes is made if ranks share a CPU. Nothing is measured. */
static const struct {
    size_t bytes; /* 0: of three chunks */
    const char *algorithm;
    unsigned rounds;
    bool in_line; /* the data travels with the word that announces it, and nothing is staged */
} sums[] = {
    { 8, "shm", 1, true },
    { DT_HOSTSHM_INLINE, "shm", 1, true },
    { DT_HOSTSHM_INLINE + 8, "shm", 1, false },
    { 16 * 1024, "shm", 1, false },
    { 16 * 1024 + 8, "shm-blocks", 1, false },
    { 0, "shm-blocks", 3, false },
};

static bool travelled(const struct dt_shm *s, const void *in, size_t bytes, bool in_line)
{
    const uint8_t *staged = dt_round_staging(s, s->me);

    if (!in_line)
        return memcmp(staged, in, bytes) == 0;
    return memcmp(dt_round_post(s, s->me)->data, in, bytes) == 0 && staged[0] == UNTOUCHED;
}

static void *sums_of_sizes(void *arg)
{
    struct seat *seat = arg;
    struct dt_coll_error coll_error;
    struct dt_shm s = { .map = map, .me = seat->me, .n = RANKS, .coll_error = &coll_error };
    const uint64_t cpus[DT_HOSTSHM_CPUS / 64] = { 1 };
    const struct dt_call first = { .kind = 2 };
    size_t most = map.room / DT_HOSTSHM_ROUNDS;
    int64_t *in = malloc(3 * most), *out = malloc(3 * most);

    memset(dt_hostshm_staging(&map, seat->me), UNTOUCHED, map.room);
    dt_shm_start(&s, cpus);
    if (dt_shm_begin(&s, &first) != DT_OK)
        seat->bad = "first meeting";
    dt_shm_choose_wait(&s);
    for (unsigned i = 0; i < sizeof sums / sizeof *sums && !seat->bad; i++) {
        size_t bytes = sums[i].bytes ? sums[i].bytes : 3 * most;
        struct dt_call call = {
            .number = i + 1, .count = bytes / sizeof *in, .kind = 1, .dtype = DT_I64, .op = DT_SUM
        };
        uint64_t before = s.round;

        for (size_t k = 0; k < call.count; k++)
            in[k] = (int64_t)(k + s.me + 1);
        s.algorithm = "shm";
        if (dt_shm_all_reduce(&s, &call, in, out) != DT_OK || out[0] != RANKS * (RANKS + 1) / 2)
            seat->bad = "sum";
        else if (strcmp(s.algorithm, sums[i].algorithm) != 0)
            seat->bad = "algorithm";
        else if (s.round - before != sums[i].rounds)
            seat->bad = "rounds";
        else if (strcmp(s.algorithm, "shm") == 0 && !travelled(&s, in, bytes, sums[i].in_line))
            seat->bad = "where the data stood";
    }
    free(in);
    free(out);
    return NULL;
}

static void take_seats(void *(*body)(void *))
{
    struct seat seats[RANKS];
    int fd = dt_hostshm_create(&map, 1, RANKS, 0);

    assert_true(fd >= 0);
    close(fd);
    for (uint32_t i = 0; i < RANKS; i++) {
        seats[i] = (struct seat){ .me = i };
        assert_int_equal(pthread_create(&seats[i].thread, NULL, body, &seats[i]), 0);
    }
    for (uint32_t i = 0; i < RANKS; i++)
        pthread_join(seats[i].thread, NULL);
    for (uint32_t i = 0; i < RANKS; i++)
        assert_null(seats[i].bad);
    dt_hostshm_unmap(&map);
}

static void few_bytes_travel_with_the_word_that_announces_them(void **state)
{
    (void)state;
    take_seats(sums_of_sizes);
}

/* One rank never comes. Stopping the host wakes the sleeping ones, some of which have timed out. */
static void *waits(void *arg)
{
    struct seat *seat = arg;
    struct dt_coll_error coll_error = { 0 };
    struct dt_shm s = { .map = map, .me = seat->me, .n = RANKS, .coll_error = &coll_error };
    const struct dt_call call = { .number = 1, .kind = 1 };
    const uint64_t cpus[DT_HOSTSHM_CPUS / 64] = { 1 };

    s.ring = dt_ring_open(0);
    dt_ring_begin(s.ring, &call);
    dt_shm_start(&s, cpus);
    s.yields *= seat->me % 2;
    if (dt_shm_begin(&s, &call) != DT_ERR_PEER || coll_error.rank != 99)
        seat->bad = "not stopped";
    if (dt_ring_seconds(s.ring) <= 0)
        seat->bad = "not timed";
    dt_ring_close(s.ring);
    return NULL;
}

static void wake_sleepers(void (*stop_host)(void))
{
    struct seat seats[RANKS - 1];
    int fd = dt_hostshm_create(&map, 1, RANKS, 0);
    int asleep = 0;

    close(fd);
    for (uint32_t i = 0; i < RANKS - 1; i++) {
        seats[i] = (struct seat){ .me = i };
        assert_int_equal(pthread_create(&seats[i].thread, NULL, waits, &seats[i]), 0);
    }
    while (asleep < RANKS - 1) {
        usleep(1000);
        asleep = 0;
        for (uint32_t i = 0; i < RANKS - 1; i++)
            asleep += atomic_load(&map.ranks[i].waits_for) == RANKS;
    }
    stop_host();
    for (uint32_t i = 0; i < RANKS - 1; i++)
        pthread_join(seats[i].thread, NULL);
    for (uint32_t i = 0; i < RANKS - 1; i++)
        assert_null(seats[i].bad);
    dt_hostshm_unmap(&map);
}

static void stop_for_peer(void)
{
    dt_hostshm_stop(&map, DT_ERR_PEER, 99);
}

static void a_stop_wakes_sleepers(void **state)
{
    (void)state;
    wake_sleepers(stop_for_peer);
}

/* Threads stop the host at the same time, each for a reason of its own. */
static void *stops_for_a_reason(void *arg)
{
    const struct seat *seat = arg;
    char why[32];

    snprintf(why, sizeof why, "rank %u fails", seat->me);
    pthread_barrier_wait(&stopping);
    dt_hostshm_stop_because(&map, DT_ERR_NCCL, seat->me, why);
    return NULL;
}

static void the_reason_is_that_of_the_rank_that_stopped_the_host(void **state)
{
    enum { ROUNDS = 1000 };
    struct seat seats[RANKS];
    char expected[32];

    (void)state;
    assert_int_equal(pthread_barrier_init(&stopping, NULL, RANKS), 0);
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t culprit = RANKS;

        close(dt_hostshm_create(&map, 1, RANKS, 0));
        for (uint32_t i = 0; i < RANKS; i++) {
            seats[i] = (struct seat){ .me = i };
            assert_int_equal(pthread_create(&seats[i].thread, NULL, stops_for_a_reason, &seats[i]),
                             0);
        }
        for (uint32_t i = 0; i < RANKS; i++)
            pthread_join(seats[i].thread, NULL);
        assert_int_equal(dt_hostshm_stopped(&map, &culprit), DT_ERR_NCCL);
        snprintf(expected, sizeof expected, "rank %u fails", culprit);
        assert_string_equal(dt_hostshm_why(&map), expected);
        dt_hostshm_unmap(&map);
    }
    pthread_barrier_destroy(&stopping);
}

/* Other ranks died, or stand still, while they wrote their reasons. */
static void a_rank_can_tell_its_reason_whatever_the_others_do(void **state)
{
    (void)state;
    close(dt_hostshm_create(&map, 1, RANKS, 0));
    atomic_store(&map.head->reasons, RANKS);
    dt_hostshm_stop_because(&map, DT_ERR_NCCL, 1, "rank 1 fails");
    assert_int_equal(dt_hostshm_stopped(&map, NULL), DT_ERR_NCCL);
    assert_string_equal(dt_hostshm_why(&map), "rank 1 fails");
    dt_hostshm_unmap(&map);
}

static void a_host_stops_also_without_room_for_a_reason(void **state)
{
    (void)state;
    close(dt_hostshm_create(&map, 1, RANKS, 0));
    atomic_store(&map.head->reasons, RANKS + 1);
    dt_hostshm_stop_because(&map, DT_ERR_NCCL, 1, "rank 1 fails");
    assert_int_equal(dt_hostshm_stopped(&map, NULL), DT_ERR_NCCL);
    assert_string_equal(dt_hostshm_why(&map), "");
    assert_int_equal(atomic_load(&map.reasons[RANKS + 1].stop), 0); /* is other memory */
    dt_hostshm_unmap(&map);
}

/* The first rank that stopped the host died, or stands still, before it woke any other. */
static void stop_halfway(void)
{
    atomic_store(&map.head->stop, (uint64_t)99 << 32 | -DT_ERR_PEER);
    dt_hostshm_stop(&map, DT_ERR_ABORTED, 1);
}

static void a_second_stop_wakes_sleepers_if_the_first_did_not(void **state)
{
    (void)state;
    alarm(180);
    wake_sleepers(stop_halfway);
    alarm(0);
}

/* Does for threads what each rank, which is a process, does for itself. */
static int begin(void **state)
{
    (void)state;
    dt_recorder_start(DT_RECORDER_CALLS);
    return dt_reduce_use(NULL) ? 0 : -1;
}

/* Other ranks may still read what a rank staged in the last round before all synchronised. */
static void staged_bytes_stay_after_a_barrier(void **state)
{
    static const size_t bytes[] = { 1, 2048, 4096, 4112, 16384, 100000 };
    const size_t n = sizeof bytes / sizeof *bytes;
    int fd = dt_hostshm_create(&map, 1, RANKS, 0);

    (void)state;
    assert_true(fd >= 0);
    for (size_t i = 0; i < 4 * n * n; i++) {
        size_t before = bytes[i / 4 % n], after = bytes[i / 4 / n], at;
        const uint64_t cpus[DT_HOSTSHM_CPUS / 64] = { i & 1 ? 1 : 0xff };
        struct dt_shm s = { .map = map, .n = RANKS };

        for (s.me = 0; s.me < RANKS; s.me++)
            dt_shm_start(&s, cpus);
        s.me = 0;
        s.round = i >> 1 & 1;
        dt_round_join(&s, before);
        at = s.at;
        dt_shm_choose_wait(&s);
        assert_int_equal(s.crowded, i & 1);
        dt_round_join(&s, after);
        assert_true(at + before <= s.at || s.at + after <= at);
    }
    dt_hostshm_unmap(&map);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_right_while_waits_spin),
        cmocka_unit_test(results_are_right_if_only_some_ranks_have_a_cpu_to_themselves),
        cmocka_unit_test(results_are_right_while_waits_yield),
        cmocka_unit_test(results_are_right_while_waits_yield_with_fences),
        cmocka_unit_test(results_are_right_after_the_barrier_is_forbidden),
        cmocka_unit_test(results_are_right_when_data_bypasses_the_caches),
        cmocka_unit_test(staged_bytes_stay_after_a_barrier),
        cmocka_unit_test(few_bytes_travel_with_the_word_that_announces_them),
        cmocka_unit_test(a_stop_wakes_sleepers),
        cmocka_unit_test(the_reason_is_that_of_the_rank_that_stopped_the_host),
        cmocka_unit_test(a_rank_can_tell_its_reason_whatever_the_others_do),
        cmocka_unit_test(a_host_stops_also_without_room_for_a_reason),
        cmocka_unit_test(a_second_stop_wakes_sleepers_if_the_first_did_not),
    };

    return cmocka_run_group_tests(tests, begin, NULL);
}
