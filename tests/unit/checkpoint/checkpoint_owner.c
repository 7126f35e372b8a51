/* Two jobs and one checkpoint directory.
 *
 *     checkpoint_owner [ROUNDS]      of the race; without: few enough for every day */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/checkpoint/checkpoint_ranks.h"
#include "tests/unit/unit.h"

static int rounds = 25;
static char base[64];
static char dir[80];

static int make_base(void **state)
{
    (void)state;
    snprintf(base, sizeof base, "%s/dtrun-owner-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(base))
        return -1;
    snprintf(dir, sizeof dir, "%s/c", base);
    return 0;
}

static int remove_base(void **state)
{
    char command[100];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", base);
    return system(command);
}

static const char *owner_path(void)
{
    static char p[100];

    snprintf(p, sizeof p, "%s/" DT_OWNER_NAME, dir);
    return p;
}

static void write_owner(const char *text)
{
    FILE *f = fopen(owner_path(), "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static const char stolen[] = "job thief-00000000\ngeneration 0\nhost far\npid 7\n"
                             "since 2026-01-02T03:04:05Z\n";

static bool steals; /* OWNER names another job by the time the manifest is durable */

/* In the place of libc's. */
int fsync(int fd)
{
    char link[64], name[300];
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, name, sizeof name - 1);
    name[n > 0 ? n : 0] = '\0';
    if (steals && strstr(name, "/MANIFEST"))
        write_owner(stolen);
    return (int)syscall(SYS_fsync, fd);
}

static bool vanishes; /* OWNER's last owner removes it between this job's open and flock */

/* In the place of libc's. */
int flock(int fd, int operation)
{
    if (vanishes)
        assert_int_equal(unlink(owner_path()), 0);
    vanishes = false;
    return (int)syscall(SYS_flock, fd, operation);
}

static void begin(struct job *j, const char *job_id, uint32_t generation, int64_t fill)
{
    job_init(j, 2, dir, generation, fill);
    for (uint32_t k = 0; k < j->size; k++)
        j->ranks[k].store.owner.job_id = job_id;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" lacks \"%s\"", text, part);
}

static void d29_a_second_job_is_told_whose_the_directory_is(void **state)
{
    struct job a, b;
    char pid[40];
    int64_t step;

    (void)state;
    begin(&a, "first-01234567", 3, 10);
    begin(&b, "second-89abcdef", 0, 77);
    assert_int_equal(job_save(&a, 10), DT_OK);
    assert_int_equal(job_restore(&b, &step), DT_ERR_STATE);
    snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    assert_has(b.ranks[1].text,
               "is in use by job first-01234567 (generation 3; rank 0 is process ");
    assert_has(b.ranks[1].text, pid);
    assert_has(b.ranks[1].text, "on host even) since 20");
    assert_has(b.ranks[1].text, "choose another directory");
    assert_true(job_holds(&b, 77));
    assert_int_equal(job_save(&b, 20), DT_ERR_STATE);
    assert_int_equal(job_restore(&a, &step), DT_OK); /* its owner is not disturbed */
    assert_int_equal(step, 10);
    job_free(&a);
    assert_int_equal(access(owner_path(), F_OK), -1);
    assert_int_equal(job_restore(&b, &step), DT_OK); /* the directory is free now */
    assert_int_equal(step, 10);
    job_free(&b);
}

static void d29_a_later_generation_takes_over_and_the_older_commits_nothing(void **state)
{
    struct job older, later;
    int64_t step;

    (void)state;
    begin(&older, "job-01234567", 1, 10);
    begin(&later, "job-01234567", 2, 0);
    assert_int_equal(job_save(&older, 10), DT_OK);
    assert_int_equal(job_restore(&later, &step), DT_OK); /* the older one lives and has the lock */
    assert_int_equal(step, 10);
    assert_int_equal(job_save(&older, 20), DT_ERR_STATE);
    assert_has(older.ranks[0].text, "in use by job job-01234567 (generation 2;");
    assert_int_equal(job_save(&later, 30), DT_OK);
    job_free(&later);
    assert_int_equal(job_save(&older, 40), DT_ERR_STATE);
    assert_has(older.ranks[0].text, "OWNER is gone");
    job_free(&older);

    begin(&later, "job-01234567", 3, 0);
    assert_int_equal(job_restore(&later, &step), DT_OK);
    assert_int_equal(step, 30);
    begin(&older, "job-01234567", 2, 0); /* one that begins late */
    assert_int_equal(job_restore(&older, &step), DT_ERR_STATE);
    job_free(&older);
    job_free(&later);
}

static void d29_nobody_holds_the_directory_of_a_dead_job(void **state)
{
    struct job j;
    int64_t step;

    (void)state;
    assert_int_equal(mkdir(dir, 0777), 0);
    for (int i = 0; i < 3; i++) {
        write_owner(i == 0 ? stolen : i == 1 ? "" : "damaged");
        begin(&j, "job-01234567", 0, 10);
        assert_int_equal(job_save(&j, 10 + i), DT_OK);
        assert_int_equal(job_restore(&j, &step), DT_OK);
        assert_int_equal(step, 10 + i);
        job_free(&j);
    }
}

/* As on a file system whose locks end at the host: the lock did not keep the other job out. */
static void d29_no_job_commits_that_is_not_the_owner_any_more(void **state)
{
    struct job j;
    int64_t step;

    (void)state;
    begin(&j, "job-01234567", 0, 10);
    assert_int_equal(job_save(&j, 10), DT_OK);
    steals = true;
    assert_int_equal(job_save(&j, 20), DT_ERR_STATE);
    steals = false;
    assert_has(j.ranks[1].text,
               "in use by job thief-00000000 (generation 0; rank 0 is process 7 on "
               "host far) since 2026-01-02T03:04:05Z: it has taken the directory");
    assert_int_equal(j.committed, 10);
    job_free(&j);
    assert_int_equal(access(owner_path(), F_OK), 0); /* the other's */
    begin(&j, "job-01234567", 1, 0);
    assert_int_equal(job_restore(&j, &step), DT_OK);
    assert_int_equal(step, 10);
    job_free(&j);
}

static void d29_a_lock_on_a_file_that_was_removed_is_none(void **state)
{
    struct job a, b;
    int64_t step;

    (void)state;
    begin(&a, "first-01234567", 0, 10);
    begin(&b, "second-89abcdef", 0, 0);
    vanishes = true;
    assert_int_equal(job_save(&a, 10), DT_OK);
    assert_false(vanishes);
    assert_int_equal(job_restore(&b, &step), DT_ERR_STATE);
    job_free(&b);
    job_free(&a);
}

/* Rank 0, with a child that outlives it: the child says when the directory is its parent's alone.
 */
static void own_with_a_child(int ready, int end)
{
    static struct job j;
    char c = 0;

    job_init(&j, 1, dir, 0, 10);
    if (dt_store_save(&j.ranks[0].store, &j.ranks[0].buffers, 10) != DT_OK)
        _exit(1);
    if (fork() == 0) {
        dt_owner_forget(&j.ranks[0].store.ownership); /* as fork's handler does */
        _exit(write(ready, &c, 1) == 1 && read(end, &c, 1) == 0 ? 0 : 1);
    }
    pause();
}

static void d29_a_child_process_does_not_keep_the_directory(void **state)
{
    int ready[2], end[2], status;
    struct job j;
    int64_t step;
    pid_t pid;
    char c;

    (void)state;
    assert_int_equal(pipe(ready) | pipe(end), 0);
    pid = fork();
    if (pid == 0) {
        close(end[1]);
        own_with_a_child(ready[1], end[0]);
    }
    assert_true(pid > 0);
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    begin(&j, "second-89abcdef", 0, 0);
    assert_int_equal(job_restore(&j, &step), DT_ERR_STATE); /* rank 0 lives */
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(job_restore(&j, &step), DT_ERR_MISMATCH); /* one rank has saved, two restore */
    job_free(&j);
    close(end[1]);
    assert_int_equal(read(ready[0], &c, 1), 0); /* the child has ended */
    close(ready[0]);
    close(end[0]);
}

/* ---- the race ---- */

enum { OWNED = 0, WRONG = 1, REFUSED = 2, LIVES = 20 };

/* Steps tell who saved them: a job's own are all even, or all odd. */
static bool is_whole(const struct job *j, int64_t step)
{
    return step < 0 ? job_holds(j, -7) : job_holds(j, step);
}

/* One start of a job: while it has the directory it finds what it saved itself, and nothing else.
 */
static int live(int who, int life)
{
    static struct job j;
    char job_id[40];
    int64_t step, mine;
    dt_result_t result;

    snprintf(job_id, sizeof job_id, "job%d-%d", who, life);
    job_init(&j, 1, dir, 0, -7);
    j.ranks[0].store.owner.job_id = job_id;
    result = dt_store_restore(&j.ranks[0].store, &j.ranks[0].buffers, &step);
    if (result == DT_ERR_STATE)
        return REFUSED;
    if (result != DT_OK || !is_whole(&j, step))
        goto wrong;
    for (int i = 0; i < LIVES; i++) {
        int64_t found;

        mine = (step + 2) / 2 * 2 + who;
        job_fill(&j, mine);
        result = dt_store_save(&j.ranks[0].store, &j.ranks[0].buffers, mine);
        if (result == DT_ERR_STATE && i == 0 && step < 0)
            return REFUSED; /* there was no directory to own yet */
        if (result != DT_OK)
            goto wrong;
        result = dt_store_restore(&j.ranks[0].store, &j.ranks[0].buffers, &found);
        if (result != DT_OK || found != mine || !is_whole(&j, found))
            goto wrong;
        step = found;
    }
    job_free(&j);
    return OWNED;
wrong:
    fprintf(stderr, "job %d, result %d: %s\n", who, result, dt_last_error());
    return WRONG;
}

static pid_t start(int who, int life)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(live(who, life));
    assert_true(pid > 0);
    return pid;
}

