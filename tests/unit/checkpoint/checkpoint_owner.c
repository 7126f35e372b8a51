/* Several jobs and one checkpoint directory: which job may restore, which may save, and whose the
 * checkpoints are.
 *
 *     checkpoint_owner [ROUNDS]      rounds of the race; default: 200, or 50 under a sanitizer */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/checkpoint/checkpoint_ranks.h"
#include "tests/unit/checkpoint/scratch.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/unit.h"

static int rounds = SANITIZED ? 50 : 200;
static char dir[80];

static struct {
    bool restarts;     /* OWNER's job restarts while its successor's file is being written */
    int restarted;     /* the file of the job that has restarted */
    bool steals;       /* OWNER names another job by the time the manifest is durable */
    bool vanishes;     /* OWNER's owner removes it between this job's open and flock */
    int lock_error;    /* errno of flock */
    bool spoils;       /* the next checkpoint cannot get its name */
    const char *hides; /* this file cannot be read */
    void (*on_manifest)(void); /* called when a rank starts reading one */
    atomic_int bad_manifest;   /* reading the manifest fails at this time, counted from 1 */
    int manifest_error;        /* errno of that; 0: EIO */
} fault;

static int begin_test(void **state)
{
    int r = make_base(state);

    alarm(120 +
          (unsigned)rounds); /* ranks of a broken library could wait for each other for ever */
    memset(&fault, 0, sizeof fault); /* a failed test may have left a fault */
    snprintf(dir, sizeof dir, "%s/c", base);
    return r;
}

static int end_test(void **state)
{
    alarm(0);
    return remove_base(state);
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
    bool written = f && fputs(text, f) >= 0 && fclose(f) == 0;

    assert_true(written);
}

static const char stolen[] = "job thief-00000000\ngeneration 0\nhost far\npid 7\n"
                             "since 2026-01-02T03:04:05Z\n";

/* Does what the next generation of OWNER's job does while the lock is held. */
static void restart_owner(void)
{
    char next[100];

    fault.restarts = false;
    snprintf(next, sizeof next, "%s/next", dir);
    fault.restarted = open(next, O_RDWR | O_CREAT | O_EXCL, 0644);
    assert_int_equal(syscall(SYS_flock, fault.restarted, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(write(fault.restarted, stolen, strlen(stolen)), strlen(stolen));
    assert_int_equal(rename(next, owner_path()), 0);
}

/* Replaces libc's. */
int fsync(int fd)
{
    char link[64], name[300];
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, name, sizeof name - 1);
    name[n > 0 ? n : 0] = '\0';
    if (fault.steals && strstr(name, "/MANIFEST"))
        write_owner(stolen);
    if (fault.restarts && strstr(name, "-g0-owner"))
        restart_owner();
    return (int)syscall(SYS_fsync, fd);
}

/* Replaces libc's. */
int flock(int fd, int operation)
{
    if (fault.vanishes)
        assert_int_equal(unlink(owner_path()), 0);
    fault.vanishes = false;
    if (fault.lock_error) {
        errno = fault.lock_error;
        return -1;
    }
    return (int)syscall(SYS_flock, fd, operation);
}

/* Replaces libc's. */
ssize_t read(int fd, void *buf, size_t n)
{
    void (*happens)(void) = fault.on_manifest;
    char link[64], name[300];
    ssize_t len;
    bool is_manifest;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    len = happens || fault.bad_manifest > 0 ? readlink(link, name, sizeof name - 1) : 0;
    is_manifest = len > 9 && memcmp(name + len - 9, "/MANIFEST", 9) == 0;
    if (is_manifest && happens) {
        fault.on_manifest = NULL;
        happens();
    }
    if (is_manifest && atomic_fetch_sub(&fault.bad_manifest, 1) == 1) {
        errno = fault.manifest_error ? fault.manifest_error : EIO;
        return -1;
    }
    return syscall(SYS_read, fd, buf, n);
}

/* Replaces libc's. */
ssize_t pread(int fd, void *buf, size_t n, off_t offset)
{
    char link[64], name[300];
    ssize_t len;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    len = fault.hides ? readlink(link, name, sizeof name - 1) : 0;
    name[len > 0 ? len : 0] = '\0';
    if (fault.hides && strcmp(strrchr(name, '/') + 1, fault.hides) == 0) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_pread64, fd, buf, n, offset);
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" lacks \"%s\"", text, part);
}

enum word { NO_WORD, RESUME, FRESH };

static void begin_with(struct job *j, enum word word, const char *job_id, uint32_t generation,
                       int64_t fill)
{
    job_init(j, 2, dir, generation, fill);
    for (uint32_t k = 0; k < j->size; k++) {
        j->ranks[k].store.owner.job_id = job_id;
        j->ranks[k].store.resume = word == RESUME;
        j->ranks[k].store.fresh = word == FRESH;
    }
}

