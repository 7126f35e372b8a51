/* The rings of the flight recorder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/diag/recorder.h"

enum { CALLS = 4, COMM = 7 };

static void make_call(struct dt_ring *r, uint64_t number, dt_result_t result)
{
    struct dt_call call = { .number = number,
                            .count = number * 10,
                            .kind = DT_CALL_ALL_REDUCE,
                            .dtype = DT_F32,
                            .root = -1 };

    dt_ring_begin(r, &call);
    dt_ring_end(r, result, "shm", NULL);
}

static int start(void **state)
{
    (void)state;
    dt_recorder_start(CALLS);
    return 0;
}

static void the_last_calls_are_kept(void **state)
{
    static const struct {
        uint64_t made;
        size_t kept;
    } cases[] = { { 0, 0 }, { 1, 1 }, { 3, 3 }, { 4, 4 }, { 5, 4 }, { 8, 4 }, { 403, 4 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_ring *r = dt_ring_open(COMM + i);
        struct dt_record *records;
        size_t n = 0, read;

        for (uint64_t call = 1; call <= cases[i].made; call++)
            make_call(r, call, DT_OK);
        read = dt_recorder_read(&records);
        for (size_t k = 0; k < read && n < cases[i].kept; k++) {
            if (records[k].comm != COMM + i)
                continue;
            assert_int_equal(records[k].call.number, cases[i].made - cases[i].kept + 1 + n);
            assert_int_equal(records[k].call.count, records[k].call.number * 10);
            assert_true(records[k].ended >= records[k].begun && records[k].begun > 0);
            assert_string_equal(records[k].within, "shm");
            assert_null(records[k].between);
            n++;
        }
        assert_int_equal(n, cases[i].kept);
        free(records);
        dt_ring_close(r);
    }
}

static size_t count_of(uint64_t comm)
{
    struct dt_record *records;
    size_t n = dt_recorder_read(&records), found = 0;

    for (size_t i = 0; i < n; i++)
        found += records[i].comm == comm;
    free(records);
    return found;
}

/* The ring that was closed longest ago is reused first, entry by entry. */
static void calls_on_a_freed_communicator_stay_for_a_while(void **state)
{
    struct dt_ring *a = dt_ring_open(100), *b = dt_ring_open(101), *c;

    (void)state;
    make_call(a, 1, DT_OK);
    make_call(a, 2, DT_OK);
    make_call(b, 1, DT_OK);
    dt_ring_close(b);
    dt_ring_close(a);
    assert_int_equal(count_of(100), 2);
    assert_int_equal(count_of(101), 1);
    while ((c = dt_ring_open(102)) != a) /* other tests have closed some before b */
        ;
    make_call(c, 1, DT_OK);
    assert_int_equal(count_of(100), 2);
    for (int i = 2; i <= CALLS; i++)
        make_call(c, (uint64_t)i, DT_OK);
    assert_int_equal(count_of(100), 0);
    assert_int_equal(count_of(101), 1);
    assert_int_equal(count_of(102), CALLS);
}

static void a_long_call_is_shown_and_timed(void **state)
{
    struct dt_ring *r = dt_ring_open(200);
    struct dt_call call = { .number = 1, .kind = DT_CALL_BARRIER, .root = -1 };
    struct dt_record *records;
    size_t n;

    (void)state;
    dt_ring_begin(r, &call);
    assert_int_equal(count_of(200), 0); /* the call is unknown before it waits */
    dt_ring_show(r);
    dt_ring_mark_long(r);
    assert_int_equal(count_of(200), 1);
    usleep(2000);
    assert_true(dt_ring_seconds(r) >= 0.002);
    n = dt_recorder_read(&records);
    assert_int_equal(records[n - 1].comm, 200); /* the last one to begin */
    assert_int_equal(records[n - 1].ended, 0);
    free(records);
    dt_ring_end(r, DT_ERR_PEER, NULL, "tcp");
    n = dt_recorder_read(&records);
    assert_int_equal(records[n - 1].result, DT_ERR_PEER);
    assert_true(records[n - 1].ended - records[n - 1].begun >= 2000000);
    free(records);
    make_call(r, 2, DT_OK); /* a brief call that follows the last one */
    n = dt_recorder_read(&records);
    assert_int_equal(records[n - 1].call.number, 2);
    assert_true(records[n - 1].begun >= records[n - 2].ended);
    free(records);
}

