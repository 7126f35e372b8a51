/* What is left when a save is killed or one of its system calls fails: each of them in turn, by
 * ptrace. At least one checkpoint can be restored then, and it is one that was saved. Each save is
 * made from the buffers, and from copies of them as in the background. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/checkpoint/snapshot.h"
#include "tests/unit/checkpoint/checkpoint_ranks.h"
#include "tests/unit/checkpoint/scratch.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/unit.h"

static char original[80], copy[80];
static const char *dir; /* one of the latter two: the checkpoint directory */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static void remove_all(const char *path)
{
    assert_true(nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT);
}

static int begin_test(void **state)
{
    int r = make_base(state);

    snprintf(original, sizeof original, "%s/original", base);
    snprintf(copy, sizeof copy, "%s/copy", base);
    dir = original;
    return r;
}

/* A directory's entries, each followed by its content. None if there is no directory. */
struct image {
    size_t n;
    uint8_t bytes[1 << 17];
};

struct entry {
    char path[112]; /* begins at the directory */
    bool is_dir;
    size_t bytes;
};

static struct image *image; /* that image_one fills */

static void *image_add(size_t n)
{
    void *at = image->bytes + image->n;

    assert_true(n <= sizeof image->bytes - image->n);
    image->n += n;
    return at;
}

static int image_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    struct entry e = { .is_dir = kind == FTW_D, .bytes = kind == FTW_D ? 0 : (size_t)st->st_size };
    int fd;

    (void)ftw;
    assert_true(kind == FTW_D || kind == FTW_F);
    assert_true(strlen(path + strlen(dir)) < sizeof e.path);
    strcpy(e.path, path + strlen(dir));
    memcpy(image_add(sizeof e), &e, sizeof e);
    if (e.is_dir)
        return 0;
    fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, image_add(e.bytes), e.bytes), e.bytes);
    close(fd);
    return 0;
}

static void image_take(struct image *im)
{
    im->n = 0;
    image = im;
    assert_true(nftw(dir, image_one, 8, FTW_PHYS) == 0 || errno == ENOENT);
}

static bool image_equals(const struct image *a, const struct image *b)
{
    return a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

static void make_entry(const struct entry *e, const uint8_t *content)
{
    char path[sizeof copy + sizeof e->path];
    int fd;

    snprintf(path, sizeof path, "%s%s", dir, e->path);
    if (e->is_dir) {
        assert_int_equal(mkdir(path, 0777), 0);
        return;
    }
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    assert_int_equal(write(fd, content, e->bytes), e->bytes);
    close(fd);
}

/* Makes the directory what it was when the image was taken. */
static void image_put(const struct image *im)
{
    struct entry e;

    remove_all(dir);
    for (size_t at = 0; at < im->n; at += e.bytes) {
        memcpy(&e, im->bytes + at, sizeof e);
        at += sizeof e;
        make_entry(&e, im->bytes + at);
    }
}

static const char this_job[] = "job-01234567", job_before[] = "before-01234567",
                  job_after[] = "after-01234567";

/* Saves copies, after the buffers themselves have changed. */
static dt_result_t save_copies(struct job *j, int64_t step)
{
    struct dt_snapshot copies = { 0 };
    dt_result_t result = dt_snapshot_take(&copies, &j->ranks[0].buffers);

    job_fill(j, -9);
    if (result == DT_OK)
        result = dt_store_save(&j->ranks[0].store, &copies.buffers, step);
    dt_snapshot_free(&copies);
    return result;
}

/* One rank saves one step with this content. Returns the result of dt_store_save. */
static dt_result_t save(const char *job, uint32_t generation, int64_t step, int64_t fill,
                        bool fresh, bool copied)
{
    static struct job j;
    dt_result_t result;

    job_init(&j, 1, dir, generation, fill);
    j.ranks[0].store.owner.job_id = job;
    j.ranks[0].store.fresh = fresh;
    if (copied)
        result = save_copies(&j, step);
    else
        result = dt_store_save(&j.ranks[0].store, &j.ranks[0].buffers, step);
    job_free(&j);
    return result;
}

/* A case: existing steps, with their number as content, and the save that is disturbed. */
static const struct scenario {
    int64_t before[3];
    int64_t step, fill;
    bool fresh;   /* the existing ones are another job's */
    bool resumed; /* by another job; otherwise the same job starts again */
    bool copied;  /* the save is made from copies of the buffers */
} scenarios[] = {
    { { 10, 20, -1 }, 30, 30, false, false, false }, /* retires 10 */
    { { 10, -1 }, 10, 11, false, false, false },     /* saves the only one again */
    { { 10, 20, -1 }, 20, 21, false, false, false },
    { { -1 }, 10, 10, false, false, false }, /* the first, in a directory that does not exist */
    { { 10, 20, -1 }, 5, 5, true, false, false },
    { { 10, 20, -1 }, 5, 5, true, true, false },
    { { 10, 20, -1 }, 20, 21, true, false, false },
    { { 10, 20, -1 }, 20, 21, true, true, false },
    { { 10, 20, -1 }, 5, 5, false, false, false }, /* sets 10 and 20 aside */
};

static void in_each_scenario(void (*disturb)(const struct scenario *s))
{
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        struct scenario s = scenarios[i];

        disturb(&s);
        s.copied = true;
        disturb(&s);
    }
}

