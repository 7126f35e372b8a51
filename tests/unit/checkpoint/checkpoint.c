/* The checkpoint store, used by several ranks in one directory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utime.h>

#include "tests/unit/checkpoint/checkpoint_ranks.h"
#include "tests/unit/checkpoint/scratch.h"
#include "tests/unit/unit.h"

enum { TEXT_MAX = 1024 };

static char dir[80]; /* of the store */

static int begin_test(void **state)
{
    int r = make_base(state);

    snprintf(dir, sizeof dir, "%s/a/b", base);
    return r;
}

static int end_test(void **state)
{
    umount2(base, MNT_DETACH); /* a test may have mounted something there */
    return remove_base(state);
}

static char synced[4096];         /* names that have been made durable, one a line */
static const char *fails_sync_of; /* fails after others have been set aside there */
static pthread_mutex_t synced_lock = PTHREAD_MUTEX_INITIALIZER; /* ranks are threads here */

static bool exists(const char *name);

/* Replaces libc's. */
int fsync(int fd)
{
    char link[64], name[300];
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, name, sizeof name - 1);
    pthread_mutex_lock(&synced_lock);
    if (n > 0 && strlen(synced) + (size_t)n + 2 < sizeof synced)
        snprintf(synced + strlen(synced), sizeof synced - strlen(synced), "%.*s\n", (int)n, name);
    pthread_mutex_unlock(&synced_lock);
    name[n > 0 ? n : 0] = '\0';
    if (fails_sync_of && strcmp(name, fails_sync_of) == 0 && exists("earlier-job-01234567-g0-1")) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

static _Atomic uint64_t shard_bytes; /* bytes read from the files of ranks */

/* Replaces libc's. Like NFS, it need not notice that the directory exists. */
int mkdir(const char *path, mode_t mode)
{
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = EACCES;
        return -1;
    }
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

/* Replaces libc's. */
ssize_t read(int fd, void *buf, size_t n)
{
    ssize_t got = syscall(SYS_read, fd, buf, n);
    char link[64], name[300];
    ssize_t len;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    len = readlink(link, name, sizeof name - 1);
    if (got > 0 && len > 6 && memcmp(name + len - 6, ".shard", 6) == 0)
        shard_bytes += (uint64_t)got;
    return got;
}

static const char *path(const char *name)
{
    static char p[300];

    snprintf(p, sizeof p, "%s/%s", dir, name);
    return p;
}

static bool exists(const char *name)
{
    struct stat st;

    return lstat(path(name), &st) == 0;
}

/* Counts the entries of the store's directory, also hidden ones, without the files that name its
 * owner. */
static int entries(void)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    int n = 0;

    assert_non_null(d);
    while ((e = readdir(d)))
        n += strcmp(e->d_name, DT_OWNER_NAME) != 0 && strcmp(e->d_name, DT_LINEAGE_NAME) != 0;
    closedir(d);
    return n - 2;
}

static void make_entry(const char *name, long age)
{
    struct utimbuf t = { time(NULL) - age, time(NULL) - age };
    char inner[400];
    int fd;

    assert_int_equal(mkdir(path(name), 0777), 0);
    snprintf(inner, sizeof inner, "%s/rank_00000.shard", path(name));
    fd = open(inner, O_CREAT | O_WRONLY, 0666);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(utime(path(name), &t), 0);
}

/* Saves the steps, up to -1, each with its number as content, as generation 0 of the job. */
static void save_steps(uint32_t size, const int64_t *steps)
{
    struct job j;

    job_init(&j, size, dir, 0, 0);
    for (; *steps >= 0; steps++) {
        job_fill(&j, *steps);
        assert_int_equal(job_save(&j, *steps), DT_OK);
        assert_int_equal(j.committed, *steps);
    }
    job_free(&j);
}