static unsigned random_below(unsigned n)
{
    static unsigned long long x = 88172645463325252ULL; /* xorshift: the same from run to run */

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (unsigned)(x % n);
}

static void d29_no_job_restores_what_a_racing_one_has_saved(void **state)
{
    int ends[3] = { 0 }, killed = 0;

    (void)state;
    for (int round = 0; round < rounds; round++) {
        pid_t pids[2] = { start(0, round), start(1, round) };
        struct timespec moment = { 0, (long)random_below(5 * 1000 * 1000) };
        int status;

        nanosleep(&moment, NULL); /* no order is wanted: the kill falls anywhere */
        kill(pids[random_below(2)], SIGKILL);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(waitpid(pids[k], &status, 0), pids[k]);
            if (WIFSIGNALED(status))
                killed++;
            else
                ends[WEXITSTATUS(status)]++;
        }
        assert_int_equal(ends[WRONG], 0);
    }
    print_message("%d lives owned the directory, %d were refused, %d killed\n", ends[OWNED],
                  ends[REFUSED], killed);
    assert_true(ends[REFUSED] + killed > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(d29_a_second_job_is_told_whose_the_directory_is, make_base,
                                        remove_base),
        cmocka_unit_test_setup_teardown(
            d29_a_later_generation_takes_over_and_the_older_commits_nothing, make_base,
            remove_base),
        cmocka_unit_test_setup_teardown(d29_nobody_holds_the_directory_of_a_dead_job, make_base,
                                        remove_base),
        cmocka_unit_test_setup_teardown(d29_no_job_commits_that_is_not_the_owner_any_more,
                                        make_base, remove_base),
        cmocka_unit_test_setup_teardown(d29_a_lock_on_a_file_that_was_removed_is_none, make_base,
                                        remove_base),
        cmocka_unit_test_setup_teardown(d29_a_child_process_does_not_keep_the_directory, make_base,
                                        remove_base),
        cmocka_unit_test_setup_teardown(d29_no_job_restores_what_a_racing_one_has_saved, make_base,
                                        remove_base),
    };

    if (argc > 1)
        rounds = atoi(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
