/* Who waits for whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/job/waits.h"
#include "runtime/wire/hostshm.h"

enum { RANKS = 8 };

#define S 1000000000ull

/* The state of a rank as a word: its call's number, "(" before it when it is inside; "s" after it:
 * stopped; "e": ended. Rank i has been seen in it since second 10 + i. */
static uint32_t read_states(const char *text, struct dt_wait w[RANKS])
{
    uint32_t n = 0;

    for (; *text; text += strcspn(text, " "), text += *text == ' ', n++) {
        bool in = *text == '(';
        char *end;
        uint64_t number = strtoull(text + in, &end, 10);

        w[n] = (struct dt_wait){ 0 };
        dt_wait_note(&w[n], number << 8 | (in ? DT_HOSTSHM_INSIDE : 0u), *end == 's', (10 + n) * S);
        dt_wait_note(&w[n], w[n].call, w[n].stopped, 40 * S);
        w[n].ended = *end == 'e';
    }
    return n;
}

static void add_list(char *text, const struct dt_u32s *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        sprintf(text + strlen(text), "%s%u", i ? "," : "", list->v[i]);
}

static void whom_ranks_wait_for(void **state)
{
    static const struct {
        const char *ranks;
        const char *waits; /* longest, those with it, for whom */
    } cases[] = {
        { "3 3 3", "none" },
        { "0 0", "none" },
        { "(4 (4 3", "0: 0,1 for 2" },
        { "3 (4 (4", "1: 1,2 for 0" },
        { "(1 0 0", "0: 0 for 1,2" },          /* they have not called dt_init */
        { "(4 (4 3s", "0: 0,1 for 2" },        /* stopped between calls */
        { "(4 (4 (4s", "0: 0,1 for 2" },       /* stopped inside the call */
        { "(4s (4 (4", "1: 1,2 for 0" },       /* who is stopped does not wait */
        { "(4 (4 (4", "0: 0,1,2 for nobody" }, /* all have come */
        { "4 (4 (4", "1: 1,2 for nobody" },    /* one is through */
        { "(5 (4 (4 3", "0: 0 for 3" },        /* a root that is ahead */
        { "(5 (4s (4 (4s", "0: 0 for 1,3" },
        { "(4 2 3e", "0: 0 for 1" }, /* an ended rank is nobody's hope */
        { "(4e 3", "none" },
    };
    struct dt_wait w[RANKS];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t n = read_states(cases[i].ranks, w);
        int who = dt_wait_longest(w, n);
        struct dt_u32s with, whom;
        char text[128];

        if (who < 0) {
            assert_string_equal("none", cases[i].waits);
            continue;
        }
        dt_wait_with(w, n, (uint32_t)who, &with);
        dt_wait_for_whom(w, n, (uint32_t)who, &whom);
        snprintf(text, sizeof text, "%d: ", who);
        add_list(text, &with);
        strcat(text, " for ");
        if (whom.n == 0)
            strcat(text, "nobody");
        add_list(text, &whom);
        assert_string_equal(text, cases[i].waits);
        free(with.v);
        free(whom.v);
    }
}

static void a_wait_lasts_as_long_as_all_ranks_are_known(void **state)
{
    struct dt_wait w[RANKS];
    uint32_t n = read_states("(4 (4 3", w);

    (void)state;
    assert_true(dt_wait_seconds(w, n, 0) == 30);
    dt_wait_note(&w[0], w[0].call, false, 50 * S);
    dt_wait_note(&w[1], w[1].call, false, 50 * S);
    assert_true(dt_wait_seconds(w, n, 0) == 30); /* rank 2 may be there by now */
    dt_wait_note(&w[2], w[2].call, false, 50 * S);
    assert_true(dt_wait_seconds(w, n, 0) == 40);
    dt_wait_note(&w[0], w[0].call + 256, false, 51 * S);
    assert_true(dt_wait_seconds(w, n, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whom_ranks_wait_for),
        cmocka_unit_test(a_wait_lasts_as_long_as_all_ranks_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