static dt_result_t save_scenario(const struct scenario *s)
{
    return save(this_job, 1, s->step, s->fill, s->fresh, s->copied);
}

static pid_t trace(dt_result_t (*run)(const struct scenario *s), const struct scenario *s)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(77);
        raise(SIGSTOP);
        _exit(run(s) == DT_OK ? 0 : 1);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("ptrace is not allowed here\n");
        skip();
    }
    assert_true(WIFSTOPPED(status));
    assert_int_equal(
        ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
    return pid;
}

/* Makes the directory as it is before the disturbed save. */
static void prepare(const struct scenario *s)
{
    remove_all(dir);
    for (const int64_t *step = s->before; *step >= 0; step++)
        assert_int_equal(save(s->fresh ? job_before : this_job, 0, *step, *step, false, false),
                         DT_OK);
}

/* Runs to the next edge (entry or return) of a system call. Returns false, and the status, when the
 * process has ended. */
static bool next_edge(pid_t pid, int *status)
{
    assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
    assert_int_equal(waitpid(pid, status, 0), pid);
    return WIFSTOPPED(*status);
}

static void only_checkpoints_are_left(void)
{
    DIR *d = opendir(dir);
    struct dirent *e;

    while (d && (e = readdir(d)))
        if (strncmp(e->d_name, "step_", 5) && strncmp(e->d_name, "earlier-", 8) &&
            strcmp(e->d_name, DT_LINEAGE_NAME) && strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            fail_msg("%s is left behind", e->d_name);
    if (d)
        closedir(d);
}

/* Whether dir/WHERE/step_STEP has this content. */
static bool has(const char *where, int64_t step, int64_t fill)
{
    int64_t words[2] = { fill * 1000003, fill * 1000003 + 1 }; /* as job_fill makes them */
    static char bytes[65536];
    char name[400];
    size_t n;
    FILE *f;

    snprintf(name, sizeof name, "%s/%s/step_%012lld/rank_00000.shard", dir, where, (long long)step);
    f = fopen(name, "r");
    if (!f)
        return false;
    n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    return memmem(bytes, n, words, sizeof words) != NULL;
}

/* Whether dir/WHERE/step_STEP contains the step as it was before the disturbed save. */
static bool is_old(const char *where, int64_t step)
{
    return has(where, step, step);
}

/* Another job's checkpoint is set aside or still has its name. */
static void other_jobs_checkpoint_survives(int64_t step)
{
    DIR *d = opendir(dir);
    bool found = is_old(".", step);
    struct dirent *e;

    while (d && !found && (e = readdir(d)))
        found = strncmp(e->d_name, "earlier-", 8) == 0 && is_old(e->d_name, step);
    if (d)
        closedir(d);
    if (!found)
        fail_msg("step %lld of the job before is lost", (long long)step);
}

/* The job starts again, or another one resumes. */
static void start_next(struct job *j, uint32_t generation, bool another)
{
    job_init(j, 1, dir, generation, -7);
    if (!another)
        return;
    j->ranks[0].store.owner.job_id = job_after;
    j->ranks[0].store.resume = true;
}

/* A job that does not start afresh restores the newest of the saved checkpoints, or the disturbed
 * one in full. */
static void check_restored(const struct scenario *s, bool must_be_new, bool must_be_old)
{
    static struct job j;
    const int64_t *newest = s->before;
    bool committed = has(".", s->step, s->fill);
    int64_t step;

    while (newest[0] >= 0 && newest[1] >= 0)
        newest++;
    start_next(&j, 2, s->fresh);
    assert_int_equal(job_restore(&j, &step), DT_OK);
    if (step == s->step && job_holds(&j, s->fill))
        assert_false(must_be_old);
    else if (must_be_new)
        fail_msg("the save succeeded, and step %lld was restored", (long long)step);
    else if (step >= 0)
        assert_true(step == *newest && job_holds(&j, *newest));
    else
        assert_true(*newest < 0 && job_holds(&j, -7));
    if (s->fresh) { /* no checkpoint passes for one of the other lineage */
        assert_int_equal(step == s->step && job_holds(&j, s->fill), committed);
        assert_string_equal(j.ranks[0].store.found.line.job.job, committed ? this_job : job_before);
    }
    assert_int_equal(j.notes, 0);
    job_free(&j);
}

/* Once the next generation has saved, only checkpoints are left. dtrun lets it start afresh until a
 * commit is known. */
static void check_what_is_left(const struct scenario *s, bool must_be_new, bool must_be_old)
{
    static struct job j;
    bool committed = has(".", s->step, s->fill);
    int64_t step;

    check_restored(s, must_be_new, must_be_old);
    start_next(&j, 3, s->resumed);
    j.ranks[0].store.fresh = s->fresh && !s->resumed && !must_be_new;
    assert_int_equal(job_restore(&j, &step), DT_OK);
    assert_true(step == -1 || !j.ranks[0].store.fresh);
    assert_int_equal(job_save(&j, 1000), DT_OK);
    assert_int_equal(j.notes, 0);
    job_free(&j);
    only_checkpoints_are_left();
    if (s->fresh) /* a job that continues them retires the lower ones */
        for (const int64_t *old = s->before; *old >= 0; old++)
            if (!s->resumed || committed || *old == s->step)
                other_jobs_checkpoint_survives(*old);
}

/* Runs the process to its end. Killed between two system calls, it would leave the directory as it
 * is then: check sees a copy of each such state, which nobody has locked, and how it is in the
 * end. */
static void kill_everywhere(pid_t pid, const struct scenario *s,
                            void (*check)(const struct scenario *s, bool ended))
{
    static struct image images[2];
    bool ended = false;
    int calls = 0, states = 0, status;

    for (; !ended; calls++) {
        struct image *now = &images[states % 2];

        ended = !next_edge(pid, &status) || !next_edge(pid, &status);
        if (ended)
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        image_take(now);
        if (!ended && states > 0 && image_equals(&images[0], &images[1]))
            continue;
        states++;
        dir = copy;
        image_put(now);
        check(s, ended);
        dir = original;
    }
    assert_in_range(calls, 20, 1000);
    assert_in_range(states, 10, calls);
}

static void check_killed(const struct scenario *s, bool ended)
{
    check_what_is_left(s, ended, false);
}

static void kill_save_everywhere(const struct scenario *s)
{
    prepare(s);
    kill_everywhere(trace(save_scenario, s), s, check_killed);
}

static void d8_d28_a_save_may_be_killed_at_any_system_call(void **state)
{
    (void)state;
    in_each_scenario(kill_save_everywhere);
}

/* Another job goes on from the existing checkpoints. */
static dt_result_t resume(const struct scenario *s)
{
    static struct job j;
    dt_result_t result;
    int64_t step;

    start_next(&j, 0, true);
    result = job_restore(&j, &step);
    if (result == DT_OK && step != s->before[0] && step != s->step)
        result = dt_fail(DT_ERR_IO, "step %lld was restored", (long long)step);
    job_fill(&j, s->fill);
    if (result == DT_OK)
        result = dt_store_save(&j.ranks[0].store, &j.ranks[0].buffers, s->step);
    job_free(&j);
    return result;
}

static void check_set_aside(const struct scenario *s, bool ended)
{
    struct scenario again = *s;

    (void)ended;
    again.fill = 8;
    assert_int_equal(resume(&again), DT_OK);
    only_checkpoints_are_left();
    other_jobs_checkpoint_survives(10);
    other_jobs_checkpoint_survives(20);
    assert_false(is_old(".", 10) || is_old(".", 20));
    assert_true(is_old(".", 5) && has(".", 7, 8));
}

/* A fresh job began with step 5; steps 10 and 20 are older. The next job saves step 7 after it has
 * set them aside, and is killed. */
static void d28_a_job_may_be_killed_while_it_finishes_setting_aside(void **state)
{
    static const struct scenario s = { .before = { 5 }, .step = 7, .fill = 7 };
    const struct dt_lineage none = { .id = "" };

    (void)state;
    assert_int_equal(save(job_before, 0, 10, 10, false, false), DT_OK);
    assert_int_equal(save(job_before, 0, 20, 20, false, false), DT_OK);
    assert_int_equal(save(this_job, 0, 5, 5, true, false), DT_OK);
    job_undo_setting_aside(dir, 5, &none);
    kill_everywhere(trace(resume, &s), &s, check_set_aside);
}

#ifdef __x86_64__

enum verdict { NOT_INJECTED, MAY_SUCCEED, MUST_FAIL };

/* What a failure of this system call means. Data that is not known to be durable must not be
 * committed. */
static enum verdict verdict_of(const struct user_regs_struct *regs, unsigned long long *written)
{
    switch (regs->orig_rax) {
    case SYS_write:
        *written = regs->rdi;
        return MUST_FAIL;
    case SYS_fsync:
        return MUST_FAIL;
    case SYS_close:
        if (regs->rdi != *written)
            return MAY_SUCCEED;
        *written = (unsigned long long)-1; /* the next file with this descriptor is another one */
        return MUST_FAIL;
    case SYS_openat:
    case SYS_renameat:
    case SYS_mkdir:
    case SYS_mkdirat:
    case SYS_unlinkat:
    case SYS_getdents64:
        return MAY_SUCCEED; /* as if an older one could not be removed */
    default:
        return NOT_INJECTED;
    }
}

/* Saves again and again, and stops after each save to say how it ended. A new process for each save
 * would cost most of the time under a sanitizer. */
static dt_result_t save_repeatedly(const struct scenario *s)
{
    for (;;)
        raise(save_scenario(s) == DT_OK ? SIGUSR1 : SIGUSR2); /* the tracer lets neither through */
    return DT_OK;
}

static void set_register(pid_t pid, size_t offset, long value)
{
    assert_int_equal(ptrace(PTRACE_POKEUSER, pid, offset, value), 0);
}

/* Runs the next save, and lets its file call number "at" fail with EIO. */
static enum verdict save_with_failure(pid_t pid, int at, bool *failed)
{
    struct user_regs_struct regs;
    unsigned long long written = (unsigned long long)-1;
    enum verdict v = NOT_INJECTED;
    int status;

    while (next_edge(pid, &status) && WSTOPSIG(status) == (SIGTRAP | 0x80)) {
        assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, &regs), 0);
        v = verdict_of(&regs, &written);
        at -= v != NOT_INJECTED;
        if (at == 0) /* no such call, so it is skipped */
            set_register(pid, offsetof(struct user_regs_struct, orig_rax), -1);
        assert_true(next_edge(pid, &status));
        if (at > 0)
            continue;
        set_register(pid, offsetof(struct user_regs_struct, rax), -EIO);
        assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        break;
    }
    assert_true(WIFSTOPPED(status));
    *failed = WSTOPSIG(status) == SIGUSR2;
    assert_true(*failed || WSTOPSIG(status) == SIGUSR1);
    return at > 0 ? NOT_INJECTED : v;
}

static void fail_everywhere(const struct scenario *s)
{
    static struct image before;
    enum verdict v = MAY_SUCCEED;
    pid_t pid;

    prepare(s);
    image_take(&before);
    pid = trace(save_repeatedly, s);
    for (int at = 1; v != NOT_INJECTED; at += SANITIZED ? 3 : 1) {
        bool failed;

        image_put(&before);
        v = save_with_failure(pid, at, &failed);
        check_what_is_left(s, !failed, failed);
        assert_true(failed || v != MUST_FAIL);
        assert_false(failed && v == NOT_INJECTED);
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void no_error_goes_unseen(void **state)
{
    (void)state;
    in_each_scenario(fail_everywhere);
}

#endif

#define ON_DISK(f) cmocka_unit_test_setup_teardown(f, begin_test, remove_base)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_DISK(d8_d28_a_save_may_be_killed_at_any_system_call),
        ON_DISK(d28_a_job_may_be_killed_while_it_finishes_setting_aside),
#ifdef __x86_64__
        ON_DISK(no_error_goes_unseen),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
