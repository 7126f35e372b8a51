/* dt_store_restore (store.h): rank 0 reads the directory and proposes its checkpoints, newest
 * first, until all ranks find one sound. If another job removes what is being read, it begins
 * again. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/shard.h"
#include "runtime/checkpoint/store.h"
#include "runtime/checkpoint/visible.h"

enum {
    MANIFEST_MAX = 64 << 20, /* bytes */
    ATTEMPTS = 5,            /* another job may remove what is being read */
};

/* How a job reads a directory. */
enum restore_mode {
    NO_CHECKPOINT, /* there is nothing to restore */
    UNLOCKED,      /* without the lock (owner.h): another job may be saving there */
    LOCKED,        /* this job has saved there and will do so again */
};

enum { NO_CANDIDATE = -1, VANISHED = -2 }; /* in the place of a candidate's step */

struct candidate {
    int64_t step;
    struct dt_checksum sum; /* of its manifest's bytes */
};

struct restore {
    struct dt_store *store;
    const struct dt_buffers *buffers;
    struct dt_dir dir;
    enum restore_mode mode;
    struct dt_head head;          /* on rank 0: what the directory held */
    struct dt_steps steps;        /* on rank 0: the candidates, newest first */
    size_t next;                  /* the first of steps that has not been tried */
    struct candidate candidate;   /* the one being tried */
    struct dt_shard_info *shards; /* of all ranks, from the candidate's manifest */
    struct dt_dir from;           /* the candidate's directory */
    struct dt_shard_head wanted;  /* what this rank's shard there must begin with */
    struct dt_shard shard;
    bool hidden;         /* some host does not see the candidate */
    bool vanished;       /* the directory has changed since it was read */
    bool touched;        /* the buffers have been overwritten */
    bool refused;        /* at least one candidate was tried and refused */
    dt_error_info_t why; /* of the last refusal */
};

static dt_result_t read_manifest(const struct dt_dir *d, struct dt_manifest *m,
                                 struct dt_checksum *sum)
{
    struct dt_file f;
    uint64_t bytes = 0;
    uint8_t *data = NULL;
    dt_result_t result = dt_file_open(&f, d, DT_MANIFEST_NAME, &bytes);

    errno = EBADMSG; /* what fails below without ENOMEM is damage */
    if (result == DT_OK && bytes <= MANIFEST_MAX)
        data = malloc(bytes ? bytes : 1);
    if (data)
        result = dt_file_read(&f, data, bytes);
    if (data && result == DT_OK)
        *sum = dt_hasher_sum(f.hasher);
    if (result == DT_OK && (!data || dt_manifest_decode(data, bytes, m) != 0))
        result = errno == ENOMEM
                     ? dt_fail(DT_ERR_NOMEM, "out of memory for a manifest")
                     : dt_fail(DT_ERR_IO, "%s/%s is damaged", d->path, DT_MANIFEST_NAME);
    free(data);
    dt_file_close(&f);
    return result;
}

/* On rank 0: whether the candidate's directory still has its name, and no other job has saved since
 * this one read the directory. Otherwise the name may be that of another job's checkpoint. */
static bool is_unchanged(const struct restore *r, int64_t step)
{
    struct dt_dir now = { .fd = -1 };
    struct stat mine, named;
    struct dt_lineage line;
    int64_t only;
    bool same;

    if (dt_lineage_read(&line, &only, &r->dir) != DT_OK || !dt_lineage_equal(&line, &r->head.line))
        return false;
    if (dt_steps_open(&now, &r->dir, step) != DT_OK)
        return errno != ENOENT;
    same = r->from.fd < 0 || (fstat(r->from.fd, &mine) == 0 && fstat(now.fd, &named) == 0 &&
                              mine.st_dev == named.st_dev && mine.st_ino == named.st_ino);
    dt_dir_close(&now);
    return same;
}

static dt_result_t fail_other_number(const struct restore *r, uint32_t saved_by)
{
    const char *plural = saved_by == 1 ? "" : "s";

    return dt_fail(DT_ERR_MISMATCH,
                   "%s was saved by %u rank%s and cannot be restored by %u: start %u rank%s, or "
                   "begin afresh (--fresh)",
                   r->from.path, saved_by, plural, r->store->group.size, saved_by, plural);
}