static void begin(struct job *j, const char *job_id, uint32_t generation, int64_t fill)
{
    begin_with(j, RESUME, job_id, generation, fill);
}

/* A job saves steps, up to -1, each with its number as content, and ends. */
static void save_steps(enum word word, const char *job_id, const int64_t *steps)
{
    struct job j;
    int64_t step;

    begin_with(&j, word, job_id, 0, 0);
    assert_int_equal(job_restore(&j, &step), DT_OK);
    for (; *steps >= 0; steps++) {
        job_fill(&j, *steps);
        assert_int_equal(job_save(&j, *steps), DT_OK);
    }
    job_free(&j);
}

static void a_second_job_learns_which_job_owns_the_directory(void **state)
{
    struct job a, b;
    char pid[40];
    int64_t step;

    (void)state;
    begin(&a, "first-01234567", 3, 10);
    begin(&b, "second-89abcdef", 0, 77);
    assert_int_equal(job_save(&a, 10), DT_OK);
    assert_int_equal(job_restore(&b, &step), DT_OK);
    assert_int_equal(job_save(&b, 20), DT_ERR_STATE);
    snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    assert_has(b.ranks[1].text,
               "is in use by job first-01234567 (generation 3; rank 0 is process ");
    assert_has(b.ranks[1].text, pid);
    assert_has(b.ranks[1].text, "on host even) since 20");
    assert_has(b.ranks[1].text, "choose another directory");
    assert_int_equal(job_restore(&a, &step), DT_OK); /* its owner is not disturbed */
    assert_int_equal(step, 10);
    job_free(&a);
    assert_int_equal(access(owner_path(), F_OK), -1);
    assert_int_equal(job_save(&b, 20), DT_OK); /* the directory is free and as b found it */
    job_free(&b);
}

/* Prints names and contents of all files in the directory. */
static void look(char text[4096])
{
    char command[200];
    FILE *f;

    snprintf(command, sizeof command, "cd %s && find . -exec stat -c '%%n %%i %%Y %%Z' {} +", dir);
    f = popen(command, "r");
    assert_non_null(f);
    text[fread(text, 1, 4095, f)] = '\0';
    assert_int_equal(pclose(f), 0);
}

/* The job that saves there is alive. What it left behind earlier stays, too. */
static void a_restore_locks_and_writes_nothing(void **state)
{
    char before[4096], after[4096], left[140];
    uid_t me = geteuid();
    struct job a, b;
    dt_result_t restored, saved;
    int64_t step;

    (void)state;
    begin(&a, "first-01234567", 0, 10);
    assert_int_equal(job_save(&a, 10), DT_OK);
    snprintf(left, sizeof left, "%s/.save-dead-89abcdef-g0-step_000000000020-1", dir);
    assert_int_equal(mkdir(left, 0777), 0);
    assert_int_equal(chmod(base, 0755) | chmod(dir, 0555), 0);
    begin(&b, "second-89abcdef", 0, 0);
    look(before);
    assert_int_equal(me == 0 ? seteuid(65534) : 0, 0);
    restored = job_restore(&b, &step);
    saved = job_save(&b, 20);
    assert_int_equal(me == 0 ? seteuid(me) : 0, 0);
    look(after);
    assert_int_equal(restored, DT_OK);
    assert_int_equal(step, 10);
    assert_true(job_holds(&b, 10));
    assert_int_equal(saved, DT_ERR_IO);
    assert_has(b.ranks[0].text, "OWNER: open: Permission denied");
    assert_int_equal(b.notes, 1);
    assert_has(b.note, "/c cannot be written to (Permission denied): this job restores from it, "
                       "and can save nothing there");
    assert_string_equal(before, after);
    assert_int_equal(chmod(dir, 0755), 0);
    job_free(&b);
    assert_int_equal(job_save(&a, 20), DT_OK);
    job_free(&a);
}

static struct job *writer; /* saves while another job restores */
static int64_t written;    /* its last step */
static bool always;        /* in each attempt of the other job */

/* What the other job has begun to read is gone. */
static void save_two(void)
{
    for (int i = 0; i < 2; i++) {
        written += 10;
        job_fill(writer, written);
        assert_int_equal(job_save(writer, written), DT_OK);
    }
    fault.on_manifest = always ? save_two : NULL;
}

