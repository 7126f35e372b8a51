/* The queue of bytes returns what was put in, in order, and reuses its memory. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/bytequeue.h"

static void an_empty_queue_has_no_bytes(void **state)
{
    struct dt_bytequeue q = { 0 };

    (void)state;
    dt_bytequeue_add(&q, "", 0);
    assert_int_equal(q.len, 0);
    assert_string_equal(dt_bytequeue_head(&q), "");
    dt_bytequeue_consume(&q, 0);
    dt_bytequeue_free(&q);
    assert_null(q.data);
}

static void bytes_come_out_in_order(void **state)
{
    struct dt_bytequeue q = { 0 };
    unsigned seed = 1;
    uint8_t in = 0, out = 0;

    (void)state;
    for (int round = 0; round < 5000; round++) {
        uint8_t bytes[3000] = { 0 };
        size_t n = (size_t)rand_r(&seed) % sizeof bytes, take;

        for (size_t i = 0; i < n; i++)
            bytes[i] = in++;
        dt_bytequeue_add(&q, bytes, n);
        take = q.len ? (size_t)rand_r(&seed) % (q.len + 1) : 0;
        for (size_t i = 0; i < take; i++)
            assert_int_equal((uint8_t)dt_bytequeue_head(&q)[i], out++);
        dt_bytequeue_consume(&q, take);
    }
    dt_bytequeue_free(&q);
}

/* A queue that never runs empty but holds little needs a bounded amount of memory. */
static void memory_is_reused(void **state)
{
    struct dt_bytequeue q = { 0 };
    char bytes[1000] = "";

    (void)state;
    for (int i = 0; i < 10000; i++) {
        dt_bytequeue_add(&q, bytes, sizeof bytes);
        if (i > 0)
            dt_bytequeue_consume(&q, sizeof bytes);
        assert_in_range(q.len, 1, 2 * sizeof bytes);
    }
    assert_in_range(q.cap, 1, 16 * 1024);
    dt_bytequeue_free(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_queue_has_no_bytes),
        cmocka_unit_test(bytes_come_out_in_order),
        cmocka_unit_test(memory_is_reused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
