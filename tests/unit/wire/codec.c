#include <stdio.h>
#include <string.h>

#include "runtime/wire/codec.h"
#include "tests/unit/unit.h"

static void integers_are_little_endian(void **state)
{
    struct dt_put p = { 0 };
    static const uint8_t want[] = { 1, 3, 2, 7, 6, 5, 4, 8, 0, 0, 0, 0, 0, 0, 9 };

    (void)state;
    dt_put_u8(&p, 1);
    dt_put_u16(&p, 0x0203);
    dt_put_u32(&p, 0x04050607);
    dt_put_u64(&p, 0x0900000000000008);
    assert_false(p.failed);
    assert_int_equal(p.len, sizeof want);
    assert_memory_equal(p.data, want, sizeof want);
    dt_put_free(&p);
}

static void a_string_with_a_nul_is_refused(void **state)
{
    static const uint8_t bytes[] = { 3, 0, 0, 0, 'a', 0, 'b' };
    struct dt_get g = dt_get_init(bytes, sizeof bytes);

    (void)state;
    assert_null(dt_get_str(&g, 10));
    assert_true(g.failed);
}

static void leftover_bytes_are_an_error(void **state)
{
    static const uint8_t bytes[] = { 1, 2 };
    struct dt_get g = dt_get_init(bytes, sizeof bytes);

    (void)state;
    assert_int_equal(dt_get_u8(&g), 1);
    assert_int_equal(dt_get_end(&g), -1);
    assert_int_equal(dt_get_u8(&g), 2);
    assert_int_equal(dt_get_end(&g), 0);
    assert_int_equal(dt_get_u8(&g), 0);
    assert_int_equal(dt_get_end(&g), -1);
}

static void writing_stops_at_the_maximum(void **state)
{
    struct dt_put p = { .max = 3 };

    (void)state;
    dt_put_u16(&p, 1);
    assert_false(p.failed);
    dt_put_u16(&p, 1);
    assert_true(p.failed);
    assert_int_equal(p.len, 2);
    dt_put_free(&p);
}

static void a_list_of_strings_serves_as_argv(void **state)
{
    struct dt_strs s = { 0 };
    char text[16];

    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "%u", i);
        assert_int_equal(dt_strs_add(&s, text), 0);
        assert_int_equal(s.n, i + 1);
        assert_null(s.v[i + 1]);
    }
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "%u", i);
        assert_string_equal(s.v[i], text);
    }
    dt_strs_free(&s);
    assert_null(s.v);
    assert_int_equal(s.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_of_strings_serves_as_argv),
        cmocka_unit_test(integers_are_little_endian),
        cmocka_unit_test(a_string_with_a_nul_is_refused),
        cmocka_unit_test(leftover_bytes_are_an_error),
        cmocka_unit_test(writing_stops_at_the_maximum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
