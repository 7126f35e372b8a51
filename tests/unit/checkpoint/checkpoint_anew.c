/* A job that started afresh ended after it had committed its first checkpoint, and before it had
 * set the old ones aside. Of the two lineages, the new one counts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/checkpoint/checkpoint_ranks.h"
#include "tests/unit/checkpoint/scratch.h"
#include "tests/unit/unit.h"

static char dir[80];
static int moves_left = -1; /* checkpoints that can still be set aside; -1: all of them */

static int begin_test(void **state)
{
    int r = make_base(state);

    snprintf(dir, sizeof dir, "%s/c", base);
    return r;
}

/* Replaces libc's. */
int renameat(int from, const char *old, int to, const char *name)
{
    bool moves = strncmp(name, "earlier-", 8) == 0;

    if (moves && moves_left == 0) {
        errno = EIO;
        return -1;
    }
    moves_left -= moves && moves_left > 0;
    return (int)syscall(SYS_renameat2, from, old, to, name, 0);
}

static const char old_job[] = "before-01234567", new_job[] = "anew-01234567",
                  next_job[] = "next-01234567";

static void begin(struct job *j, const char *job_id, int64_t fill)
{
    job_init(j, 2, dir, 0, fill);
    for (uint32_t k = 0; k < j->size; k++)
        j->ranks[k].store.owner.job_id = job_id;
}

/* Returns the content of LINEAGE. */
static struct dt_lineage_file file(void)
{
    struct dt_dir d = { .fd = -1 };
    struct dt_lineage_file f;

    assert_int_equal(dt_dir_open(&d, dir), DT_OK);
    assert_int_equal(dt_lineage_file_read(&f, &d), DT_OK);
    dt_dir_close(&d);
    return f;
}

/* Steps 10 and 20 belong to the old job, and step 5 to the new one. */
static struct dt_lineage leave_unfinished(void)
{
    struct dt_lineage before;
    struct job j;

    begin(&j, old_job, 10);
    assert_int_equal(job_save(&j, 10), DT_OK);
    job_fill(&j, 20);
    assert_int_equal(job_save(&j, 20), DT_OK);
    job_free(&j);
    before = file().line;
    begin(&j, new_job, 5);
    j.ranks[0].store.fresh = true;
    assert_int_equal(job_save(&j, 5), DT_OK);
    job_free(&j);
    assert_int_equal(file().begins.step, -1);
    job_undo_setting_aside(dir, 5, &before);
    return before;
}

static bool exists(const char *name)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

static void resume(struct job *j)
{
    begin(j, next_job, 0);
    for (uint32_t k = 0; k < j->size; k++)
        j->ranks[k].store.resume = true;
}

static void assert_restores(struct job *j, int64_t step, const char *job_id)
{
    int64_t found;

    assert_int_equal(job_restore(j, &found), DT_OK);
    assert_int_equal(found, step);
    assert_true(job_holds(j, step));
    assert_string_equal(j->ranks[0].store.found.line.job.job, job_id);
}

static void the_next_job_that_saves_finishes_setting_aside(void **state)
{
    struct job j;

    (void)state;
    leave_unfinished();
    resume(&j);
    assert_restores(&j, 5, new_job);
    assert_true(exists("step_000000000020")); /* a restore changes nothing */
    assert_int_equal(job_save(&j, 6), DT_OK);
    assert_int_equal(j.notes, 0);
    job_free(&j);
    assert_true(exists("earlier-next-01234567-g0-1/step_000000000010/MANIFEST"));
    assert_true(exists("earlier-next-01234567-g0-1/step_000000000020/MANIFEST"));
    assert_false(exists("step_000000000010") || exists("step_000000000020"));
    assert_true(exists("step_000000000005") && exists("step_000000000006"));
    assert_int_equal(file().begins.step, -1);
}

/* The first step of a fresh job may be one of the existing steps. */
static void the_older_content_of_the_same_step_is_set_aside_too(void **state)
{
    struct job j;
    char command[300];

    (void)state;
    leave_unfinished();
    snprintf(command, sizeof command, "cd %s && mv step_000000000020 .replaced-step_000000000005",
             dir);
    assert_int_equal(system(command), 0);
    resume(&j);
    assert_restores(&j, 5, new_job);
    assert_int_equal(job_save(&j, 6), DT_OK);
    job_free(&j);
    assert_true(exists("earlier-next-01234567-g0-1/step_000000000005/MANIFEST"));
    assert_true(exists("earlier-next-01234567-g0-1/step_000000000010/MANIFEST"));
}