/* Restores with the ranks of generation 1. The content must be that of the step. */
static dt_result_t restore(uint32_t size, int64_t *step, char text[TEXT_MAX])
{
    struct job j;
    dt_result_t result;

    job_init(&j, size, dir, 1, -5);
    result = job_restore(&j, step);
    if (result == DT_OK && *step >= 0)
        assert_true(job_holds(&j, *step));
    else if (result == DT_OK)
        assert_true(job_holds(&j, -5));
    snprintf(text, TEXT_MAX, "%s", result == DT_OK ? j.note : j.ranks[0].text);
    job_free(&j);
    return result;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" lacks \"%s\"", text, part);
}

static void a_saved_checkpoint_is_restored(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= RANKS_MAX; size++) {
        char text[TEXT_MAX];
        int64_t step;

        remove_base(NULL);
        mkdir(base, 0777);
        assert_int_equal(restore(size, &step, text), DT_OK);
        assert_int_equal(step, -1);
        assert_int_not_equal(access(dir, F_OK), 0); /* the first save makes it */
        save_steps(size, (const int64_t[]){ 0, 10, 20, -1 });
        assert_false(exists("step_000000000000"));
        assert_int_equal(entries(), 2);
        assert_int_equal(restore(size, &step, text), DT_OK);
        assert_int_equal(step, 20);
        assert_string_equal(text, "");
        assert_int_equal(entries(), 2);
    }
}

static void equal_runs_save_equal_bytes(void **state)
{
    char command[400];

    (void)state;
    save_steps(3, (const int64_t[]){ 10, 20, -1 });
    snprintf(command, sizeof command, "mv %s %s/first", dir, base);
    assert_int_equal(system(command), 0);
    save_steps(3, (const int64_t[]){ 20, 10, 20, -1 });
    snprintf(command, sizeof command, "diff -r -x 'earlier-*' -x LINEAGE %s %s/first", dir, base);
    assert_int_equal(system(command), 0);
}

static void a_step_saved_twice_has_the_later_content(void **state)
{
    char text[TEXT_MAX];
    struct job j;
    int64_t step;

    (void)state;
    job_init(&j, 2, dir, 0, 1);
    assert_int_equal(job_save(&j, 5), DT_OK);
    job_fill(&j, 5);
    assert_int_equal(job_save(&j, 5), DT_OK);
    job_free(&j);
    assert_int_equal(entries(), 1);
    assert_int_equal(restore(2, &step, text), DT_OK);
    assert_int_equal(step, 5);
}

/* Changes one byte, truncates the file, extends it, or removes it. */
enum harm { FLIP_FIRST, FLIP_MIDDLE, FLIP_LAST, CUT_ONE, CUT_ALL, ADD_ONE, REMOVE, HARMS };

static void harm_file(const char *name, enum harm harm)
{
    int fd = open(path(name), O_RDWR);
    struct stat st;
    off_t at;
    uint8_t byte;

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    at = harm == FLIP_FIRST ? 0 : harm == FLIP_MIDDLE ? st.st_size / 2 : st.st_size - 1;
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0x10;
    if (harm <= FLIP_LAST)
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    else if (harm == REMOVE)
        assert_int_equal(unlink(path(name)), 0);
    else
        assert_int_equal(ftruncate(fd, harm == CUT_ONE   ? st.st_size - 1
                                       : harm == ADD_ONE ? st.st_size + 1
                                                         : 0),
                         0);
    close(fd);
}

static void a_damaged_checkpoint_gives_way_to_an_older_one(void **state)
{
    static const char *const files[] = { "MANIFEST", "rank_00000.shard", "rank_00002.shard" };

    (void)state;
    for (size_t f = 0; f < 3; f++)
        for (int harm = 0; harm < HARMS; harm++) {
            char name[100], text[TEXT_MAX];
            int64_t step;

            save_steps(3, (const int64_t[]){ 10, 20, -1 });
            snprintf(name, sizeof name, "step_000000000020/%s", files[f]);
            harm_file(name, (enum harm)harm);
            assert_int_equal(restore(3, &step, text), DT_OK);
            assert_int_equal(step, 10);
            assert_has(text, "the checkpoint of step 20 cannot be used: ");
            assert_has(text, files[f]);
            if (f == 2)
                assert_has(text, "rank 2: ");
        }
}