/* Opens a candidate and reads its manifest into r->shards. */
static dt_result_t open_candidate(struct restore *r, int64_t step)
{
    const struct dt_group *g = &r->store->group;
    struct dt_manifest m = { 0 };
    dt_result_t result = dt_steps_open(&r->from, &r->dir, step);

    if (result == DT_OK)
        result = read_manifest(&r->from, &m, &r->candidate.sum);
    if (result == DT_OK && m.step != step)
        result = dt_fail(DT_ERR_IO, "%s/%s belongs to step %lld", r->from.path, DT_MANIFEST_NAME,
                         (long long)m.step);
    if (result == DT_OK && m.np != g->size)
        result = fail_other_number(r, m.np);
    if (result == DT_OK)
        memcpy(r->shards, m.shards, g->size * sizeof *r->shards);
    dt_manifest_free(&m);
    return result;
}

/* Keeps the reason why the candidate cannot be used. */
static void note_refusal(struct restore *r, int64_t step)
{
    char text[DT_ERROR_TEXT + 100];

    dt_error_save(&r->why);
    r->refused = true;
    if (r->store->group.rank != 0)
        return;
    snprintf(text, sizeof text, "the checkpoint of step %lld cannot be used: %s", (long long)step,
             r->why.message);
    r->store->note(r->store->arg, text);
}

/* Whether a failure says nothing about the checkpoint. An older one would cost the steps since. */
static bool says_nothing(dt_result_t result)
{
    int error = dt_error_details()->error;

    return result != DT_ERR_IO || error == EMFILE || error == ENFILE || error == ENOMEM;
}

static dt_result_t fail_all_refused(const struct restore *r)
{
    dt_fail(DT_ERR_IO, "no checkpoint in %s can be used; the last one tried: %.300s", r->dir.path,
            r->why.message);
    dt_error_details()->rank = r->why.rank;
    dt_error_details()->error = r->why.error;
    return DT_ERR_IO;
}

/* On rank 0: the newest candidate not tried yet whose manifest is sound. */
static dt_result_t open_newest_untried(struct restore *r)
{
    r->candidate.step = NO_CANDIDATE;
    while (r->next < r->steps.n) {
        int64_t step = r->steps.v[r->next++];
        dt_result_t result = open_candidate(r, step);

        if (result == DT_OK) {
            r->candidate.step = step;
            return DT_OK;
        }
        if (says_nothing(result))
            return result;
        dt_error_save(&r->why);
        if (!is_unchanged(r, step)) {
            r->candidate.step = VANISHED;
            return DT_OK;
        }
        dt_error_restore(&r->why);
        note_refusal(r, step);
        dt_dir_close(&r->from);
    }
    return r->refused ? fail_all_refused(r) : DT_OK;
}

static dt_result_t agree_on_candidate(struct restore *r)
{
    const struct dt_group *g = &r->store->group;
    dt_result_t result = dt_group_agree(g, g->rank == 0 ? open_newest_untried(r) : DT_OK);

    if (result == DT_OK)
        result = g->broadcast(g->ctx, &r->candidate, sizeof r->candidate, 0);
    if (result == DT_OK && r->candidate.step >= 0)
        result = g->broadcast(g->ctx, r->shards, g->size * sizeof *r->shards, 0);
    return result;
}

/* Opens the candidate that rank 0 has opened. */
static dt_result_t open_candidate_dir(struct restore *r)
{
    dt_result_t result = r->dir.fd < 0 ? dt_dir_open(&r->dir, r->store->path) : DT_OK;

    if (result == DT_OK && r->from.fd < 0)
        result = dt_steps_open(&r->from, &r->dir, r->candidate.step);
    return result;
}

/* Returns 0, or the errno of what this host does not see. opened: the result of
 * open_candidate_dir. */
static int look_for_candidate(const struct restore *r, dt_result_t opened)
{
    struct dt_checksum sum;
    dt_result_t result = opened == DT_OK ? dt_steps_sum(&sum, &r->from) : opened;
    int error = result == DT_OK ? 0 : dt_error_details()->error;

    if (result == DT_OK && memcmp(&sum, &r->candidate.sum, sizeof sum) == 0)
        return 0;
    return error ? error : ENOENT;
}

