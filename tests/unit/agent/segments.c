/* How the agent hands out memory files for buffers of ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/agent/ranklink/segments.h"
#include "runtime/wire/sealed.h"

enum { RANKS = 3 };

static int want(struct dt_segments *s, uint32_t local_rank, uint64_t comm, uint64_t call,
                uint64_t bytes, uint32_t members, uint64_t *number)
{
    const struct dt_segments_wanted wanted = { comm, call, bytes, members, 0 };

    return dt_segments_want(s, local_rank, &wanted, number);
}

static bool is_same_file(int a, int b)
{
    struct stat x, y;

    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

static void all_ranks_get_the_same_sealed_file(void **state)
{
    struct dt_segments *s = dt_segments_create(RANKS);
    uint64_t number[4] = { 0 };
    int first = want(s, 0, 0, 1, 12345, 2, &number[0]);
    int other = want(s, 0, 77, 1, 4096, 1, &number[1]);
    int second = want(s, 1, 0, 1, 12345, 2, &number[2]);
    int next = want(s, 1, 0, 2, 12345, 2, &number[3]);

    (void)state;
    assert_true(number[0] == number[2] && number[1] > number[0] && number[3] > number[1]);
    assert_true(is_same_file(first, second));
    assert_false(is_same_file(first, other) || is_same_file(first, next));
    assert_true(dt_sealed_check(first, 12345) && !dt_sealed_check(first, 4096));
    assert_true(ftruncate(second, 0) == -1 && ftruncate(second, 20000) == -1);
    close(first);
    close(second);
    close(other);
    close(next);
    dt_segments_destroy(s);
}

static void wrong_or_excessive_requests_get_no_file(void **state)
{
    static const struct {
        uint64_t bytes;
        uint32_t members;
        int error;
    } cases[] = {
        { 0, 2, EINVAL },          { 4096, 0, EINVAL },      { 4096, RANKS + 1, EINVAL },
        { UINT64_MAX, 2, ENOMEM }, { INT64_MAX, 2, ENOMEM },
    };
    struct dt_segments *s = dt_segments_create(RANKS);
    uint64_t number;
    int fd;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint32_t rank = 0; rank < 2; rank++) {
            assert_int_equal(want(s, rank, i, 1, cases[i].bytes, cases[i].members, &number), -1);
            assert_int_equal(errno, cases[i].error);
        }
        /* All ranks have the file, so the next request makes a new one. */
        fd = want(s, 0, i, 2, 4096, 1, &number);
        assert_true(fd >= 0);
        close(fd);
    }
    dt_segments_destroy(s);
}

static void ranks_that_disagree_are_refused(void **state)
{
    struct dt_segments *s = dt_segments_create(RANKS);
    uint64_t number;
    int fd = want(s, 0, 5, 3, 4096, 2, &number);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(want(s, 1, 5, 3, 8192, 2, &number), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(want(s, 1, 5, 3, 4096, 1, &number), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(want(s, 0, 5, 3, 4096, 2, &number), -1); /* the rank has its file already */
    assert_int_equal(errno, EINVAL);
    assert_int_equal(want(s, 1, 5, 2, 4096, 2, &number), -1); /* that call is over */
    assert_int_equal(errno, EINVAL);
    dt_segments_destroy(s);
}

static void files_are_kept_no_longer_than_their_communicators(void **state)
{
    enum { COMMS = 300 };
    struct dt_segments *s = dt_segments_create(RANKS);
    uint64_t number, before = 0;

    (void)state;
    for (uint64_t call = 1; call < 4; call++) {
        for (uint64_t comm = 1; comm <= COMMS; comm++)
            close(want(s, 0, comm, call, 4096, 2, &number));
        assert_int_equal(dt_segments_kept(s), COMMS);
    }
    before = number;
    close(want(s, 1, COMMS, 3, 4096, 2, &number));
    assert_true(number == before);
    assert_int_equal(dt_segments_kept(s), COMMS - 1);
    for (uint64_t comm = 1; comm <= COMMS; comm++)
        dt_segments_forget(s, comm);
    assert_int_equal(dt_segments_kept(s), 0);
    dt_segments_destroy(s);
}

/* Local rank 0 gives this to the two others. */
static const struct dt_segments_wanted arena = {
    .comm = 9, .call = 1, .bytes = 4096, .members = 2, .giver = 1
};

static void the_others_get_a_file_that_a_rank_gives(void **state)
{
    struct dt_segments *s = dt_segments_create(RANKS);
    struct dt_segments_wanted later = arena;
    int given = dt_sealed_create("given", 4096), taken[2];
    uint64_t number;

    (void)state;
    assert_int_equal(dt_segments_want(s, 1, &arena, &number), -1); /* too early */
    assert_int_equal(errno, EINVAL);
    close(want(s, 0, arena.comm, 1, 4096, 2, &number)); /* a file of the same call is another one */
    assert_int_equal(dt_segments_give(s, 0, &arena, given), 0);
    for (uint32_t i = 0; i < 2; i++) {
        taken[i] = dt_segments_want(s, i + 1, &arena, &number);
        assert_true(is_same_file(taken[i], given));
        close(taken[i]);
    }
    assert_int_equal(dt_segments_kept(s), 1);
    assert_int_equal(dt_segments_want(s, 1, &arena, &number), -1);
    assert_int_equal(dt_segments_give(s, 0, &arena, given), 0);
    later.call = 2;
    assert_int_equal(dt_segments_give(s, 0, &later, given), 0); /* this drops the earlier one */
    assert_int_equal(dt_segments_want(s, 1, &arena, &number), -1);
    assert_int_equal(dt_segments_kept(s), 2);
    dt_segments_forget(s, arena.comm);
    assert_int_equal(dt_segments_kept(s), 0);
    close(given);
    dt_segments_destroy(s);
}

static void no_rank_gives_a_file_in_the_name_of_another(void **state)
{
    struct dt_segments *s = dt_segments_create(RANKS);
    struct dt_segments_wanted many = arena;
    int given = dt_sealed_create("given", 4096);
    uint64_t number;

    (void)state;
    assert_int_equal(dt_segments_give(s, 1, &arena, given), -1);
    assert_int_equal(errno, EINVAL);
    many.members = RANKS;
    assert_int_equal(dt_segments_give(s, 0, &many, given), -1);
    many.members = 0;
    assert_int_equal(dt_segments_give(s, 0, &many, given), -1);
    assert_int_equal(dt_segments_give(s, 0, &arena, -1), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(dt_segments_kept(s), 0);
    assert_int_equal(dt_segments_give(s, 0, &arena, given), 0);
    assert_int_equal(dt_segments_give(s, 0, &arena, given), -1);   /* twice in one call */
    assert_int_equal(dt_segments_want(s, 0, &arena, &number), -1); /* it has the file already */
    close(given);
    dt_segments_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_get_the_same_sealed_file),
        cmocka_unit_test(wrong_or_excessive_requests_get_no_file),
        cmocka_unit_test(ranks_that_disagree_are_refused),
        cmocka_unit_test(files_are_kept_no_longer_than_their_communicators),
        cmocka_unit_test(the_others_get_a_file_that_a_rank_gives),
        cmocka_unit_test(no_rank_gives_a_file_in_the_name_of_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