static void a_checkpoint_that_vanishes_gives_way_to_the_newest(void **state)
{
    static struct job a;
    struct job b;
    int64_t step;

    (void)state;
    writer = &a;
    for (int i = 0; i < 2; i++) {
        begin_with(&a, FRESH, "first-01234567", 0, 0);
        begin(&b, "second-89abcdef", 0, 0);
        written = 0;
        save_two();
        always = i == 1;
        fault.on_manifest = save_two;
        if (always) {
            assert_int_equal(job_restore(&b, &step), DT_ERR_IO);
            assert_has(b.ranks[1].text, "vanish while they are read: another job saves there");
        } else {
            assert_int_equal(job_restore(&b, &step), DT_OK);
            assert_int_equal(step, 40);
            assert_true(job_holds(&b, 40));
        }
        fault.on_manifest = NULL;
        assert_int_equal(b.notes, 0);
        always = false;
        job_free(&b);
        job_free(&a);
    }
}

/* A save again has made the first of its two renames. */
static void a_step_that_is_being_replaced_can_be_restored(void **state)
{
    char from[120], to[120];
    struct job j;
    int64_t step;

    (void)state;
    save_steps(NO_WORD, "first-01234567", (const int64_t[]){ 10, -1 });
    snprintf(from, sizeof from, "%s/step_000000000010", dir);
    snprintf(to, sizeof to, "%s/.replaced-step_000000000010", dir);
    assert_int_equal(rename(from, to), 0);
    begin(&j, "second-89abcdef", 0, 0);
    assert_int_equal(job_restore(&j, &step), DT_OK);
    assert_int_equal(step, 10);
    assert_true(job_holds(&j, 10));
    assert_int_equal(access(to, F_OK), 0);
    job_free(&j);
}

/* The host of the odd ranks looks at another directory, which has no checkpoint, or another one. */
static void a_restore_names_the_host_that_sees_another_directory(void **state)
{
    char elsewhere[80], command[300];
    struct job j;
    int64_t step;

    (void)state;
    snprintf(elsewhere, sizeof elsewhere, "%s/e", base);
    for (int i = 0; i < 3; i++) {
        save_steps(i ? RESUME : NO_WORD, "first-01234567", (const int64_t[]){ 10 + i, -1 });
        snprintf(command, sizeof command, i == 0 ? "true" : "rm -rf %s; cp -r %s %s", elsewhere,
                 dir, elsewhere);
        assert_int_equal(system(command), 0);
        snprintf(command, sizeof command, "echo >> %s/step_%012d/MANIFEST", elsewhere, 10 + i);
        assert_int_equal(i == 2 ? system(command) : 0, 0);
        begin(&j, "second-89abcdef", 0, 0);
        j.ranks[1].store.path = elsewhere;
        if (i == 1) {
            assert_int_equal(job_restore(&j, &step), DT_OK);
        } else {
            assert_int_equal(job_restore(&j, &step), DT_ERR_IO);
            assert_has(j.ranks[0].text, "is not shared: what rank 0 finds there cannot be seen on "
                                        "odd;");
        }
        job_free(&j);
    }
}

/* The manifest is read when the directory is read, when rank 0 opens the checkpoint, and once on
 * each host. */
static void a_restore_says_why_a_host_does_not_see_the_checkpoint(void **state)
{
    struct job j;
    int64_t step;

    (void)state;
    save_steps(NO_WORD, "first-01234567", (const int64_t[]){ 10, -1 });
    for (int hosts = 2; hosts > 0; hosts--) {
        begin(&j, "second-89abcdef", 0, 0);
        for (uint32_t k = 0; k < j.size; k++)
            j.ranks[k].store.hosts = (uint32_t)hosts;
        fault.bad_manifest = 3;
        assert_int_equal(job_restore(&j, &step), hosts > 1 ? DT_ERR_IO : DT_OK);
        if (hosts > 1)
            assert_has(j.ranks[0].text, " (Input/output error); choose one that all hosts");
        job_free(&j);
    }
}

/* Only a checkpoint that may be damaged gives way to an older one. */
static void a_lack_of_memory_does_not_cost_steps(void **state)
{
    struct job j;
    int64_t step;

    (void)state;
    save_steps(NO_WORD, "first-01234567", (const int64_t[]){ 10, 20, -1 });
    for (int lacking = 0; lacking < 2; lacking++) {
        begin(&j, "second-89abcdef", 0, 0);
        fault.bad_manifest = 2;
        fault.manifest_error = lacking ? ENOMEM : EIO;
        assert_int_equal(job_restore(&j, &step), lacking ? DT_ERR_IO : DT_OK);
        if (lacking)
            assert_has(j.ranks[1].text, "/MANIFEST: read: Cannot allocate memory");
        else
            assert_int_equal(step, 10);
        assert_int_equal(job_restore(&j, &step), DT_OK);
        assert_int_equal(step, 20);
        job_free(&j);
    }
}

/* ---- whose the checkpoints are ---- */

static struct dt_lineage lineage(void)
{
    struct dt_dir d = { .fd = -1 };
    struct dt_lineage l;
    int64_t only;

