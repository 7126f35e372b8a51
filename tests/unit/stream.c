/* Copies for other ranks: the same bytes as memcpy's, whatever the way, the instruction set, the
 * place and the length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <string.h>

#include "runtime/host/reduce.h"
#include "runtime/host/stream.h"

enum { ROOM = 5000, AROUND = 64 };

static uint8_t from[ROOM], to[ROOM], want[ROOM];

static void refill(size_t at, const uint8_t *src, size_t bytes)
{
    memset(to, 0x5a, ROOM);
    memset(want, 0x5a, ROOM);
    memcpy(want + at, src, bytes);
}

static void copy_everywhere(const char *isa)
{
    static const size_t lengths[] = { 0, 1, 15, 63, 64, 65, 127, 128, 200, 2047, 2048, 4097 };
    struct dt_stream far = { .far = true, .left = 1 };

    assert_true(dt_reduce_use(isa));
    for (size_t i = 0; i < ROOM; i++)
        from[i] = (uint8_t)(i * 131 >> 3);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t at = AROUND; at < 2 * AROUND; at++) {
            const uint8_t *src = from + at * 7 % AROUND;

            refill(at, src, lengths[i]);
            dt_stream_past_caches(to + at, src, lengths[i]);
            assert_memory_equal(to, want, ROOM);
            refill(at, src, lengths[i]);
            dt_stream_copy(&far, to + at, src, lengths[i]);
            assert_memory_equal(to, want, ROOM);
            far = (struct dt_stream){ .far = true, .left = at % 2 };
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

/* A copy is timed before anything is chosen, and then one in many. */
static void a_choice_is_made_anew(void **state)
{
    struct dt_stream s = { 0 };
    unsigned timed = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        timed += s.left == 0;
        dt_stream_copy(&s, to, from, ROOM);
    }
    assert_in_range(timed, 2, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_place_and_length),
        cmocka_unit_test(a_choice_is_made_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
