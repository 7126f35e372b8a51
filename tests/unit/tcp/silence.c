/* When a connection counts as broken because its peer acknowledges nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "runtime/tcp/silence.h"

enum { LIMIT = DT_SILENCE_S * 1000, BEGIN = 1000000 };

/* What the kernel says if it has sent data "again" times in vain and last heard heard_ms ago. */
static struct tcp_info connection(uint8_t again, uint32_t heard_ms)
{
    return (struct tcp_info){ .tcpi_retransmits = again, .tcpi_last_ack_recv = heard_ms };
}

static void silence_is_long_after_the_limit(void **state)
{
    int64_t since = 0;
    struct tcp_info info = connection(1, 200);

    (void)state;
    assert_false(dt_silence_continues(&since, &info, BEGIN));
    info = connection(8, 200 + LIMIT - 1);
    assert_false(dt_silence_continues(&since, &info, BEGIN + LIMIT - 1));
    info = connection(8, 200 + LIMIT);
    assert_true(dt_silence_continues(&since, &info, BEGIN + LIMIT));
}

static void silence_without_lost_data_is_none(void **state)
{
    int64_t since = 0;
    struct tcp_info info = connection(0, 10 * LIMIT);

    (void)state;
    assert_false(dt_silence_continues(&since, &info, BEGIN));
    info = connection(1, 10 * LIMIT + 200);
    assert_false(dt_silence_continues(&since, &info, BEGIN + 200));
}

/* The same data are lost again and again, but the peer's kernel acknowledges others. */
static void any_acknowledgement_ends_the_silence(void **state)
{
    int64_t since = 0;
    struct tcp_info info = connection(1, 200);

    (void)state;
    assert_false(dt_silence_continues(&since, &info, BEGIN));
    info = connection(3, 100); /* heard since then */
    assert_false(dt_silence_continues(&since, &info, BEGIN + LIMIT));
    info = connection(3, 100 + LIMIT - 1);
    assert_false(dt_silence_continues(&since, &info, BEGIN + 2 * LIMIT - 1));
    info = connection(3, 100 + LIMIT);
    assert_true(dt_silence_continues(&since, &info, BEGIN + 2 * LIMIT));
}

/* Nobody looks while the program computes. */
static void silence_that_ended_unseen_does_not_count(void **state)
{
    int64_t since = 0;
    struct tcp_info info = connection(1, 200);

    (void)state;
    assert_false(dt_silence_continues(&since, &info, BEGIN));
    info = connection(1, LIMIT); /* and other data are lost now */
    assert_false(dt_silence_continues(&since, &info, BEGIN + LIMIT + 1));
}

/* A peer that reads nothing answers the probes of its closed window. */
static void unanswered_probes_count(void **state)
{
    int64_t since = 0;
    struct tcp_info info = { .tcpi_probes = 1, .tcpi_last_ack_recv = 300 };

    (void)state;
    assert_false(dt_silence_continues(&since, &info, BEGIN));
    info.tcpi_last_ack_recv = 50;
    assert_false(dt_silence_continues(&since, &info, BEGIN + LIMIT));
    info.tcpi_last_ack_recv = 50 + LIMIT;
    assert_true(dt_silence_continues(&since, &info, BEGIN + 2 * LIMIT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_long_after_the_limit),
        cmocka_unit_test(silence_without_lost_data_is_none),
        cmocka_unit_test(any_acknowledgement_ends_the_silence),
        cmocka_unit_test(silence_that_ended_unseen_does_not_count),
        cmocka_unit_test(unanswered_probes_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
