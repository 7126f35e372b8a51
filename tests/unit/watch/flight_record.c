/* The last calls of ranks. Equal ones are listed once. */
#include <stdio.h>
#include <string.h>

#include "launcher/base/log.h"
#include "launcher/watch/flight_record.h"
#include "tests/unit/unit.h"

enum { PEER = -4, MISMATCH = -3 };

static struct dt_msg_last_call call(uint64_t number, uint64_t ns, const char *what,
                                    const char *result, const char *algorithm)
{
    return (struct dt_msg_last_call){ number, ns, (char *)(uintptr_t)what,
                                      (char *)(uintptr_t)result, (char *)(uintptr_t)algorithm };
}

static void add(struct dt_flight_record *l, uint32_t rank, uint64_t comm,
                struct dt_msg_last_call *calls, uint32_t n)
{
    struct dt_msg_last_calls m = { 1, rank, comm, MISMATCH, (char *)"", (char *)"", { calls, n } };

    dt_flight_record_add(l, "host", &m);
}

static void are(struct dt_flight_record *l, const char *want)
{
    struct dt_strbuf b = { 0 };

    dt_flight_record_words(l, &b);
    assert_string_equal(dt_strbuf_text(&b), want);
    dt_strbuf_free(&b);
    dt_flight_record_free(l);
    dt_flight_record_words(l, &b);
    assert_string_equal(dt_strbuf_text(&b), "");
}

/* This holds for any number of ranks and any order of arrival. */
static void equal_calls_are_listed_once(void **state)
{
    struct dt_flight_record l = { 0 };

    (void)state;
    for (uint32_t i = 0; i < 512; i++) {
        uint32_t rank = i * 5 % 512;
        struct dt_msg_last_call calls[] = {
            call(7, rank * 1000, "barrier", "ok", "shm"),
            rank == 3 ? call(8, 0, "barrier", "DT_ERR_MISMATCH", "shm")
                      : call(8, 3000000, "all-reduce of 5 f32 (sum)", "DT_ERR_MISMATCH",
                             rank % 2 ? "shm" : "shm-small"),
        };

        add(&l, rank, 0, calls, 2);
    }
    assert_true(l.own);
    are(&l, "the last calls on DT_WORLD:\n"
            "| call 7: barrier, ok by shm (ranks 0-511)\n"
            "| call 8: all-reduce of 5 f32 (sum), DT_ERR_MISMATCH, up to 3 ms (ranks 0-2,4-511)\n"
            "| call 8: barrier, DT_ERR_MISMATCH by shm (rank 3)\n");
}

/* A rank chooses twice how its GPU's calls are executed, before call 3. */
static void a_rank_is_listed_once(void **state)
{
    struct dt_msg_last_call choice = call(2, 0, "a first call on GPU memory", "ok", "tcp");
    struct dt_msg_last_call calls[] = { choice, choice };
    struct dt_flight_record l = { 0 };

    (void)state;
    for (uint32_t rank = 3; rank-- > 0;)
        add(&l, rank, 0, calls, 2);
    are(&l, "the last calls on DT_WORLD:\n"
            "| call 2: a first call on GPU memory, ok by tcp (ranks 0-2)\n");
}

static void ranks_that_were_ended_without_a_report_are_named(void **state)
{
    struct dt_msg_last_call one = call(2, 0, "barrier", "DT_ERR_PEER", "-");
    struct dt_flight_record l = { 0 };

    (void)state;
    dt_flight_record_ended(&l, 5);
    are(&l, "");
    add(&l, 1, 0, &one, 1);
    for (uint32_t rank = 4; rank-- > 1;)
        dt_flight_record_ended(&l, rank);
    are(&l, "the last calls on DT_WORLD:\n"
            "| call 2: barrier, DT_ERR_PEER (rank 1)\n"
            "| ranks 2-3: ended before they reported their last calls\n");
}

/* A rank reports once. Its report may have been printed long before the rank is ended. */
static void ranks_that_reported_earlier_are_not_named(void **state)
{
    struct dt_msg_last_call one = call(2, 0, "barrier", "DT_ERR_PEER", "-");
    struct dt_flight_record l = { 0 };

    (void)state;
    add(&l, 1, 0, &one, 1);
    dt_flight_record_forget_printed(&l);
    add(&l, 3, 0, &one, 1);
    for (uint32_t rank = 0; rank < 3; rank++)
        dt_flight_record_ended(&l, rank);
    are(&l, "the last calls on DT_WORLD:\n"
            "| call 2: barrier, DT_ERR_PEER (rank 3)\n"
            "| ranks 0,2: ended before they reported their last calls\n");
    assert_null(l.reported.v);
}

static void communicators_are_listed_separately(void **state)
{
    struct dt_msg_last_call one = call(2, 1100000000, "barrier", "inside", "-");
    struct dt_flight_record l = { 0 };

    (void)state;
    add(&l, 4, 4ULL << 32 | 2, &one, 1);
    add(&l, 1, 0, &one, 1);
    are(&l, "the last calls on DT_WORLD:\n"
            "| call 2: barrier, inside, 1.1 s (rank 1)\n"
            "the last calls on communicator 3.2:\n"
            "| call 2: barrier, inside, 1.1 s (rank 4)\n");
}