    assert_int_equal(dt_dir_open(&d, dir), DT_OK);
    assert_int_equal(dt_lineage_read(&l, &only, &d), DT_OK);
    assert_int_equal(only, -1);
    dt_dir_close(&d);
    return l;
}

static void a_job_that_goes_on_keeps_the_lineage(void **state)
{
    struct dt_lineage first, l;

    (void)state;
    save_steps(NO_WORD, "first-01234567", (const int64_t[]){ 10, 20, -1 });
    first = lineage();
    assert_int_equal(strlen(first.id), DT_LINEAGE_ID);
    assert_string_equal(first.job.job, "first-01234567");
    assert_int_equal(first.job.pid, getpid());
    save_steps(RESUME, "second-89abcdef", (const int64_t[]){ 30, -1 });
    l = lineage();
    assert_string_equal(l.id, first.id);
    assert_string_equal(l.job.job, "second-89abcdef");
    save_steps(NO_WORD, "second-89abcdef", (const int64_t[]){ 40, -1 }); /* its own */
    assert_string_equal(lineage().id, first.id);
    save_steps(FRESH, "third-89abcdef", (const int64_t[]){ 5, -1 });
    assert_string_not_equal(lineage().id, first.id);
}

static void going_on_from_another_job_needs_consent(void **state)
{
    char want[100];
    struct job j;
    int64_t step;

    (void)state;
    save_steps(NO_WORD, "first-01234567", (const int64_t[]){ 10, -1 });
    for (int damaged = 0; damaged < 2; damaged++) {
        char path[120];

        snprintf(want, sizeof want, "holds checkpoints of job first-01234567 (lineage %s, host",
                 lineage().id);
        snprintf(path, sizeof path, "%s/" DT_LINEAGE_NAME, dir);
        assert_int_equal(damaged ? truncate(path, 20) : 0, 0);
        begin_with(&j, NO_WORD, "second-89abcdef", 0, 77);
        assert_int_equal(job_restore(&j, &step), DT_ERR_STATE);
        assert_has(j.ranks[1].text, damaged ? "of a job that left no LINEAGE" : want);
        assert_has(j.ranks[1].text, "DTRUN_RESUME=1, DTRUN_FRESH=1");
        assert_true(job_holds(&j, 77));
        job_free(&j);
    }
}

/* A job may save there only if it has gone on from the newest checkpoint, or if none is lost. */
static void a_save_that_does_not_go_on_from_the_newest_is_refused(void **state)
{
    struct job j, early;
    int64_t step;

    (void)state;
    begin(&early, "early-76543210", 0, 0);
    assert_int_equal(job_restore(&early, &step), DT_OK);
    assert_int_equal(step, -1);
    save_steps(NO_WORD, "first-01234567", (const int64_t[]){ 10, -1 });
    assert_int_equal(job_save(&early, 5), DT_ERR_STATE);
    assert_has(early.ranks[1].text, "this job found no checkpoint there, but now it is step 10 of "
                                    "job first-01234567 (lineage ");
    job_free(&early);

    begin(&j, "second-89abcdef", 0, 0);
    assert_int_equal(job_save(&j, 20), DT_ERR_STATE);
    assert_has(j.ranks[1].text, "of job first-01234567 (lineage ");
    assert_has(j.ranks[1].text, "which this job has not restored");
    assert_int_equal(job_restore(&j, &step), DT_OK);
    save_steps(RESUME, "third-89abcdef", (const int64_t[]){ 10, -1 }); /* the same bytes */
    assert_int_equal(job_save(&j, 20), DT_ERR_STATE);
    assert_has(j.ranks[1].text, "this job restored when step 10 of job first-01234567 (lineage ");
    assert_has(j.ranks[1].text, "but now it is step 10 of job third-89abcdef (lineage ");
    assert_has(j.ranks[1].text, "start this job again to go on from there");
    assert_int_equal(access(owner_path(), F_OK), -1); /* no job is kept out */
    assert_int_equal(job_restore(&j, &step), DT_OK);
    assert_int_equal(job_save(&j, 20), DT_OK);
    job_free(&j);
}

/* Replaces libc's. */
int renameat(int from, const char *old, int to, const char *name)
{
    if (fault.spoils && strncmp(name, "step_", 5) == 0) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from, old, to, name, 0);
}

static void a_refused_save_disturbs_no_job_even_without_locks(void **state)
{
    struct job a, b;
    int64_t step;

    (void)state;
    fault.lock_error = ENOLCK;
    begin(&a, "first-01234567", 0, 10);
    assert_int_equal(job_save(&a, 10), DT_OK);
    begin(&b, "second-89abcdef", 0, 77);
    assert_int_equal(job_restore(&b, &step), DT_OK);
    assert_int_equal(job_save(&a, 20), DT_OK);
    assert_int_equal(job_save(&b, 30), DT_ERR_STATE);
    assert_has(b.ranks[1].text, "but now it is step 20 of job first-01234567");
    assert_int_equal(job_save(&a, 30), DT_OK);
    fault.lock_error = 0;
    job_free(&b);
    job_free(&a);
}