/* Returns the bytes of the shards of three ranks in a checkpoint. */
static uint64_t bytes_of(const char *checkpoint)
{
    uint64_t bytes = 0;

    for (uint32_t rank = 0; rank < 3; rank++) {
        char name[100];
        struct stat st;

        snprintf(name, sizeof name, "%s/rank_%05u.shard", checkpoint, rank);
        assert_int_equal(stat(path(name), &st), 0);
        bytes += (uint64_t)st.st_size;
    }
    return bytes;
}

/* This holds even if the newest checkpoint turns out to be damaged at its very end. */
static void each_shard_is_read_once(void **state)
{
    for (int damage = 0; damage < 2; damage++) {
        char text[TEXT_MAX];
        uint64_t want;
        int64_t step;

        save_steps(3, (const int64_t[]){ 10, 20, -1 });
        want = bytes_of("step_000000000020") + (damage ? bytes_of("step_000000000010") : 0);
        if (damage)
            harm_file("step_000000000020/rank_00001.shard", FLIP_LAST);
        shard_bytes = 0;
        assert_int_equal(restore(3, &step, text), DT_OK);
        assert_int_equal(step, damage ? 10 : 20);
        assert_int_equal(shard_bytes, want);
        remove_base(state);
        mkdir(base, 0777);
    }
}

static void a_job_does_not_start_afresh_because_all_checkpoints_are_damaged(void **state)
{
    char text[TEXT_MAX];
    int64_t step;

    (void)state;
    save_steps(2, (const int64_t[]){ 10, 20, -1 });
    harm_file("step_000000000010/rank_00001.shard", FLIP_MIDDLE);
    harm_file("step_000000000020/MANIFEST", CUT_ONE);
    assert_int_equal(restore(2, &step, text), DT_ERR_IO);
    assert_has(text, "no checkpoint in ");
    assert_has(text, "rank_00001.shard: is damaged: its checksum differs");
}

static void a_restore_by_another_number_of_ranks_is_refused(void **state)
{
    char text[TEXT_MAX];
    int64_t step;

    (void)state;
    save_steps(2, (const int64_t[]){ 10, -1 });
    assert_int_equal(restore(3, &step, text), DT_ERR_MISMATCH);
    assert_has(text, "was saved by 2 ranks and cannot be restored by 3: start 2 ranks, or");
    save_steps(1, (const int64_t[]){ 20, -1 });
    assert_int_equal(restore(3, &step, text), DT_ERR_MISMATCH);
    assert_has(text, "was saved by 1 rank and cannot be restored by 3: start 1 rank, or");
}

static void a_buffer_that_does_not_match_is_refused_on_all_ranks(void **state)
{
    struct job j;
    int64_t step;

    (void)state;
    save_steps(3, (const int64_t[]){ 10, 20, -1 });
    job_init(&j, 3, dir, 1, 1);
    j.ranks[1].buffers.v[0].bytes -= 8;
    assert_int_equal(job_restore(&j, &step), DT_ERR_MISMATCH);
    assert_has(j.ranks[0].text, "rank 1: ");
    assert_has(j.ranks[0].text, "its buffer \"weights\" has 8000 bytes, and 7992 are registered");
    assert_true(job_holds(&j, 1));
    job_free(&j);
}

static void saves_of_different_steps_are_an_error(void **state)
{
    struct job j;

    (void)state;
    job_init(&j, 3, dir, 0, 1);
    assert_int_equal(job_save(&j, -1), DT_ERR_ARG);
    assert_has(j.ranks[0].text, "negative");
    assert_int_equal(job_save_steps(&j, (const int64_t[]){ 7, 8, 7 }), DT_ERR_MISMATCH);
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_has(j.ranks[rank].text, "different steps: rank 0 saves step 7, rank 1 step 8");
    job_free(&j);
    assert_int_not_equal(access(dir, F_OK), 0);
}