/* Fails if some host does not see the candidate. In LOCKED mode, dt_store_open has checked that by
 * a file that rank 0 wrote. */
static dt_result_t check_hosts_see_candidate(struct restore *r, dt_result_t opened)
{
    dt_result_t result;

    if (r->mode == LOCKED || r->store->hosts == 1)
        return DT_OK;
    result = dt_visible_report(r->store, r->store->leads_host ? look_for_candidate(r, opened) : 0,
                               "finds there");
    r->hidden = result == DT_ERR_IO;
    return dt_group_agree(&r->store->group, result);
}

static dt_result_t open_shard(struct restore *r)
{
    const struct dt_group *g = &r->store->group;

    r->wanted = (struct dt_shard_head){ r->candidate.step, g->size, g->rank, *r->buffers };
    return dt_shard_open(&r->shard, &r->from, &r->wanted, &r->shards[g->rank]);
}

/* Every rank checks that its shard fits before any rank loads one. A shard is read once, into the
 * buffers. If it turns out to be damaged, an older checkpoint fills the buffers of all ranks again,
 * or the restore fails and leaves their content unspecified. */
static dt_result_t load_candidate(struct restore *r)
{
    const struct dt_group *g = &r->store->group;
    dt_result_t opened = open_candidate_dir(r);
    dt_result_t result = check_hosts_see_candidate(r, opened);

    if (result == DT_OK)
        result = dt_group_agree(g, opened == DT_OK ? open_shard(r) : opened);
    r->touched |= result == DT_OK;
    if (result == DT_OK)
        result = dt_group_agree(g, dt_shard_load(&r->shard));
    dt_shard_close(&r->shard);
    return result;
}

/* Sets r->vanished on all ranks. If it is true, the result of loading is ignored. */
static dt_result_t check_vanished(struct restore *r)
{
    const struct dt_group *g = &r->store->group;
    int64_t vanished = g->rank == 0 && !is_unchanged(r, r->candidate.step);
    dt_result_t result = g->broadcast(g->ctx, &vanished, sizeof vanished, 0);

    r->vanished = vanished;
    return result;
}

static dt_result_t load_newest_sound(struct restore *r)
{
    for (;;) {
        dt_result_t checked, result = agree_on_candidate(r);
        dt_error_info_t why;

        r->vanished = r->candidate.step == VANISHED;
        if (result != DT_OK || r->candidate.step < 0)
            return result;
        result = load_candidate(r);
        if (result != DT_OK && says_nothing(result))
            return result;
        dt_error_save(&why);
        checked = check_vanished(r);
        dt_dir_close(&r->from);
        if (checked != DT_OK || r->vanished || result == DT_OK)
            return checked;
        dt_error_restore(&why);
        if (r->hidden)
            return result;
        note_refusal(r, r->candidate.step);
    }
}

/* On rank 0, without the lock: reads which checkpoints there are, and chooses the mode. */
static dt_result_t read_directory(struct restore *r)
{
    struct dt_store *s = r->store;
    dt_result_t result = DT_OK;

    r->mode = NO_CHECKPOINT;
    r->head = (struct dt_head){ .step = -1 };
    if (dt_store_begins_anew(s) || (access(s->path, F_OK) != 0 && errno == ENOENT))
        return DT_OK;
    if (r->dir.fd < 0)
        result = dt_dir_open(&r->dir, s->path);
    free(r->steps.v);
    r->steps = (struct dt_steps){ .n = 0 };
    if (result == DT_OK)
        result = dt_store_list(s, &r->dir, &r->steps, &r->head);
    if (result == DT_OK)
        result = dt_lineage_may_restore(&r->head, &r->dir, &s->owner, s->resume);
    if (result != DT_OK)
        return result;
    if (s->ready || dt_lineage_is_of(&r->head.line, &s->owner))
        r->mode = LOCKED;
    else if (r->head.step >= 0)
        r->mode = UNLOCKED;
    return DT_OK;
}

/* A job that has saved here takes the lock now. The directory is then read again. */
static dt_result_t lock_and_read_again(struct restore *r)
{
    const struct dt_group *g = &r->store->group;
    dt_result_t result;

    dt_dir_close(&r->dir);
    result = dt_store_open(r->store, &r->dir);
    return result == DT_OK ? dt_group_agree(g, g->rank == 0 ? read_directory(r) : DT_OK) : result;
}