static void many_different_calls_are_counted(void **state)
{
    struct dt_flight_record l = { 0 };
    struct dt_strbuf b = { 0 };
    size_t lines = 0;

    (void)state;
    for (uint32_t rank = 0; rank < 1000; rank++) {
        struct dt_msg_last_call c = call(rank, 0, "barrier", "ok", "-");

        add(&l, rank, 0, &c, 1);
    }
    dt_flight_record_words(&l, &b);
    for (const char *s = dt_strbuf_text(&b); *s; s++)
        lines += *s == '\n';
    assert_int_equal(lines, 10);
    assert_non_null(
        strstr(dt_strbuf_text(&b), "| call 255: barrier, ok (rank 255)\n| and 992 more\n"));
    dt_strbuf_free(&b);
    dt_flight_record_free(&l);
}

static void the_place_of_all_calls_is_listed_by_host(void **state)
{
    struct dt_msg_last_calls m = { .code = PEER, .dump = (char *)"/d", .dump_error = (char *)"" };
    struct dt_flight_record l = { 0 };

    (void)state;
    dt_flight_record_add(&l, "a", &m);
    dt_flight_record_add(&l, "a", &m);
    dt_flight_record_add(&l, "b", &m);
    m.dump = (char *)"";
    m.dump_error = (char *)"/d: cannot be created: Permission denied";
    dt_flight_record_add(&l, "c", &m);
    dt_flight_record_add(&l, "c", &m);
    assert_false(l.own);
    are(&l,
        "all recorded calls are in a:/d, b:/d\n"
        "c: /d: cannot be created: Permission denied; the recorded calls were not written: name "
        "another directory with DTRUN_RECORDER\n");
}

static void hosts_beyond_the_list_are_counted(void **state)
{
    struct dt_msg_last_calls m = { .code = PEER, .dump = (char *)"/d", .dump_error = (char *)"" };
    struct dt_flight_record l = { 0 };
    struct dt_strbuf b = { 0 };

    (void)state;
    for (int i = 0; i < 17; i++) {
        char host[8];

        dt_flight_record_words(&l, &b);
        assert_null(strstr(dt_strbuf_text(&b), "listed"));
        snprintf(host, sizeof host, "h%d", i);
        dt_flight_record_add(&l, host, &m);
    }
    dt_flight_record_words(&l, &b);
    assert_non_null(strstr(
        dt_strbuf_text(&b),
        "h15:/d\nmore hosts have recorded calls, or could not write them; they are not listed\n"));
    dt_strbuf_free(&b);
    dt_flight_record_free(&l);
}

static void keep(void *arg, const char *text, size_t n, bool foreign)
{
    (void)foreign;
    dt_strbuf_add(arg, text, n);
}

/* Neither by a line that looks like dtrun's nor by moving the cursor. */
static void a_rank_cannot_imitate_dtrun(void **state)
{
    struct dt_msg_last_call c = call(1, 0, "barrier\ndtrun: done\r", "ok\033[2J", "-");
    struct dt_msg_last_calls m = {
        1, 3, 0, MISMATCH, (char *)"/d\ndtrun: x", (char *)"", { &c, 1 }
    };
    struct dt_flight_record l = { 0 };
    struct dt_strbuf b = { 0 };

    (void)state;
    dt_flight_record_add(&l, "a", &m);
    are(&l, "the last calls on DT_WORLD:\n"
            "| call 1: barrier?dtrun: done?, ok?[2J (rank 3)\n"
            "all recorded calls are in a:/d?dtrun: x\n");
    m.dump_error = (char *)"\ndtrun: y";
    dt_flight_record_add(&l, "a", &m);
    dt_flight_record_words(&l, &b);
    assert_null(strstr(dt_strbuf_text(&b), "\ndtrun"));
    dt_flight_record_free(&l);
    dt_strbuf_free(&b);

    dt_log_set_sink(keep, &b);
    dt_say("%s", "a note\ndtrun: z\033[1A\x7f\tend");
    dt_log_set_sink(NULL, NULL);
    assert_string_equal(dt_strbuf_text(&b), "dtrun: a note?dtrun: z?[1A?\tend\n");
    dt_strbuf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_calls_are_listed_once),
        cmocka_unit_test(a_rank_is_listed_once),
        cmocka_unit_test(ranks_that_were_ended_without_a_report_are_named),
        cmocka_unit_test(ranks_that_reported_earlier_are_not_named),
        cmocka_unit_test(communicators_are_listed_separately),
        cmocka_unit_test(many_different_calls_are_counted),
        cmocka_unit_test(the_place_of_all_calls_is_listed_by_host),
        cmocka_unit_test(hosts_beyond_the_list_are_counted),
        cmocka_unit_test(a_rank_cannot_imitate_dtrun),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