/* The restore cannot read the newest manifest at once, but reads it later. */
static void a_manifest_that_was_hard_to_read_does_not_forbid_saves(void **state)
{
    struct job j;
    int64_t step;

    (void)state;
    save_steps(NO_WORD, "first-01234567", (const int64_t[]){ 10, -1 });
    begin(&j, "second-89abcdef", 0, 0);
    fault.bad_manifest = 1;
    assert_int_equal(job_restore(&j, &step), DT_OK);
    assert_int_equal(step, 10);
    assert_int_equal(job_save(&j, 20), DT_OK);
    job_free(&j);
}

static void a_failed_save_does_not_change_the_lineage(void **state)
{
    struct dt_lineage before, after;
    struct job j;
    int64_t step;

    (void)state;
    begin_with(&j, NO_WORD, "first-01234567", 0, 0);
    fault.spoils = true;
    assert_int_equal(job_save(&j, 10), DT_ERR_IO);
    assert_string_equal(lineage().id, "");
    fault.spoils = false;
    assert_int_equal(job_save(&j, 10), DT_OK);
    job_free(&j);
    before = lineage();
    begin(&j, "second-89abcdef", 0, 0);
    assert_int_equal(job_restore(&j, &step), DT_OK);
    fault.spoils = true;
    assert_int_equal(job_save(&j, 20), DT_ERR_IO);
    assert_has(j.ranks[0].text, "rename: Input/output error");
    fault.spoils = false;
    after = lineage();
    assert_true(dt_lineage_equal(&before, &after));
    job_free(&j);
}

static void a_lineage_that_cannot_be_read_is_an_error(void **state)
{
    struct dt_lineage before, after;
    struct job j;
    int64_t step;

    (void)state;
    save_steps(NO_WORD, "first-01234567", (const int64_t[]){ 10, -1 });
    before = lineage();
    begin(&j, "second-89abcdef", 0, 0);
    fault.hides = DT_LINEAGE_NAME;
    assert_int_equal(job_restore(&j, &step), DT_ERR_IO);
    assert_has(j.ranks[1].text, "/c/LINEAGE: read: Input/output error");
    job_free(&j);
    begin_with(&j, FRESH, "third-89abcdef", 0, 0);
    fault.spoils = true;
    assert_int_equal(job_save(&j, 10), DT_ERR_IO);
    assert_has(j.ranks[1].text, "/c/LINEAGE: read: Input/output error");
    fault.hides = NULL;
    fault.spoils = false;
    job_free(&j);
    after = lineage();
    assert_true(dt_lineage_equal(&before, &after));
}

/* ---- the lock ---- */

static void a_later_generation_takes_over_and_the_older_one_commits_nothing(void **state)
{
    struct job older, later;
    int64_t step;

    (void)state;
    begin(&older, "job-01234567", 1, 10);
    begin(&later, "job-01234567", 2, 0);
    assert_int_equal(job_save(&older, 10), DT_OK);
    assert_int_equal(job_restore(&later, &step),
                     DT_OK); /* the older one is alive and has the lock */
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
    begin(&older, "job-01234567", 2, 0); /* one that starts late */
    assert_int_equal(job_restore(&older, &step), DT_ERR_STATE);
    job_free(&older);
    job_free(&later);
}

static void a_dead_job_does_not_hold_the_directory(void **state)
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

static dt_result_t save_as_another_user(struct job *j, int64_t step)
{
    uid_t me = geteuid();
    dt_result_t result;

    assert_int_equal(me == 0 ? seteuid(65534) : 0, 0);
    result = job_save(j, step);
    job_free(j);
    assert_int_equal(me == 0 ? seteuid(me) : 0, 0);
    return result;
}

/* Makes a group's directory, in which each user may write files but not change those of others. It
 * has another user's OWNER. */
static void make_group_dir(void)
{
    assert_int_equal(mkdir(dir, 0777), 0);
    assert_int_equal(chmod(base, 0755) | chmod(dir, 0777), 0);
    write_owner(stolen);
    assert_int_equal(chmod(owner_path(), 0444), 0);
}

static void another_users_dead_job_does_not_hold_the_directory(void **state)
{
    struct job j;
    int fd;

    (void)state;
    make_group_dir();
    fd = open(owner_path(), O_RDONLY);
    assert_int_equal(syscall(SYS_flock, fd, LOCK_EX | LOCK_NB), 0); /* its job is alive */
    begin(&j, "job-01234567", 0, 10);
    assert_int_equal(save_as_another_user(&j, 10), DT_ERR_STATE);
    assert_has(j.ranks[1].text, "is in use by job thief-00000000");
    assert_int_equal(close(fd), 0);

    begin(&j, "job-01234567", 0, 10);
    if (save_as_another_user(&j, 10) != DT_OK)
        fail_msg("%s", j.ranks[0].text);
    assert_int_equal(access(owner_path(), F_OK), -1); /* it has removed its own at its end */
}

