/* Copies give the bytes of memcpy with every instruction set, at every address and for every
 * length, through the caches and past them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "runtime/base/copy.h"
#include "runtime/kernels/reduce.h"
#include "runtime/shm/stream.h"

enum { ROOM = 5000, AROUND = 64 };

static uint8_t from[ROOM], to[ROOM], want[ROOM];

static void fill(uint8_t *src)
{
    for (size_t i = 0; i < ROOM; i++)
        src[i] = (uint8_t)(i * 131 >> 3);
}

static void refill(size_t at, const uint8_t *src, size_t bytes)
{
    memset(to, 0x5a, ROOM);
    memset(want, 0x5a, ROOM);
    memcpy(want + at, src, bytes);
}

static const size_t lengths[] = {
    0, 1, 15, 63, 64, 65, 127, 128, 200, 1024, 1025, 2047, 2048, 4097
};

static void copy_everywhere(const char *isa)
{
    assert_true(dt_reduce_use(isa));
    fill(from);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t at = AROUND; at < 2 * AROUND; at++) {
            const uint8_t *src = from + at * 7 % AROUND;

            refill(at, src, lengths[i]);
            dt_stream_past_caches(to + at, src, lengths[i]);
            assert_memory_equal(to, want, ROOM);
            refill(at, src, lengths[i]);
            dt_copy(to + at, src, lengths[i]);
            assert_memory_equal(to, want, ROOM);
        }
    }
}

static void copies_are_right_at_every_address_and_length(void **state)
{
    char choices[128], *rest = NULL;

    (void)state;
    dt_reduce_choices(choices, sizeof choices);
    for (char *isa = strtok_r(choices, " ", &rest); isa; isa = strtok_r(NULL, " ", &rest))
        copy_everywhere(isa);
    dt_reduce_use(NULL);
}

/* The distance of dst from src within a page decides how the data is copied. */
static void copies_are_right_at_every_distance_within_a_page(void **state)
{
    static alignas(4096) uint8_t src[ROOM], dst[4096 + ROOM];

    (void)state;
    fill(src);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t at = 0; at < 4096; at += at < 70 ? 1 : 61) {
            memset(dst, 0x5a, sizeof dst);
            dt_copy(dst + at, src, lengths[i]);
            assert_memory_equal(dst + at, src, lengths[i]);
            assert_true(at == 0 || dst[at - 1] == 0x5a);
            assert_int_equal(dst[at + lengths[i]], 0x5a);
        }
    }
}

static void a_copy_to_slightly_further_into_the_page_is_slow(void **state)
{
    static const struct {
        uintptr_t further;
        size_t bytes;
        bool slow;
    } cases[] = {
        { 0, 4096, false },         { 1, 4096, true },         { 16, 4096, true },
        { 31, 4096, true },         { 32, 4096, false },       { 4095, 4096, false },
        { 4096, 4096, false },      { 4096 + 16, 4096, true }, { 16, 0, false },
        { 16, 1024, false },        { 16, 1025, true },        { 16, 1024 * 1024 - 1, true },
        { 16, 1024 * 1024, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uintptr_t src = 0; src < 8192; src += 2040) {
            assert_int_equal(dt_copy_is_slow(src + cases[i].further, src, cases[i].bytes),
                             cases[i].slow);
            assert_int_equal(dt_copy_is_slow(src, src - cases[i].further, cases[i].bytes),
                             cases[i].slow);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_right_at_every_address_and_length),
        cmocka_unit_test(copies_are_right_at_every_distance_within_a_page),
        cmocka_unit_test(a_copy_to_slightly_further_into_the_page_is_slow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