static void a_fresh_job_sets_old_checkpoints_aside(void **state)
{
    char text[TEXT_MAX];
    struct job j;
    int64_t step;

    (void)state;
    save_steps(2, (const int64_t[]){ 10, 20, -1 });
    job_init(&j, 2, dir, 0, 5);
    j.ranks[0].store.fresh = j.ranks[1].store.fresh = true;
    assert_int_equal(job_restore(&j, &step), DT_OK);
    assert_int_equal(step, -1);
    assert_true(job_holds(&j, 5));
    assert_int_equal(job_save(&j, 5), DT_OK);
    assert_int_equal(job_restore(&j, &step), DT_OK); /* it does restore its own */
    assert_int_equal(step, 5);
    job_free(&j);
    assert_true(exists("earlier-job-01234567-g0-1/step_000000000020/MANIFEST"));
    assert_int_equal(restore(2, &step, text), DT_OK);
    assert_int_equal(step, 5);
}

/* The step that a fresh job saves first may be among the existing ones. */
static void a_fresh_save_sets_old_checkpoints_aside_once_it_is_durable(void **state)
{
    char text[TEXT_MAX];
    struct job j;
    int64_t step;

    (void)state;
    save_steps(1, (const int64_t[]){ 10, 20, -1 });
    for (int at = 10; at <= 30; at += 10) {
        job_init(&j, 1, dir, 0, 7);
        j.ranks[0].store.fresh = true;
        fails_sync_of = dir;
        assert_int_equal(job_save(&j, at), DT_ERR_IO);
        fails_sync_of = NULL;
        assert_int_equal(job_restore(&j, &step), DT_OK); /* the older ones are not this job's */
        assert_int_equal(step, -1);
        assert_int_equal(entries(), 2);
        job_free(&j);
        assert_int_equal(restore(1, &step, text), DT_OK);
        assert_int_equal(step, 20);
    }

    job_init(&j, 1, dir, 2, 7);
    j.ranks[0].store.fresh = true;
    assert_int_equal(job_save(&j, 10), DT_OK);
    assert_int_equal(j.notes, 0);
    assert_int_equal(job_restore(&j, &step), DT_OK);
    assert_int_equal(step, 10);
    assert_true(job_holds(&j, 7));
    job_free(&j);
    assert_true(exists("earlier-job-01234567-g2-1/step_000000000010/MANIFEST"));
    assert_true(exists("earlier-job-01234567-g2-1/step_000000000020/MANIFEST"));
}

/* A run that starts again at lower steps without --fresh goes on from what it has saved since. */
static void the_last_saved_step_is_restored_not_the_highest(void **state)
{
    char text[TEXT_MAX];
    struct job j;
    int64_t step;

    (void)state;
    save_steps(2, (const int64_t[]){ 100, 200, -1 });
    job_init(&j, 2, dir, 0, 5);
    assert_int_equal(job_save(&j, 5), DT_OK);
    assert_int_equal(j.notes, 1);
    assert_has(j.note, "step 5 was saved while there were later steps, up to 200; these are now ");
    assert_has(j.note, "/earlier-job-01234567-g0-1*");
    job_free(&j);
    assert_true(exists("earlier-job-01234567-g0-1/step_000000000100/MANIFEST"));
    assert_true(exists("earlier-job-01234567-g0-1/step_000000000200/MANIFEST"));
    assert_int_equal(restore(2, &step, text), DT_OK);
    assert_int_equal(step, 5);

    save_steps(2, (const int64_t[]){ 6, 7, 200, 6, -1 }); /* leaves its course once more */
    assert_true(exists("earlier-job-01234567-g0-2/step_000000000200/MANIFEST"));
    assert_true(exists("earlier-job-01234567-g0-1/step_000000000200/MANIFEST"));
    assert_int_equal(restore(2, &step, text), DT_OK);
    assert_int_equal(step, 6);
}