/* The dead job restarts and gets the directory just before the other's new OWNER gets its name. */
static void a_restarted_owner_keeps_the_directory(void **state)
{
    dt_result_t result;
    struct job j;

    (void)state;
    make_group_dir();
    fault.restarts = true;
    begin(&j, "job-01234567", 0, 10);
    result = save_as_another_user(&j, 10);
    assert_false(fault.restarts);
    assert_int_equal(close(fault.restarted), 0);
    assert_int_equal(result, DT_ERR_STATE);
    assert_has(j.ranks[1].text, "is in use by job thief-00000000");
    assert_int_equal(access(owner_path(), F_OK), 0);
    assert_int_equal(unlink(owner_path()), 0);
    assert_int_equal(rmdir(dir), 0); /* nothing else is left */
}

/* On NFS a file can be locked only if it is open for writing. */
static void another_users_file_that_cannot_be_locked_is_named(void **state)
{
    struct job j;

    (void)state;
    make_group_dir();
    fault.lock_error = EBADF;
    begin(&j, "job-01234567", 0, 10);
    assert_int_equal(save_as_another_user(&j, 10), DT_ERR_IO);
    fault.lock_error = 0;
    assert_has(j.ranks[1].text, "/c/OWNER: another user's file, which cannot be locked (remove it "
                                "once no job uses the directory)");
    assert_int_equal(access(owner_path(), F_OK), 0);
}

/* In a directory that others may write to, one of them can give a file of this user a second name.
 */
static void an_owner_with_another_name_is_not_written(void **state)
{
    char mine[100], text[10] = "";
    struct job j;
    int fd;

    (void)state;
    snprintf(mine, sizeof mine, "%s/mine", base);
    fd = open(mine, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_int_equal(write(fd, "kept", 4), 4);
    assert_int_equal(mkdir(dir, 0777) | link(mine, owner_path()), 0);
    begin(&j, "job-01234567", 0, 10);
    assert_int_equal(job_save(&j, 10), DT_OK);
    job_free(&j);
    assert_int_equal(pread(fd, text, sizeof text, 0), 4);
    assert_string_equal(text, "kept");
    assert_int_equal(close(fd) | unlink(mine), 0);
}

/* Nobody opens its other end. */
static void a_fifo_does_not_block_a_job(void **state)
{
    char manifest[120], lineage_path[100];
    struct job j;
    int64_t step;

    (void)state;
    save_steps(NO_WORD, "job-01234567", (const int64_t[]){ 10, 20, -1 });
    snprintf(manifest, sizeof manifest, "%s/step_000000000020/MANIFEST", dir);
    assert_int_equal(unlink(manifest) | mkfifo(manifest, 0666), 0);
    begin(&j, "job-01234567", 1, 0);
    assert_int_equal(job_restore(&j, &step), DT_OK);
    assert_int_equal(step, 10);
    job_free(&j);
    snprintf(lineage_path, sizeof lineage_path, "%s/" DT_LINEAGE_NAME, dir);
    assert_int_equal(unlink(lineage_path) | mkfifo(lineage_path, 0666), 0);
    begin(&j, "job-01234567", 2, 0);
    assert_int_equal(job_restore(&j, &step), DT_ERR_IO);
    assert_has(j.ranks[1].text, "/c/LINEAGE: read: Illegal seek");
    job_free(&j);
    assert_int_equal(unlink(lineage_path), 0);
    assert_int_equal(chmod(base, 0755) | chmod(dir, 0777) | mkfifo(owner_path(), 0444), 0);
    begin(&j, "job-01234567", 3, 0);
    assert_int_equal(save_as_another_user(&j, 30), DT_ERR_IO);
    assert_has(j.ranks[1].text, "/c/OWNER: read: Illegal seek");
}

/* Imitates a file system whose locks do not reach other hosts: the lock did not keep the other job
 * out. */
static void a_job_that_lost_the_ownership_commits_nothing(void **state)
{
    struct job j;
    int64_t step;

    (void)state;
    begin(&j, "job-01234567", 0, 10);
    assert_int_equal(job_save(&j, 10), DT_OK);
    fault.steals = true;
    assert_int_equal(job_save(&j, 20), DT_ERR_STATE);
    fault.steals = false;
    assert_has(j.ranks[1].text,
               "in use by job thief-00000000 (generation 0; rank 0 is process 7 on "
               "host far) since 2026-01-02T03:04:05Z: it has taken the directory");
    assert_int_equal(j.committed, 10);
    job_free(&j);
    assert_int_equal(access(owner_path(), F_OK), 0); /* the other job's */
    begin(&j, "job-01234567", 1, 0);
    assert_int_equal(job_restore(&j, &step), DT_OK);
    assert_int_equal(step, 10);
    job_free(&j);
}

static void an_owner_that_cannot_be_read_is_an_error(void **state)
{
    struct job j;

    (void)state;
    begin(&j, "job-01234567", 0, 10);
    fault.hides = DT_OWNER_NAME;
    assert_int_equal(job_save(&j, 10), DT_ERR_IO);
    assert_has(j.ranks[1].text, "/c/OWNER: read: Input/output error");
    fault.hides = NULL;
    assert_int_equal(job_save(&j, 10), DT_OK);
    fault.hides = DT_OWNER_NAME;
    assert_int_equal(job_save(&j, 20), DT_ERR_IO);
    assert_has(j.ranks[1].text, "/c/OWNER: read: Input/output error");
    fault.hides = NULL;
    assert_int_equal(job_save(&j, 20), DT_OK);
    job_free(&j);
}

static void a_lock_on_a_removed_file_does_not_count(void **state)
{
    struct job a, b;
    int64_t step;

    (void)state;
    begin(&a, "first-01234567", 0, 10);
    begin(&b, "second-89abcdef", 0, 0);
    fault.vanishes = true;
    assert_int_equal(job_save(&a, 10), DT_OK);
    assert_false(fault.vanishes);
    assert_int_equal(job_restore(&b, &step), DT_OK);
    assert_int_equal(job_save(&b, 20), DT_ERR_STATE);
    job_free(&b);
    job_free(&a);
}

/* Rank 0 has a child that outlives it. The child reports when only its parent has the directory. */
static void own_with_a_child(int ready, int end)
{
    static struct job j;
    char c = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL); /* when the test ends */
    job_init(&j, 1, dir, 0, 10);
    if (dt_store_save(&j.ranks[0].store, &j.ranks[0].buffers, 10) != DT_OK)
        _exit(1);
    if (fork() == 0) {
        dt_owner_forget(&j.ranks[0].store.ownership); /* as the handler of fork does */
        _exit(write(ready, &c, 1) == 1 && read(end, &c, 1) == 0 ? 0 : 1);
    }
    pause();
}