static dt_result_t open_directory(struct restore *r)
{
    const struct dt_group *g = &r->store->group;
    dt_result_t result = dt_group_agree(g, g->rank == 0 ? read_directory(r) : DT_OK);

    if (result == DT_OK)
        result = g->broadcast(g->ctx, &r->mode, sizeof r->mode, 0);
    return result == DT_OK && r->mode == LOCKED ? lock_and_read_again(r) : result;
}

static dt_result_t restore_once(struct restore *r)
{
    const struct dt_group *g = &r->store->group;
    dt_result_t result = open_directory(r);

    r->candidate.step = NO_CANDIDATE;
    if (result != DT_OK || r->mode == NO_CHECKPOINT)
        return result;
    if (!r->shards)
        r->shards = calloc(g->size, sizeof *r->shards);
    if (!r->shards)
        result = dt_fail(DT_ERR_NOMEM, "out of memory for the sizes of %u shards", g->size);
    result = dt_group_agree(g, result);
    return result == DT_OK ? load_newest_sound(r) : result;
}

static void close_directory(struct restore *r)
{
    dt_dir_close(&r->from);
    dt_dir_close(&r->dir);
    free(r->steps.v);
    r->steps = (struct dt_steps){ .n = 0 };
    r->next = 0;
}

/* Returns whether the directory can be written to, or else the nearest one above it that exists. If
 * not, errno says why. */
static bool is_writable(const char *path)
{
    char dir[PATH_MAX + 1];
    char *slash;

    snprintf(dir, sizeof dir, "%s", path);
    while (faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS) != 0) {
        slash = strrchr(dir, '/');
        if (errno != ENOENT || !slash || !dir[1])
            return errno == EPERM; /* a filter of system calls forbids faccessat2 */
        slash[slash == dir] = '\0';
    }
    return true;
}

/* Warns early that this job will not be able to save: otherwise only the first save would fail,
 * perhaps hours later. */
static void warn_if_read_only(const struct restore *r)
{
    const struct dt_store *s = r->store;
    char text[DT_ERROR_TEXT];

    if (r->mode == LOCKED || s->has_found || is_writable(s->path))
        return;
    snprintf(text, sizeof text, "%.300s cannot be written to (%s): this job %s", s->path,
             strerror(errno),
             r->mode == UNLOCKED
                 ? "restores from it, and can save nothing there"
                 : "can save nothing there; --checkpoint-dir names another directory");
    s->note(s->arg, text);
}

/* The next save must continue from what was found. */
static void remember_found(const struct restore *r)
{
    if (r->store->group.rank != 0)
        return;
    warn_if_read_only(r);
    r->store->found = r->head;
    r->store->has_found = true;
}

static dt_result_t restore_with_retries(struct restore *r)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        dt_result_t result;

        r->vanished = false;
        result = restore_once(r);
        /* Buffers that an earlier attempt has overwritten must not pass for untouched ones. */
        r->vanished |= result == DT_OK && r->candidate.step < 0 && r->touched;
        if (!r->vanished) {
            if (result == DT_OK)
                remember_found(r);
            return result;
        }
        close_directory(r);
    }
    return dt_fail(DT_ERR_IO,
                   "%s: the checkpoints vanish while they are read: another job saves there and "
                   "removes older ones; restore again",
                   r->store->path);
}

/* Otherwise only the first save would fail, perhaps hours later. */
static dt_result_t check_visible(struct dt_store *s)
{
    dt_result_t result = s->ready || s->visible ? DT_OK : dt_visible_check_early(s);

    s->visible |= result == DT_OK;
    return result;
}

dt_result_t dt_store_restore(struct dt_store *s, const struct dt_buffers *buffers, int64_t *step)
{
    struct restore r = { .store = s,
                         .buffers = buffers,
                         .dir = { .fd = -1 },
                         .from = { .fd = -1 },
                         .shard = { .file = { .fd = -1 } } };
    dt_result_t result = restore_with_retries(&r);

    if (result == DT_OK && r.candidate.step < 0)
        result = check_visible(s);
    if (result == DT_OK)
        *step = r.candidate.step;
    close_directory(&r);
    free(r.shards);
    return result;
}
