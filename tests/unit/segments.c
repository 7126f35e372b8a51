/* Memory files for buffers of ranks: how the agent hands them out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/agent/segments.h"
#include "runtime/wire/sealed.h"

enum { RANKS = 3 };

static bool is_same_file(int a, int b)
{
    struct stat x, y;

    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

static void all_have_the_same_sealed_file(void **state)
{
    struct dt_segments *s = dt_segments_create(RANKS);
    uint64_t number[4] = { 0 };
    int first = dt_segments_want(s, 0, 12345, 2, &number[0]);
    int other = dt_segments_want(s, 77, 4096, 1, &number[1]);
    int second = dt_segments_want(s, 0, 12345, 2, &number[2]);
    int next = dt_segments_want(s, 0, 12345, 2, &number[3]);

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

static void what_is_wrong_or_too_much_has_none(void **state)
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
        for (int rank = 0; rank < 2; rank++) {
            assert_int_equal(dt_segments_want(s, i, cases[i].bytes, cases[i].members, &number), -1);
            assert_int_equal(errno, cases[i].error);
        }
        /* All have been told: what comes next is new. */
        fd = dt_segments_want(s, i, 4096, 1, &number);
        assert_true(fd >= 0);
        close(fd);
    }
    dt_segments_destroy(s);
}

static void ranks_that_disagree_are_told(void **state)
{
    struct dt_segments *s = dt_segments_create(RANKS);
    uint64_t number;
    int fd = dt_segments_want(s, 5, 4096, 2, &number);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(dt_segments_want(s, 5, 8192, 2, &number), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(dt_segments_want(s, 5, 4096, 1, &number), -1);
    assert_int_equal(errno, EINVAL);
    dt_segments_destroy(s);
}

/* Communicators that failed when some of their ranks had been served. */
static void there_is_an_end_to_what_is_kept(void **state)
{
    struct dt_segments *s = dt_segments_create(RANKS);
    uint64_t number, comm = 0;
    int fd = 0;

    (void)state;
    while (comm < 10000 && (fd = dt_segments_want(s, comm, 4096, 2, &number)) >= 0) {
        close(fd);
        comm++;
    }
    assert_int_equal(fd, -1);
    assert_true(errno == ENOSPC && comm > 100);
    dt_segments_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_have_the_same_sealed_file),
        cmocka_unit_test(what_is_wrong_or_too_much_has_none),
        cmocka_unit_test(ranks_that_disagree_are_told),
        cmocka_unit_test(there_is_an_end_to_what_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