static void a_job_that_may_not_write_restores_the_new_checkpoint(void **state)
{
    uid_t me = geteuid();
    struct job j;

    (void)state;
    leave_unfinished();
    assert_int_equal(chmod(base, 0755) | chmod(dir, 0555), 0);
    resume(&j);
    assert_int_equal(me == 0 ? seteuid(65534) : 0, 0);
    assert_restores(&j, 5, new_job);
    assert_int_equal(job_save(&j, 6), DT_ERR_IO);
    assert_int_equal(me == 0 ? seteuid(me) : 0, 0);
    job_free(&j);
    assert_int_equal(file().begins.step, 5);
    assert_int_equal(chmod(dir, 0777), 0);
}

static void a_job_that_cannot_finish_setting_aside_saves_nothing(void **state)
{
    struct job j;

    (void)state;
    leave_unfinished();
    resume(&j);
    assert_restores(&j, 5, new_job);
    moves_left = 1;
    assert_int_equal(job_save(&j, 6), DT_ERR_IO);
    assert_non_null(strstr(j.ranks[1].text, "step_000000000020: rename: Input/output error"));
    moves_left = -1;
    assert_true(exists("step_000000000010") && exists("step_000000000020"));
    assert_false(exists("step_000000000006") || exists("earlier-next-01234567-g0-1"));
    assert_restores(&j, 5, new_job);
    assert_int_equal(job_save(&j, 6), DT_OK);
    job_free(&j);
}

static void a_job_that_has_not_committed_changes_nothing(void **state)
{
    struct dt_lineage before = leave_unfinished();
    char path[200], other[200];
    struct job j;

    (void)state;
    snprintf(path, sizeof path, "%s/step_000000000005", dir);
    snprintf(other, sizeof other, "%s/.save-anew-01234567-g0-step_000000000005-1", dir);
    assert_int_equal(rename(path, other), 0);
    resume(&j);
    assert_restores(&j, 20, old_job);
    assert_int_equal(job_save(&j, 30), DT_OK);
    job_free(&j);
    assert_string_equal(file().line.id, before.id);
    assert_string_equal(file().line.job.job, next_job);
    assert_true(exists("step_000000000020") && exists("step_000000000030"));
}

/* An older checkpoint with that name does not belong to the new lineage. */
static void an_old_checkpoint_of_the_same_step_does_not_count(void **state)
{
    char command[300];
    struct job j;

    (void)state;
    leave_unfinished();
    snprintf(command, sizeof command,
             "cd %s && rm -r step_000000000005 && mv step_000000000010 step_000000000005", dir);
    assert_int_equal(system(command), 0);
    resume(&j);
    assert_restores(&j, 20, old_job);
    job_free(&j);
}

static void a_truncated_file_does_not_mark_a_fresh_start(void **state)
{
    struct dt_lineage_file whole, cut;
    char path[200];
    struct stat st;

    (void)state;
    leave_unfinished();
    whole = file();
    assert_int_equal(whole.begins.step, 5);
    assert_string_equal(whole.begins.before.job.job, old_job);
    snprintf(path, sizeof path, "%s/" DT_LINEAGE_NAME, dir);
    assert_int_equal(stat(path, &st), 0);
    for (off_t n = st.st_size - 1; n >= 0; n--) {
        assert_int_equal(truncate(path, n), 0);
        cut = file();
        assert_int_equal(cut.begins.step, -1);
        assert_true(!cut.line.id[0] || strcmp(cut.line.job.job, new_job) == 0);
    }
}

#define ON_DISK(f) cmocka_unit_test_setup_teardown(f, begin_test, remove_base)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_DISK(the_next_job_that_saves_finishes_setting_aside),
        ON_DISK(the_older_content_of_the_same_step_is_set_aside_too),
        ON_DISK(a_job_that_may_not_write_restores_the_new_checkpoint),
        ON_DISK(a_job_that_cannot_finish_setting_aside_saves_nothing),
        ON_DISK(a_job_that_has_not_committed_changes_nothing),
        ON_DISK(an_old_checkpoint_of_the_same_step_does_not_count),
        ON_DISK(a_truncated_file_does_not_mark_a_fresh_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
