/* Copies of many bytes, and those for other ranks: the same bytes as memcpy's, whatever the way,
 * the instruction set, the place and the length. And when they go past the caches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "runtime/copy.h"
#include "runtime/host/reduce.h"
#include "runtime/host/stream.h"

enum { ROOM = 5000, AROUND = 64, MANY = 2 * 1024 * 1024 };

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
            struct dt_stream far = { .far = true, .stays = UINT64_MAX }, timed = { .bytes = MANY };

            refill(at, src, lengths[i]);
            dt_stream_past_caches(to + at, src, lengths[i]);
            assert_memory_equal(to, want, ROOM);
            refill(at, src, lengths[i]);
            dt_stream_copy(&far, to + at, src, lengths[i]);
            assert_memory_equal(to, want, ROOM);
            refill(at, src, lengths[i]);
            dt_stream_copy(&timed, to + at, src, lengths[i]);
            assert_memory_equal(to, want, ROOM);
        }
    }
}

static void every_place_and_length(void **state)
{
    char choices[128], *rest = NULL;

    (void)state;
    dt_reduce_choices(choices, sizeof choices);
    for (char *isa = strtok_r(choices, " ", &rest); isa; isa = strtok_r(NULL, " ", &rest))
        copy_everywhere(isa);
    dt_reduce_use(NULL);
}

/* How much further dst is into its page than src decides how it is copied. */
static void every_distance_within_a_page(void **state)
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

static void slow_where_a_little_further_into_the_page(void **state)
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

static void tell(struct dt_stream *s, bool slow, int times)
{
    for (int i = 0; i < times; i++)
        dt_stream_learn(s, 5000, slow ? 1001 : 999);
}

static void slow_copies_outweigh_fast_ones(void **state)
{
    struct dt_stream s = { 0 };

    (void)state;
    tell(&s, true, 7);
    tell(&s, false, 2);
    tell(&s, true, 2);
    assert_false(s.far);
    assert_int_equal(s.untimed, 0);
    tell(&s, false, 100);
    assert_int_equal(s.untimed, 15);
    tell(&s, true, 7);
    assert_false(s.far);
    tell(&s, true, 1);
    assert_true(s.far);
}

/* Copied past the caches, or with plain stores that are not timed. */
static uint64_t bytes_until_near(struct dt_stream *s)
{
    uint64_t bytes = 0;

    for (; s->far; bytes += MANY)
        dt_stream_learn(s, MANY, 0);
    return bytes;
}

static void plain_stores_are_tried_again_ever_later(void **state)
{
    struct dt_stream s = { 0 };
    uint64_t stay = 16 * MANY;

    (void)state;
    for (int i = 0; i < 8; i++) {
        tell(&s, true, 8);
        assert_int_equal(bytes_until_near(&s), stay);
        stay = stay < 512 * MANY ? 2 * stay : stay;
    }
    dt_stream_learn(&s, 16 * MANY, 0);
    tell(&s, false, 1);
    tell(&s, true, 8);
    assert_int_equal(bytes_until_near(&s), 16 * MANY);
}

/* The first that goes over a staging is none to judge by; then, one in many. */
static void times_count_when_all_has_been_written(void **state)
{
    struct dt_stream s = { 0 };

    (void)state;
    while (s.bytes < MANY) {
        dt_stream_copy(&s, to, from, ROOM);
        assert_true(s.untimed == 0 && s.slow == 0 && !s.far);
    }
    dt_stream_copy(&s, to, from, ROOM);
    assert_true(s.untimed > 0 || s.slow > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_place_and_length),
        cmocka_unit_test(every_distance_within_a_page),
        cmocka_unit_test(slow_where_a_little_further_into_the_page),
        cmocka_unit_test(slow_copies_outweigh_fast_ones),
        cmocka_unit_test(plain_stores_are_tried_again_ever_later),
        cmocka_unit_test(times_count_when_all_has_been_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
