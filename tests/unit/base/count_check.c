/* The sum of the checks of all ranks is 0 if each rank gives what the others expect. Otherwise it
 * is not 0, even if the byte counts of several mismatches cancel out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "runtime/base/count_check.h"

enum { RANKS = 12 };

static const size_t amounts[] = { 1, 4, 4096, (size_t)1 << 32, (size_t)1 << 62 };

struct exchange {
    size_t sent[RANKS][RANKS];     /* by sender, then receiver */
    size_t received[RANKS][RANKS]; /* by receiver, then sender */
};

/* Makes every pair agree. */
static void agree(struct exchange *e)
{
    for (uint32_t sender = 0; sender < RANKS; sender++) {
        for (uint32_t receiver = 0; receiver < RANKS; receiver++)
            e->sent[sender][receiver] = e->received[receiver][sender] =
                (sender * 7 + receiver * 3) % 5;
    }
}

/* Sums over all ranks, without what each sends to itself. */
static uint64_t sum(const struct exchange *e)
{
    uint64_t all = 0;

    for (uint32_t me = 0; me < RANKS; me++) {
        struct dt_blocks sent = dt_blocks_of(e->sent[me]), received = dt_blocks_of(e->received[me]);

        all += dt_count_check_blocks(me, RANKS, &sent, true);
        all += dt_count_check_blocks(me, RANKS, &received, false);
    }
    return all;
}

/* What a pair adds to the sum if the sender means more bytes than the receiver, by this number. */
static uint64_t mismatch(uint32_t sender, uint32_t receiver, size_t more)
{
    return dt_count_check_one(sender, receiver, 100 + more, true) +
           dt_count_check_one(receiver, sender, 100, false);
}

static void pairs_that_agree_add_nothing(void **state)
{
    static struct exchange e;
    struct dt_blocks alike = dt_blocks_each(SIZE_MAX);
    uint64_t all = 0;

    (void)state;
    agree(&e);
    e.sent[3][4] = e.received[4][3] = SIZE_MAX;
    assert_true(sum(&e) == 0);
    for (uint32_t me = 0; me < RANKS; me++)
        all += dt_count_check_blocks(me, RANKS, &alike, true) +
               dt_count_check_blocks(me, RANKS, &alike, false);
    assert_true(all == 0);
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++)
        assert_true(dt_count_check_one(2, 2, amounts[i], true) +
                        dt_count_check_one(2, 2, amounts[i], false) ==
                    0);
}

static void one_pair_that_differs_shows(void **state)
{
    static struct exchange e;

    (void)state;
    agree(&e);
    for (uint32_t sender = 0; sender < RANKS; sender++) {
        for (uint32_t receiver = 0; receiver < RANKS; receiver++) {
            for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++) {
                e.sent[sender][receiver] += amounts[i];
                assert_int_equal(sum(&e) != 0, sender != receiver);
                e.sent[sender][receiver] -= amounts[i];
                assert_true(mismatch(sender, receiver, amounts[i]) != 0);
            }
        }
    }
}

/* Two ranks have swapped what they send to two others. */
static void blocks_sent_to_the_wrong_ranks_show(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 32 * 32 * 32 * 32; i++) {
        uint32_t a = i % 32, b = i / 32 % 32, x = i / 1024 % 32, y = i / (32 * 1024);

        if (a < b && x < y)
            assert_true(mismatch(a, x, 1) + mismatch(a, y, -1) + mismatch(b, x, -1) +
                            mismatch(b, y, 1) !=
                        0);
    }
}

/* One rank places a remainder elsewhere than its peers do. */
static void misplaced_remainders_show(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 64 * 64 * 64; i++) {
        uint32_t a = i % 64, b = i / 64 % 64, step = 1 + i / 4096;

        assert_true(mismatch(a, 0, 1) + mismatch(a + step, 0, -1) != 0);
        if (a + step == b)
            continue;
        assert_true(mismatch(a, 0, 1) + mismatch(a + step, 0, -1) + mismatch(b, 0, -1) +
                        mismatch(b + step, 0, 1) !=
                    0);
        assert_true(mismatch(0, a, 1) + mismatch(0, a + step, -1) + mismatch(0, b, -1) +
                        mismatch(0, b + step, 1) !=
                    0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_that_agree_add_nothing),
        cmocka_unit_test(one_pair_that_differs_shows),
        cmocka_unit_test(blocks_sent_to_the_wrong_ranks_show),
        cmocka_unit_test(misplaced_remainders_show),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