/* This holds whatever the program did since the clock was last read. */
static void a_brief_call_that_fails_is_timed(void **state)
{
    struct dt_ring *r = dt_ring_open(201);
    struct dt_call call = { .number = 2, .kind = DT_CALL_BARRIER, .root = -1 };
    struct dt_record *records;
    uint64_t before;
    size_t n;

    (void)state;
    make_call(r, 1, DT_OK);
    usleep(20000);
    before = dt_clock_ns();
    dt_ring_begin(r, &call);
    dt_ring_show(r);
    assert_true(dt_ring_seconds(r) == 0);
    dt_ring_end(r, DT_ERR_TIMEOUT, "shm", NULL);
    n = dt_recorder_read(&records);
    assert_int_equal(records[n - 1].comm, 201); /* the last one to begin */
    assert_int_equal(records[n - 1].call.number, 2);
    assert_true(records[n - 1].begun >= before);
    assert_true(records[n - 1].ended == records[n - 1].begun);
    free(records);
    dt_ring_close(r);
}

/* dt_init may fail, and be called again with another number of calls. */
static void rings_keep_their_size(void **state)
{
    struct dt_ring *r = dt_ring_open(COMM - 1);

    (void)state;
    for (uint64_t call = 1; call <= CALLS; call++)
        make_call(r, call, DT_OK);
    dt_recorder_start(1);
    assert_int_equal(count_of(COMM - 1), CALLS);
    dt_ring_close(r);
}

static void nothing_is_recorded_without_room(void **state)
{
    (void)state;
    dt_recorder_start(0);
    assert_null(dt_ring_open(300));
    make_call(NULL, 1, DT_OK);
    dt_ring_mark_long(NULL);
    dt_ring_close(NULL);
    assert_true(dt_ring_seconds(NULL) == 0);
    dt_recorder_start(CALLS);
}

static _Atomic int writing;

/* The period does not divide the number of the ring's entries, so reused entries differ from
 * before. */
static dt_result_t result_of(uint64_t call)
{
    return call % 3 ? DT_OK : DT_ERR_PEER;
}

static void *write_on(void *ring)
{
    for (uint64_t call = 1; call <= 200000; call++) {
        struct dt_call c = { .number = call, .count = call, .options = ~call };

        dt_ring_begin(ring, &c);
        if (call % 1000 == 0)
            dt_ring_mark_long(ring);
        dt_ring_end(ring, result_of(call), "shm", call % 3 ? NULL : "tcp");
    }
    writing = 0;
    return NULL;
}

/* Entries that are overwritten while they are read are left out. */
static void readers_see_whole_calls_and_disturb_no_writer(void **state)
{
    struct dt_ring *r = dt_ring_open(400);
    pthread_t thread;

    (void)state;
    writing = 1;
    assert_int_equal(pthread_create(&thread, NULL, write_on, r), 0);
    do {
        struct dt_record *records;
        size_t n = dt_recorder_read(&records);
        uint64_t last = 0;

        for (size_t i = 0; i < n; i++) {
            const struct dt_call *c = &records[i].call;

            if (records[i].comm != 400)
                continue;
            assert_true(c->number > last && c->count == c->number && c->options == ~c->number);
            assert_true(!records[i].ended || (records[i].result == result_of(c->number) &&
                                              !records[i].between == (c->number % 3 != 0)));
            last = c->number;
        }
        free(records);
    } while (writing);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_calls_are_kept),
        cmocka_unit_test(calls_on_a_freed_communicator_stay_for_a_while),
        cmocka_unit_test(a_long_call_is_shown_and_timed),
        cmocka_unit_test(a_brief_call_that_fails_is_timed),
        cmocka_unit_test_setup_teardown(rings_keep_their_size, NULL, start),
        cmocka_unit_test(nothing_is_recorded_without_room),
        cmocka_unit_test(readers_see_whole_calls_and_disturb_no_writer),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