/* Everything stays as it was if the commit turns out not to be durable, or something is in the
 * way. */
static void a_failed_save_leaves_later_checkpoints(void **state)
{
    char text[TEXT_MAX];
    struct job j;
    int64_t step;

    (void)state;
    save_steps(1, (const int64_t[]){ 100, 200, -1 });
    job_init(&j, 1, dir, 0, 5);
    fails_sync_of = dir;
    assert_int_equal(job_save(&j, 5), DT_ERR_IO);
    fails_sync_of = NULL;
    job_free(&j);
    assert_int_equal(entries(), 2);
    assert_int_equal(restore(1, &step, text), DT_OK);
    assert_int_equal(step, 200);
}

static dt_result_t save_afresh_as(uid_t user, int64_t step, char text[TEXT_MAX])
{
    uid_t me = geteuid();
    dt_result_t result;
    struct job j;

    job_init(&j, 1, dir, 0, step);
    j.ranks[0].store.fresh = true;
    assert_int_equal(seteuid(user), 0);
    result = job_save(&j, step);
    snprintf(text, TEXT_MAX, "%s", j.ranks[0].text);
    job_free(&j);
    assert_int_equal(seteuid(me), 0);
    return result;
}

/* In a group's directory only the owner of a checkpoint may move it into another directory. */
static void another_users_checkpoints_are_set_aside(void **state)
{
    char text[TEXT_MAX];
    int64_t step;

    (void)state;
    if (geteuid() != 0)
        skip();
    save_steps(1, (const int64_t[]){ 10, 20, -1 });
    assert_int_equal(chmod(base, 0755) | chmod(dir, 0777), 0);
    assert_int_equal(chmod(path("step_000000000010"), 0755), 0);
    assert_int_equal(chown(path("step_000000000020"), 65534, (gid_t)-1), 0);
    fails_sync_of = dir;
    assert_int_equal(save_afresh_as(65534, 10, text), DT_ERR_IO);
    fails_sync_of = NULL;
    assert_has(text, "Input/output error");
    assert_int_equal(entries(), 2);
    assert_int_equal(restore(1, &step, text), DT_OK);
    assert_int_equal(step, 20);

    if (save_afresh_as(65534, 10, text) != DT_OK)
        fail_msg("%s", text);
    assert_true(exists("earlier-job-01234567-g0-1-step_000000000010/MANIFEST"));
    assert_true(exists("earlier-job-01234567-g0-1/step_000000000020/MANIFEST"));
    assert_int_equal(restore(1, &step, text), DT_OK);
    assert_int_equal(step, 10);

    assert_int_equal(chown(path("step_000000000010"), 0, (gid_t)-1), 0);
    assert_int_equal(save_afresh_as(65534, 5, text), DT_OK);
    assert_true(exists("earlier-job-01234567-g0-2-step_000000000010/MANIFEST"));
    assert_false(exists("earlier-job-01234567-g0-2")); /* it would be empty */
}

static void leftovers_are_removed_at_once_and_other_files_stay(void **state)
{
    static const struct {
        const char *name;
        long age;
        bool stays;
    } cases[] = {
        { ".save-job-01234567-g0-step_000000000030", 0, false },
        { ".save-job-01234567-g1-step_000000000030", 0, false },
        { ".save-job-01234567-g2-step_000000000030", 0, true },
        { ".save-other-76543210-g0-step_000000000030", 0, false },
        { ".save-other-76543211-g0-step_000000000030", 25 * 3600, false },
        { ".trash-other-76543210-g0-step_000000000030", 0, false },
        { ".replaced-step_000000000010", 0, false },
        { "mine", 25 * 3600, true },
    };
    char text[TEXT_MAX];
    int64_t step;

    (void)state;
    save_steps(1, (const int64_t[]){ 10, 20, -1 });
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        make_entry(cases[i].name, cases[i].age);
    assert_int_equal(restore(1, &step, text), DT_OK);
    assert_int_equal(step, 20);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (exists(cases[i].name) != cases[i].stays)
            fail_msg("%s %s", cases[i].name, cases[i].stays ? "is gone" : "is still there");
}

