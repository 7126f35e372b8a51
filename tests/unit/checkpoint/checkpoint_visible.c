/* Whether all hosts see the checkpoint directory that rank 0 sees: found out by the first save, and
 * before it by a restore that finds nothing. There are two hosts, of the even and the odd ranks. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/checkpoint/checkpoint_ranks.h"
#include "tests/unit/checkpoint/scratch.h"
#include "tests/unit/unit.h"

static char even[80], odd[80]; /* the directory of each host's ranks, if they do not share one */

static int begin_test(void **state)
{
    int r = make_base(state);

    snprintf(even, sizeof even, "%s/even", base);
    snprintf(odd, sizeof odd, "%s/odd", base);
    return r;
}

static void begin(struct job *j, const char *even_path, const char *odd_path)
{
    job_init(j, 4, even_path, 0, 1);
    j->ranks[1].store.path = j->ranks[3].store.path = odd_path;
}

static void assert_says(const struct job *j, const char *what)
{
    char want[300];

    snprintf(want, sizeof want, " is not shared: what rank 0 %s; choose one that all hosts ", what);
    if (!strstr(j->ranks[2].text, want))
        fail_msg("\"%s\" lacks \"%s\"", j->ranks[2].text, want);
}

static void assert_has_nothing(const char *dir)
{
    char pattern[100];
    glob_t found;

    for (int hidden = 0; hidden < 2; hidden++) {
        snprintf(pattern, sizeof pattern, "%s/%s", dir, hidden ? ".[!.]*" : "*");
        assert_int_equal(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
    }
}

static void assert_restores_nothing(struct job *j)
{
    int64_t step;

    assert_int_equal(job_restore(j, &step), DT_OK);
    assert_int_equal(step, -1);
}

static void make_directories(void)
{
    assert_int_equal(mkdir(even, 0777), 0);
    assert_int_equal(mkdir(odd, 0777), 0);
}

static void a_save_names_the_host_that_sees_another_directory(void **state)
{
    struct job j;

    (void)state;
    for (int there = 0; there < 2; there++) {
        if (there)
            assert_int_equal(mkdir(odd, 0777), 0);
        begin(&j, even, odd);
        assert_int_equal(job_save(&j, 10), DT_ERR_IO);
        assert_says(&j, "writes there cannot be seen on odd");
        job_free(&j);
        assert_has_nothing(even);
    }
}

/* The directory may be shared: only the access fails. */
static void a_directory_that_a_host_cannot_open_names_the_reason(void **state)
{
    struct job j;

    (void)state;
    assert_int_equal(symlink(odd, odd), 0);
    begin(&j, even, odd);
    assert_int_equal(job_save(&j, 10), DT_ERR_IO);
    assert_says(&j, "writes there cannot be seen on odd (Too many levels of symbolic links)");
    job_free(&j);
    assert_int_equal(unlink(odd), 0);
}

/* As where each host has a volume of its own. */
static void a_restore_that_finds_nothing_names_the_host_too(void **state)
{
    struct job j;
    int64_t step;

    (void)state;
    make_directories();
    begin(&j, even, odd);
    assert_int_equal(job_restore(&j, &step), DT_ERR_IO);
    assert_says(&j, "writes there cannot be seen on odd");
    assert_int_equal(job_restore(&j, &step), DT_ERR_IO);
    job_free(&j);
    assert_has_nothing(even);
}

/* The directory above the missing ones is the one to look at. */
static void a_restore_makes_no_directory(void **state)
{
    char even_path[100], odd_path[100], want[200];
    struct job j;
    int64_t step;

    (void)state;
    make_directories();
    snprintf(even_path, sizeof even_path, "%s/runs//7/", even);
    snprintf(odd_path, sizeof odd_path, "%s/runs//7/", odd);
    snprintf(want, sizeof want, "writes to %s cannot be seen on odd", even);
    begin(&j, even_path, odd_path);
    assert_int_equal(job_restore(&j, &step), DT_ERR_IO);
    assert_says(&j, want);
    job_free(&j);
    begin(&j, even_path, even_path);
    assert_restores_nothing(&j);
    assert_has_nothing(even);
    assert_int_equal(job_save(&j, 10), DT_OK);
    job_free(&j);
}

/* What only rank 0 may write to says nothing about the hosts; a job may only restore. */
static void a_restore_needs_no_right_to_write(void **state)
{
    struct job j;

    (void)state;
    begin(&j, "/sys", odd);
    assert_restores_nothing(&j);
    job_free(&j);
}

static void a_restore_does_not_look_at_the_default_directory(void **state)
{
    struct job j;

    (void)state;
    make_directories();
    begin(&j, even, odd);
    for (uint32_t k = 0; k < j.size; k++)
        j.ranks[k].store.chosen = false;
    assert_restores_nothing(&j);
    job_free(&j);
}

/* A job that waits for another one's checkpoints writes nothing again. */
static void a_directory_that_was_seen_once_is_not_looked_for_again(void **state)
{
    struct job j;

    (void)state;
    make_directories();
    begin(&j, even, even);
    assert_restores_nothing(&j);
    j.ranks[1].store.path = odd;
    assert_restores_nothing(&j);
    job_free(&j);
}

static dt_result_t (*group_min)(void *ctx, int64_t *v, size_t n);

/* As another job does that begins to save: it takes the file for a leftover. */
static dt_result_t min_after_tidying(void *ctx, int64_t *v, size_t n)
{
    char command[100];

    snprintf(command, sizeof command, "rm -f %s/.save-*", even);
    assert_int_equal(system(command), 0);
    return group_min(ctx, v, n);
}

static void another_job_that_tidies_does_not_make_a_restore_fail(void **state)
{
    struct job j;

    (void)state;
    make_directories();
    begin(&j, even, odd);
    group_min = j.ranks[0].store.group.min;
    j.ranks[0].store.group.min = min_after_tidying;
    assert_restores_nothing(&j);
    job_free(&j);
}

#define ON_DISK(f) cmocka_unit_test_setup_teardown(f, begin_test, remove_base)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_DISK(a_save_names_the_host_that_sees_another_directory),
        ON_DISK(a_directory_that_a_host_cannot_open_names_the_reason),
        ON_DISK(a_restore_that_finds_nothing_names_the_host_too),
        ON_DISK(a_restore_makes_no_directory),
        ON_DISK(a_restore_needs_no_right_to_write),
        ON_DISK(a_restore_does_not_look_at_the_default_directory),
        ON_DISK(a_directory_that_was_seen_once_is_not_looked_for_again),
        ON_DISK(another_job_that_tidies_does_not_make_a_restore_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
