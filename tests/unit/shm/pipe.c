/* Pipes between ranks: threads share one mapping, so that a thread sanitizer sees all accesses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/shm/pipe.h"
#include "runtime/shm/rounds.h"

enum { RANKS = 3, STREAM = 1000000, PARTS = 4, MOST = 150000 };

static struct dt_hostshm map;
static const uint32_t ranks[RANKS] = { 0, 1, 2 };

struct seat {
    pthread_t thread;
    struct dt_shm s;
    struct dt_coll_error coll_error;
    bool bound; /* to one CPU each, so waits spin first */
    const char *bad;
};

static void set(struct seat *seat, uint32_t me)
{
    const uint64_t cpus[DT_HOSTSHM_CPUS / 64] = { seat->bound ? 1U << me : 1 };

    seat->s = (struct dt_shm){
        .map = map, .me = me, .n = RANKS, .ranks = ranks, .coll_error = &seat->coll_error
    };
    dt_shm_start(&seat->s, cpus);
}

static void create(void)
{
    int fd = dt_hostshm_create(&map, 1, RANKS, 0);

    assert_true(fd >= 0);
    close(fd);
}

/* ---- one thread plays both ends ---- */

static void a_full_pipe_refuses_bytes_and_an_empty_one_has_none(void **state)
{
    struct seat a = { 0 }, b = { 0 };
    uint8_t byte = 7, got = 0;
    struct iovec one = { &byte, 1 }, in = { &got, 1 }, nothing = { NULL, 0 };
    size_t held = 0;

    (void)state;
    create();
    set(&a, 0);
    set(&b, 1);
    assert_false(dt_pipe_may_read(&b.s, 0));
    assert_int_equal(dt_pipe_read(&b.s, 0, &in, 1), -1);
    assert_int_equal(errno, EAGAIN);
    while (dt_pipe_write(&a.s, 1, &one, 1) == 1)
        held++;
    assert_int_equal(errno, EAGAIN);
    assert_false(dt_pipe_may_write(&a.s, 1));
    assert_int_equal(held, map.pipe - sizeof(struct dt_hostshm_pipe));
    /* the other direction and another pair have pipes of their own */
    assert_false(dt_pipe_may_read(&a.s, 1));
    assert_true(dt_pipe_may_write(&a.s, 2));
    for (; dt_pipe_read(&b.s, 0, &in, 1) == 1; held--)
        assert_int_equal(got, 7);
    assert_int_equal(held, 0);
    assert_int_equal(dt_pipe_write(&a.s, 1, &nothing, 1), -1);
    dt_hostshm_unmap(&map);
}

static void pieces_are_written_and_read_in_order(void **state)
{
    struct seat a = { 0 }, b = { 0 };
    char got[12] = "";
    struct iovec out[] = { { "ab", 2 }, { NULL, 0 }, { "c", 1 }, { "defgh", 5 } };
    struct iovec in[] = { { got, 1 }, { got + 1, 0 }, { got + 1, 6 }, { got + 7, 4 } };

    (void)state;
    create();
    set(&a, 0);
    set(&b, 1);
    for (int i = 0; i < 20000; i++) { /* more than a ring can hold */
        memset(got, 0, sizeof got);
        assert_int_equal(dt_pipe_write(&a.s, 1, out, 4), 8);
        assert_int_equal(dt_pipe_read(&b.s, 0, in, 4), 8);
        assert_string_equal(got, "abcdefgh");
    }
    dt_hostshm_unmap(&map);
}

/* ---- streams of random pieces from every rank to every other at the same time ---- */

static uint8_t byte_of(uint32_t from, uint32_t to, size_t i)
{
    return (uint8_t)((i + from * 7 + to * 13) * 2654435761U >> 16);
}

struct end {
    uint32_t peer;
    bool out;
    size_t at; /* bytes that have been transferred */
    uint8_t *buf;
};

struct ends {
    struct dt_shm *s;
    struct end all[2 * (RANKS - 1)];
};

static bool may_move(const struct dt_shm *s, const struct end *e)
{
    return e->at < STREAM &&
           (e->out ? dt_pipe_may_write(s, e->peer) : dt_pipe_may_read(s, e->peer));
}

static bool any_may_move(const void *arg)
{
    const struct ends *ends = arg;

    for (int i = 0; i < 2 * (RANKS - 1); i++) {
        if (may_move(ends->s, &ends->all[i]))
            return true;
    }
    return false;
}

/* Transfers some pieces of random length, as far as there is room. */
static void move_some(const struct dt_shm *s, struct end *e, unsigned *seed)
{
    struct iovec parts[PARTS];
    size_t at = e->at;
    ssize_t moved;

    for (int i = 0; i < PARTS; i++) {
        size_t bytes = (size_t)rand_r(seed) % (rand_r(seed) % 8 ? 300 : MOST);

        if (bytes > STREAM - at)
            bytes = STREAM - at;
        parts[i] = (struct iovec){ e->buf + at, bytes };
        at += bytes;
    }
    moved =
        e->out ? dt_pipe_write(s, e->peer, parts, PARTS) : dt_pipe_read(s, e->peer, parts, PARTS);
    if (moved > 0)
        e->at += (size_t)moved;
}