/* Root could remove another user's directory, so a non-empty directory stands for what cannot be
 * removed. */
static void leftovers_that_cannot_be_removed_do_no_harm(void **state)
{
    static const struct {
        const char *name;
        const char *then;
    } cases[] = {
        { ".trash-other-76543210-g0-step_000000000030", NULL },
        { ".save-other-76543211-g0-step_000000000030", NULL },
        { ".save-job-01234567-g0-step_000000000030", NULL },
        { ".replaced-step_000000000010", ".trash-job-01234567-g1-step_000000000010-1" },
    };
    char text[TEXT_MAX], inner[400];
    int64_t step;

    (void)state;
    save_steps(1, (const int64_t[]){ 10, 20, -1 });
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct utimbuf t = { time(NULL) - 25 * 3600, time(NULL) - 25 * 3600 };

        make_entry(cases[i].name, 0);
        snprintf(inner, sizeof inner, "%s/inner", path(cases[i].name));
        assert_int_equal(mkdir(inner, 0777), 0);
        assert_int_equal(utime(path(cases[i].name), &t), 0);
        step = -1;
        assert_int_equal(restore(1, &step, text), DT_OK);
        assert_int_equal(step, 20);
        assert_true(exists(cases[i].then ? cases[i].then : cases[i].name));
        assert_true(!cases[i].then || !exists(cases[i].name));
        snprintf(inner, sizeof inner, "%s/inner",
                 path(cases[i].then ? cases[i].then : cases[i].name));
        assert_int_equal(rmdir(inner), 0);
    }
}

/* The part of each older checkpoint that cannot be removed has a name of its own. */
static void a_step_is_saved_again_although_old_files_cannot_be_removed(void **state)
{
    struct job j;
    char text[TEXT_MAX], inner[400];
    int64_t restored;

    (void)state;
    job_init(&j, 1, dir, 0, 0);
    for (int64_t i = 0; i < 4; i++) {
        job_fill(&j, 10);
        assert_int_equal(job_save(&j, 10), DT_OK);
        assert_int_equal(entries(), i + 1);
        snprintf(inner, sizeof inner, "%s/inner", path("step_000000000010"));
        assert_int_equal(mkdir(inner, 0777), 0);
    }
    job_free(&j);
    assert_int_equal(restore(1, &restored, text), DT_OK);
    assert_int_equal(restored, 10);
}

/* A directory with the sticky bit has another user's checkpoint. */
static void a_replaced_checkpoint_that_cannot_be_moved_does_no_harm(void **state)
{
    uid_t me = geteuid();
    char text[TEXT_MAX];
    dt_result_t result;
    int64_t step;

    (void)state;
    if (me != 0)
        skip();
    save_steps(1, (const int64_t[]){ 10, 20, -1 });
    make_entry(".replaced-step_000000000010", 0);
    assert_int_equal(chmod(base, 0755), 0);
    assert_int_equal(chmod(dir, 01777), 0);
    assert_int_equal(seteuid(65534), 0);
    result = restore(1, &step, text);
    assert_int_equal(seteuid(me), 0);
    assert_int_equal(result, DT_OK);
    assert_int_equal(step, 20);
    assert_true(exists(".replaced-step_000000000010"));
}

/* On NFS a host may still associate the name of an earlier attempt with a file that is gone. */
static void every_attempt_has_a_name_of_its_own(void **state)
{
    struct job j;

    (void)state;
    synced[0] = '\0';
    job_init(&j, 2, dir, 0, 30);
    assert_int_equal(job_save(&j, 30), DT_OK);
    assert_int_equal(job_save_steps(&j, (const int64_t[RANKS_MAX]){ 30, 31 }), DT_ERR_MISMATCH);
    assert_int_equal(job_save(&j, 30), DT_OK);
    job_free(&j);
    assert_has(synced, "/.save-job-01234567-g0-step_000000000030-1/rank_00001.shard");
    assert_has(synced, "/.save-job-01234567-g0-step_000000000030-2/rank_00001.shard");
}