static void a_child_process_does_not_keep_the_directory(void **state)
{
    int ready[2], end[2], status;
    struct job j;
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
    begin_with(&j, FRESH, "second-89abcdef", 0, 0);
    assert_int_equal(job_save(&j, 20), DT_ERR_STATE); /* rank 0 is alive */
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(job_save(&j, 20), DT_OK);
    job_free(&j);
    close(end[1]);
    assert_int_equal(read(ready[0], &c, 1), 0); /* the child has ended */
    close(ready[0]);
    close(end[0]);
}

/* ---- the race ---- */

enum { SAVED = 0, WRONG = 1, REFUSED = 2, LIVES = 20 };

static struct {
    int64_t last;      /* saved in this round, if its saver lived to report it */
    int reads, misses; /* of the job that only restores */
    _Atomic bool over;
} * seen; /* shared by all processes */

/* Steps show which job saved them: those of a job are all even, or all odd. */
static bool is_whole(const struct job *j, int64_t step)
{
    return step < 0 ? job_holds(j, -7) : job_holds(j, step);
}

static dt_result_t restore(struct job *j, int64_t *step)
{
    return dt_store_restore(&j->ranks[0].store, &j->ranks[0].buffers, step);
}

static dt_result_t save(struct job *j, int64_t step)
{
    job_fill(j, step);
    return dt_store_save(&j->ranks[0].store, &j->ranks[0].buffers, step);
}

static bool has_vanished(dt_result_t result)
{
    return result == DT_ERR_IO && strstr(dt_last_error(), "vanish while they are read");
}

/* One start of a job, which goes on from what exists or starts afresh. From its first save on it
 * finds only what it has saved itself, and its save has lost no other job's checkpoint. */
static int live(struct job *j, int who, bool fresh)
{
    int64_t step, found;
    dt_result_t result = restore(j, &step);

    if (has_vanished(result))
        return REFUSED;
    if (result != DT_OK || !is_whole(j, step) || (fresh && step != -1))
        return WRONG;
    for (int i = 0; i < LIVES; i++) {
        int64_t mine = (step + 2) / 2 * 2 + who;

        result = save(j, mine);
        if (result == DT_ERR_STATE && i == 0)
            return REFUSED;
        if (result != DT_OK || (i == 0 && !fresh && seen->last > step))
            return WRONG;
        seen->last = mine;
        result = restore(j, &found);
        if (result != DT_OK || found != mine || !is_whole(j, found))
            return WRONG;
        step = found;
    }
    return SAVED;
}