static void open_ends(struct ends *ends)
{
    const struct dt_shm *s = ends->s;
    struct end *e = ends->all;

    for (uint32_t peer = 0; peer < RANKS; peer++) {
        for (int out = 0; peer != s->me && out < 2; out++, e++) {
            *e = (struct end){ .peer = peer, .out = out, .buf = calloc(STREAM, 1) };
            for (size_t i = 0; out && i < STREAM; i++)
                e->buf[i] = byte_of(s->me, peer, i);
        }
    }
}

/* Whether everything has arrived as it was sent. */
static bool close_ends(struct ends *ends)
{
    bool good = true;

    for (struct end *e = ends->all; e < ends->all + 2 * (RANKS - 1); e++) {
        good = good && e->at == STREAM;
        for (size_t i = 0; good && !e->out && i < STREAM; i++)
            good = e->buf[i] == byte_of(e->peer, ends->s->me, i);
        free(e->buf);
    }
    return good;
}

static void *streams(void *arg)
{
    struct seat *seat = arg;
    struct ends ends = { .s = &seat->s };
    unsigned seed = seat->s.me + 1;
    size_t left = 1;

    dt_shm_choose_wait(&seat->s);
    open_ends(&ends);
    while (left && !seat->bad) {
        if (dt_shm_wait(&seat->s, any_may_move, &ends) != DT_OK)
            seat->bad = "wait";
        left = 0;
        for (struct end *e = ends.all; e < ends.all + 2 * (RANKS - 1); e++) {
            move_some(&seat->s, e, &seed);
            left += STREAM - e->at;
        }
        if (rand_r(&seed) % 50 == 0)
            usleep((unsigned)rand_r(&seed) % 1000);
    }
    if (!close_ends(&ends) && !seat->bad)
        seat->bad = "bytes";
    return NULL;
}

static void run(bool bound, bool fences)
{
    struct seat seats[RANKS];

    create();
    map.head->fences = fences;
    for (uint32_t i = 0; i < RANKS; i++) {
        seats[i] = (struct seat){ .bound = bound };
        set(&seats[i], i);
    }
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(pthread_create(&seats[i].thread, NULL, streams, &seats[i]), 0);
    for (uint32_t i = 0; i < RANKS; i++)
        pthread_join(seats[i].thread, NULL);
    for (uint32_t i = 0; i < RANKS; i++)
        assert_null(seats[i].bad);
    dt_hostshm_unmap(&map);
}

static void all_pairs_transfer_while_waits_spin(void **state)
{
    (void)state;
    run(true, false);
}

static void all_pairs_transfer_while_waits_sleep(void **state)
{
    (void)state;
    run(false, false);
}

/* Without membarrier(2). */
static void all_pairs_transfer_with_fences(void **state)
{
    (void)state;
    run(false, true);
}

static bool something_to_read(const void *arg)
{
    return dt_pipe_may_read(arg, 1);
}

static void *sleeps(void *arg)
{
    struct seat *seat = arg;

    if (dt_shm_wait(&seat->s, something_to_read, &seat->s) != DT_ERR_PEER ||
        seat->coll_error.rank != 99)
        seat->bad = "not stopped";
    return NULL;
}

static void a_stop_wakes_a_rank_that_waits_for_its_pipes(void **state)
{
    struct seat seat = { 0 };

    (void)state;
    create();
    set(&seat, 0);
    assert_int_equal(pthread_create(&seat.thread, NULL, sleeps, &seat), 0);
    while (atomic_load(&map.ranks[0].pipe_sleepers) == 0)
        usleep(1000);
    dt_hostshm_stop(&map, DT_ERR_PEER, 99);
    pthread_join(seat.thread, NULL);
    assert_null(seat.bad);
    dt_hostshm_unmap(&map);
}

static void pipes_are_smaller_the_more_ranks_a_host_has(void **state)
{
    static const struct {
        uint32_t local_size;
        size_t pipe;
    } cases[] = { { 1, 65536 },  { 2, 65536 },  { 32, 65536 },
                  { 33, 32768 }, { 64, 16384 }, { 512, 4096 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t n = cases[i].local_size;
        int fd = dt_hostshm_create(&map, 1, n, 0);

        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(map.pipe, cases[i].pipe);
        assert_ptr_equal((uint8_t *)dt_hostshm_pipe(&map, 1, n - 1, n - 1) + map.pipe,
                         (uint8_t *)map.head + map.bytes);
        assert_int_equal((uintptr_t)dt_hostshm_pipe(&map, 1, n - 1, 0) % 4096, 0);
        dt_hostshm_unmap(&map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_pipe_refuses_bytes_and_an_empty_one_has_none),
        cmocka_unit_test(pieces_are_written_and_read_in_order),
        cmocka_unit_test(all_pairs_transfer_while_waits_spin),
        cmocka_unit_test(all_pairs_transfer_while_waits_sleep),
        cmocka_unit_test(all_pairs_transfer_with_fences),
        cmocka_unit_test(a_stop_wakes_a_rank_that_waits_for_its_pipes),
        cmocka_unit_test(pipes_are_smaller_the_more_ranks_a_host_has),
    };

    alarm(300); /* a watchdog */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