/* Returns how often a name was made durable up to a place in synced. */
static int times_synced(const char *name, const char *end)
{
    char line[300];
    const char *at = synced;
    int n = 0;

    snprintf(line, sizeof line, "%s/%s\n", dir, name);
    while ((at = strstr(at, line)) && at < end) {
        n++;
        at += strlen(line);
    }
    return n;
}

/* Ranks 0 and 2 are on one host, 1 and 3 on the other. */
static void each_host_makes_its_shards_entries_durable(void **state)
{
    static const char work[] = ".save-job-01234567-g0-step_000000000030-1";
    const char *manifest;
    struct job j;

    (void)state;
    synced[0] = '\0';
    job_init(&j, 4, dir, 0, 30);
    assert_int_equal(job_save(&j, 30), DT_OK);
    job_free(&j);
    manifest = strstr(synced, "/MANIFEST\n");
    assert_non_null(manifest);
    assert_int_equal(times_synced(work, manifest), 1);
    assert_int_equal(times_synced(work, synced + strlen(synced)), 2);
}

static void a_checkpoint_that_was_being_replaced_is_kept(void **state)
{
    char text[TEXT_MAX], from[300];
    int64_t step;

    (void)state;
    save_steps(2, (const int64_t[]){ 10, -1 });
    strcpy(from, path("step_000000000010"));
    assert_int_equal(rename(from, path(".replaced-step_000000000010")), 0);
    assert_int_equal(restore(2, &step, text), DT_OK);
    assert_int_equal(step, 10);
}

static void put_a_file_in_the_way(void)
{
    char file[80];
    int fd;

    snprintf(file, sizeof file, "%s/a", base);
    fd = open(file, O_CREAT | O_WRONLY, 0666);
    assert_true(fd >= 0);
    close(fd);
}

static void a_directory_that_cannot_be_made_is_an_error(void **state)
{
    char text[TEXT_MAX];
    struct job j;

    (void)state;
    put_a_file_in_the_way();
    job_init(&j, 2, dir, 0, 1);
    assert_int_equal(job_save(&j, 1), DT_ERR_IO);
    snprintf(text, sizeof text, "%s: cannot be created: ", dir);
    assert_has(j.ranks[1].text, text);
    job_free(&j);
}

/* A job does not start afresh because the path to its checkpoints has a problem. */
static void a_directory_that_cannot_be_looked_for_is_an_error(void **state)
{
    char text[TEXT_MAX], name[PATH_MAX + 1];
    struct job j;
    int64_t step;

    (void)state;
    put_a_file_in_the_way();
    assert_int_equal(restore(2, &step, text), DT_ERR_IO);
    assert_has(text, "/a/b: Not a directory");
    memset(name, '/', PATH_MAX);
    name[PATH_MAX] = '\0';
    job_init(&j, 2, name, 0, 1);
    assert_int_equal(job_restore(&j, &step), DT_ERR_IO);
    assert_has(j.ranks[1].text, "...: the name is too long");
    job_free(&j);
}

/* If the file of one rank cannot be written, no rank has saved, and nothing is left of the
 * attempt. */