static pid_t start(int who, int round)
{
    static struct job j;
    char job_id[40];
    pid_t pid = fork();
    int end;

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    snprintf(job_id, sizeof job_id, "job%d-%d", who, round);
    job_init(&j, 1, dir, 0, -7);
    j.ranks[0].store.owner.job_id = job_id;
    j.ranks[0].store.fresh = round % 2;
    j.ranks[0].store.resume = !(round % 2);
    end = live(&j, who, round % 2);
    if (end == WRONG)
        fprintf(stderr, "job %d, round %d: %s\n", who, round, dt_last_error());
    job_free(&j);
    _exit(end);
}

/* A job that only restores, again and again. */
static pid_t start_reader(void)
{
    static struct job j;
    pid_t pid = fork();
    int64_t step;

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!seen->over) {
        dt_result_t result;

        job_init(&j, 1, dir, 0, -7);
        j.ranks[0].store.owner.job_id = "reader-01234567";
        j.ranks[0].store.resume = true;
        result = restore(&j, &step);
        if (has_vanished(result))
            seen->misses++;
        else if (result == DT_OK && is_whole(&j, step) && j.notes == 0)
            seen->reads++;
        else {
            fprintf(stderr, "reader: %d, %s\n", result, result ? dt_last_error() : j.note);
            _exit(WRONG);
        }
        job_free(&j);
    }
    _exit(0);
}

static unsigned random_below(unsigned n)
{
    static unsigned long long x = 88172645463325252ULL; /* xorshift: the same in each run */

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (unsigned)(x % n);
}

static void racing_jobs_neither_lose_nor_restore_each_others_steps(void **state)
{
    int ends[3] = { 0 }, killed = 0, status;
    pid_t reader;

    (void)state;
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(seen != MAP_FAILED);
    reader = start_reader();
    for (int round = 0; round < rounds; round++) {
        struct timespec moment = { 0, (long)random_below(5 * 1000 * 1000) };
        pid_t pids[2];

        seen->last = -1;
        for (int k = 0; k < 2; k++)
            pids[k] = start(k, round);

        nanosleep(&moment, NULL); /* any order is fine: the kill happens at any point */
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
    seen->over = true;
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
    print_message("%d lives saved, %d were refused, %d killed; %d restores beside them, %d of what "
                  "vanished\n",
                  ends[SAVED], ends[REFUSED], killed, seen->reads, seen->misses);
    assert_true(ends[REFUSED] + killed > 0 && ends[SAVED] > 0 && seen->reads > 0);
    munmap(seen, sizeof *seen);
}

#define ON_DISK(f) cmocka_unit_test_setup_teardown(f, begin_test, end_test)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_DISK(a_second_job_learns_which_job_owns_the_directory),
        ON_DISK(a_restore_locks_and_writes_nothing),
        ON_DISK(a_checkpoint_that_vanishes_gives_way_to_the_newest),
        ON_DISK(a_step_that_is_being_replaced_can_be_restored),
        ON_DISK(a_restore_names_the_host_that_sees_another_directory),
        ON_DISK(a_restore_says_why_a_host_does_not_see_the_checkpoint),
        ON_DISK(a_lack_of_memory_does_not_cost_steps),
        ON_DISK(a_job_that_goes_on_keeps_the_lineage),
        ON_DISK(going_on_from_another_job_needs_consent),
        ON_DISK(a_save_that_does_not_go_on_from_the_newest_is_refused),
        ON_DISK(a_manifest_that_was_hard_to_read_does_not_forbid_saves),
        ON_DISK(a_failed_save_does_not_change_the_lineage),
        ON_DISK(a_lineage_that_cannot_be_read_is_an_error),
        ON_DISK(a_later_generation_takes_over_and_the_older_one_commits_nothing),
        ON_DISK(a_dead_job_does_not_hold_the_directory),
        ON_DISK(another_users_dead_job_does_not_hold_the_directory),
        ON_DISK(a_restarted_owner_keeps_the_directory),
        ON_DISK(another_users_file_that_cannot_be_locked_is_named),
        ON_DISK(an_owner_with_another_name_is_not_written),
        ON_DISK(a_fifo_does_not_block_a_job),
        ON_DISK(a_job_that_lost_the_ownership_commits_nothing),
        ON_DISK(an_owner_that_cannot_be_read_is_an_error),
        ON_DISK(a_refused_save_disturbs_no_job_even_without_locks),
        ON_DISK(a_lock_on_a_removed_file_does_not_count),
        ON_DISK(a_child_process_does_not_keep_the_directory),
        ON_DISK(racing_jobs_neither_lose_nor_restore_each_others_steps),
    };

    if (argc > 1)
        rounds = atoi(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