static void a_full_disk_leaves_the_older_checkpoint(void **state)
{
    char text[TEXT_MAX];
    struct job j;
    int64_t step;

    (void)state;
    if (geteuid() != 0 || mount("none", base, "tmpfs", 0, "size=128k") != 0) {
        print_message("needs root and mount(2)\n");
        skip();
    }
    save_steps(2, (const int64_t[]){ 10, 20, -1 });
    job_init(&j, 2, dir, 0, 30);
    j.ranks[1].buffers.v[0].bytes = 128 * 1024;
    j.ranks[1].buffers.v[0].data = calloc(1, 128 * 1024);
    assert_int_equal(job_save(&j, 30), DT_ERR_IO);
    assert_has(j.ranks[0].text, ".shard: write: No space left on device");
    assert_int_equal(j.committed, -1);
    assert_int_equal(entries(), 2);
    free(j.ranks[1].buffers.v[0].data);
    job_free(&j);

    assert_int_equal(restore(2, &step, text), DT_OK);
    assert_int_equal(step, 20);
    save_steps(2, (const int64_t[]){ 30, -1 }); /* the job goes on and may save again */
    assert_int_equal(restore(2, &step, text), DT_OK);
    assert_int_equal(step, 30);
}

/* A checkpoint in a directory that is not durable itself would be lost with it. */
static void new_directories_are_durable(void **state)
{
    char want[200];

    (void)state;
    synced[0] = '\0';
    assert_int_equal(dt_dir_make(dir), DT_OK);
    snprintf(want, sizeof want, "%s\n%s/a\n", base, base);
    assert_string_equal(synced, want);
    assert_int_equal(dt_dir_make(dir), DT_OK);
    assert_string_equal(synced, want);
}

/* Such as a folder in which the user may make folders, but not list them. */
static void a_parent_that_cannot_be_read_is_no_failure(void **state)
{
    dt_error_info_t before;
    uid_t user = geteuid();

    (void)state;
    dt_fail(DT_ERR_ARG, "an earlier failure");
    dt_error_save(&before);
    assert_int_equal(chmod(base, 0333), 0);
    assert_int_equal(user == 0 ? seteuid(65534) : 0, 0);
    assert_int_equal(dt_dir_make(dir), DT_OK);
    assert_int_equal(seteuid(user), 0);
    assert_string_equal(dt_last_error(), before.message);
    assert_int_equal(chmod(base, 0700), 0);
}

#define ON_DISK(f) cmocka_unit_test_setup_teardown(f, begin_test, end_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_DISK(new_directories_are_durable),
        ON_DISK(a_parent_that_cannot_be_read_is_no_failure),
        ON_DISK(a_saved_checkpoint_is_restored),
        ON_DISK(equal_runs_save_equal_bytes),
        ON_DISK(a_step_saved_twice_has_the_later_content),
        ON_DISK(a_damaged_checkpoint_gives_way_to_an_older_one),
        ON_DISK(each_shard_is_read_once),
        ON_DISK(a_job_does_not_start_afresh_because_all_checkpoints_are_damaged),
        ON_DISK(a_restore_by_another_number_of_ranks_is_refused),
        ON_DISK(a_buffer_that_does_not_match_is_refused_on_all_ranks),
        ON_DISK(saves_of_different_steps_are_an_error),
        ON_DISK(a_fresh_job_sets_old_checkpoints_aside),
        ON_DISK(a_fresh_save_sets_old_checkpoints_aside_once_it_is_durable),
        ON_DISK(the_last_saved_step_is_restored_not_the_highest),
        ON_DISK(a_failed_save_leaves_later_checkpoints),
        ON_DISK(another_users_checkpoints_are_set_aside),
        ON_DISK(leftovers_are_removed_at_once_and_other_files_stay),
        ON_DISK(leftovers_that_cannot_be_removed_do_no_harm),
        ON_DISK(a_step_is_saved_again_although_old_files_cannot_be_removed),
        ON_DISK(a_replaced_checkpoint_that_cannot_be_moved_does_no_harm),
        ON_DISK(every_attempt_has_a_name_of_its_own),
        ON_DISK(each_host_makes_its_shards_entries_durable),
        ON_DISK(a_checkpoint_that_was_being_replaced_is_kept),
        ON_DISK(a_directory_that_cannot_be_made_is_an_error),
        ON_DISK(a_directory_that_cannot_be_looked_for_is_an_error),
        ON_DISK(a_full_disk_leaves_the_older_checkpoint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
