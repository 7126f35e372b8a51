/* dt_store_save, in two phases: all ranks write their shards, then rank 0 commits the checkpoint.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/shard.h"
#include "runtime/checkpoint/store.h"

struct save {
    struct dt_store *store;
    struct dt_dir dir;  /* of all checkpoints */
    struct dt_dir work; /* of this one, under its temporary name */
    struct dt_name temporary;
    struct dt_shard_head head;
    struct dt_shard_info *shards; /* of all ranks */
    struct dt_checksum sum;       /* of the manifest's bytes */
};

dt_result_t dt_store_fail_step(int64_t step)
{
    return dt_fail(DT_ERR_ARG, "the step %lld cannot be saved: it is negative", (long long)step);
}

/* Names the first rank that saves the lowest step, and the first that saves the highest. */
static dt_result_t fail_steps_differ(const struct dt_group *g, int64_t step, int64_t least,
                                     int64_t largest)
{
    int64_t first[2] = { step == least ? g->rank : g->size, step == largest ? g->rank : g->size };
    dt_result_t result = g->min(g->ctx, first, 2);

    if (result != DT_OK)
        return result;
    return dt_fail(DT_ERR_MISMATCH,
                   "the ranks save different steps: rank %lld saves step %lld, rank %lld step %lld",
                   (long long)first[0], (long long)least, (long long)first[1], (long long)largest);
}

/* Compares the steps of all ranks. Ranks that save different steps would later wait for each other
 * in vain. */
static dt_result_t check_step(const struct dt_group *g, int64_t step)
{
    int64_t v[2] = { step, ~step }; /* the smallest of ~step is ~ of the largest step */
    dt_result_t result = g->min(g->ctx, v, 2);

    if (result == DT_OK && v[0] < 0) {
        if (step < 0)
            result = dt_store_fail_step(step);
        return dt_group_agree(g, result);
    }
    return result == DT_OK && v[0] != ~v[1] ? fail_steps_differ(g, step, v[0], ~v[1]) : result;
}

static dt_result_t make_work_dir(struct save *w)
{
    const char *name = w->temporary.s;
    dt_result_t result = dt_dir_remove(&w->dir, name, DT_MANIFEST_NAME);

    if (result == DT_OK && mkdirat(w->dir.fd, name, 0777) != 0)
        result = dt_fail_errno(DT_ERR_IO, errno, "%s/%s: cannot be created", w->dir.path, name);
    return result;
}

/* Makes the directory's entries durable. All hosts have written there, so one rank of each host
 * does this. Rank 0 does it later, when it has added the manifest. */
static dt_result_t sync_entries(const struct save *w)
{
    const struct dt_store *s = w->store;
    dt_result_t result = s->leads_host && s->group.rank != 0 ? dt_dir_sync(&w->work) : DT_OK;

    return dt_group_agree(&s->group, result);
}

/* Phase 1: makes every rank's shard durable. If one fails, all fail. */
static dt_result_t write_shards(struct save *w)
{
    const struct dt_group *g = &w->store->group;
    struct dt_shard_info *mine = &w->shards[g->rank];
    dt_result_t result = g->rank == 0 ? make_work_dir(w) : DT_OK;

    result = dt_group_agree(g, result);
    if (result != DT_OK)
        return result;
    result = dt_dir_open_in(&w->work, &w->dir, w->temporary.s);
    if (result == DT_OK)
        result = dt_shard_write(&w->work, &w->head, mine);
    result = dt_group_agree(g, result);
    if (result == DT_OK)
        result = sync_entries(w);
    if (result != DT_OK)
        return result;
    /* each rank's entry is zero on all others, so the sum is the whole table */
    return g->sum(g->ctx, (int64_t *)w->shards, g->size * sizeof *w->shards / sizeof(int64_t));
}

static dt_result_t write_manifest(struct save *w)
{
    struct dt_manifest m = { .step = w->head.step, .np = w->head.np, .shards = w->shards };
    struct dt_put bytes = { 0 };
    struct dt_file f = { .fd = -1 };
    dt_result_t result;

    dt_manifest_encode(&bytes, &m);
    if (bytes.failed)
        result = dt_fail(DT_ERR_NOMEM, "out of memory for a manifest");
    else
        result = dt_file_create(&f, &w->work, DT_MANIFEST_NAME);
    if (result == DT_OK) {
        w->sum = dt_checksum(bytes.data, bytes.len);
        result = dt_file_write(&f, bytes.data, bytes.len);
    }
    if (result == DT_OK)
        result = dt_file_finish(&f);
    if (result == DT_OK)
        result = dt_dir_sync(&w->work);
    dt_file_close(&f);
    dt_put_free(&bytes);
    return result;
}

/* Writes LINEAGE and makes it durable before what follows. begins: with --fresh, the job's first
 * checkpoint, until the older ones have been set aside; otherwise its step is -1. */
static dt_result_t write_lineage(const struct save *w, const struct dt_beginning *begins)
{
    const struct dt_store *s = w->store;
    const struct dt_lineage_file f = { s->lineage, *begins };
    dt_result_t result = dt_lineage_file_write(&f, &w->dir, &s->owner);

    return result == DT_OK ? dt_dir_sync(&w->dir) : result;
}

/* Renames the finished directory and makes the name durable, or undoes it. */
static dt_result_t rename_to_final(struct save *w, const char *final, bool replaces)
{
    struct dt_aside aside = { .committed = w->head.step,
                              .all = dt_store_begins_anew(w->store),
                              .replaces = replaces };
    dt_result_t result = dt_dir_rename(&w->dir, w->temporary.s, final);

    if (result != DT_OK)
        return result;
    result = dt_store_set_aside(w->store, &w->dir, &aside);
    if (result == DT_OK)
        result = dt_dir_sync(&w->dir);
    if (result == DT_OK && aside.all)
        result = write_lineage(w, &(struct dt_beginning){ .step = -1 });
    if (result != DT_OK) {
        dt_store_put_back(&w->dir, &aside);
        renameat(w->dir.fd, final, w->dir.fd, w->temporary.s);
    }
    free(aside.steps.v);
    return result;
}

/* The commit: the finished directory gets its final name. If this step was saved before, the older
 * directory is renamed first. */
static dt_result_t publish_checkpoint(struct save *w)
{
    struct dt_name final = dt_name_checkpoint(w->head.step);
    struct dt_name older = dt_name_replaced(w->head.step);
    struct stat st;
    bool replaces = fstatat(w->dir.fd, final.s, &st, 0) == 0;
    dt_result_t result = replaces ? dt_dir_rename(&w->dir, final.s, older.s) : DT_OK;

    if (result != DT_OK)
        return result;
    result = rename_to_final(w, final.s, replaces);
    if (replaces && result != DT_OK)
        renameat(w->dir.fd, older.s, w->dir.fd, final.s);
    else if (replaces && !dt_store_begins_anew(w->store))
        dt_store_drop(w->store, &w->dir, older.s, w->head.step);
    return result;
}

/* Removes older checkpoints. The new one is safe, so a failure is ignored. */
static void remove_older_checkpoints(struct save *w)
{
    struct dt_store *s = w->store;
    struct dt_steps steps = { 0 };
    size_t gone = 0;

    if (dt_steps_list(&steps, &w->dir, &s->owner) == DT_OK)
        gone = dt_steps_retire(steps.v, steps.n, w->head.step, DT_CHECKPOINTS_KEPT);
    for (size_t i = 0; i < gone; i++) {
        struct dt_name name = dt_name_checkpoint(steps.v[i]);

        dt_store_drop(s, &w->dir, name.s, steps.v[i]);
    }
    free(steps.v);
}

/* The first commit of this job. LINEAGE names the job before its first checkpoint exists. If the
 * commit fails, LINEAGE names the previous job again. */
static dt_result_t publish_first_checkpoint(struct save *w)
{
    struct dt_store *s = w->store;
    struct dt_lineage_file before = { .begins.step = -1 };
    struct dt_beginning begins = { .step = -1 };
    int64_t only; /* not needed here */
    dt_error_info_t why;
    dt_result_t result = dt_lineage_read(&before.line, &only, &w->dir);

    if (result != DT_OK)
        return result;
    s->lineage.job = dt_holder_of(&s->owner, s->host);
    if (dt_store_begins_anew(s))
        begins = (struct dt_beginning){ w->head.step, w->sum, before.line };
    result = write_lineage(w, &begins);
    if (result == DT_OK)
        result = publish_checkpoint(w);
    s->has_committed = result == DT_OK;
    if (s->has_committed)
        return DT_OK;
    dt_error_save(&why);
    dt_lineage_file_write(&before, &w->dir, &s->owner);
    return dt_error_restore(&why);
}

/* Phase 2, on rank 0 alone. */
static dt_result_t commit_checkpoint(struct save *w)
{
    struct dt_store *s = w->store;
    dt_result_t result = write_manifest(w);

    if (result == DT_OK)
        result = dt_owner_check(&s->ownership, &w->dir);
    if (result == DT_OK)
        result = s->has_committed ? publish_checkpoint(w) : publish_first_checkpoint(w);
    if (result != DT_OK)
        return result;
    s->committed(s->arg, w->head.step);
    remove_older_checkpoints(w);
    return DT_OK;
}

/* Removes a failed save's files and keeps its error. */
static void remove_failed_save(struct save *w)
{
    dt_error_info_t why;

    dt_error_save(&why);
    dt_dir_remove(&w->dir, w->temporary.s, DT_MANIFEST_NAME);
    dt_error_restore(&why);
}

static dt_result_t write_and_commit(struct save *w)
{
    const struct dt_group *g = &w->store->group;
    dt_result_t result = dt_store_open(w->store, &w->dir);

    if (result != DT_OK)
        return result;
    result = write_shards(w);
    if (result != DT_OK) {
        if (g->rank == 0)
            remove_failed_save(w);
        return result;
    }
    if (g->rank == 0)
        result = commit_checkpoint(w);
    if (result != DT_OK)
        remove_failed_save(w);
    return dt_group_agree(g, result);
}

/* Each save has a name of its own. After a failed save another host may still associate the name
 * with the removed directory (NFS). The number of saves is the same on all ranks. */
static struct dt_name temporary_name(struct dt_store *s, int64_t step)
{
    char what[DT_NAME_BYTES + 16];

    snprintf(what, sizeof what, "%s-%u", dt_name_checkpoint(step).s, ++s->saves);
    return dt_name_unfinished(&s->owner, what);
}

dt_result_t dt_store_save(struct dt_store *s, const struct dt_buffers *buffers, int64_t step)
{
    const struct dt_group *g = &s->group;
    struct save w = { .store = s, .dir = { .fd = -1 }, .work = { .fd = -1 } };
    dt_result_t result = check_step(g, step);

    if (result != DT_OK)
        return result;
    w.temporary = temporary_name(s, step);
    w.head = (struct dt_shard_head){ step, g->size, g->rank, *buffers };
    w.shards = calloc(g->size, sizeof *w.shards);
    if (!w.shards)
        result = dt_fail(DT_ERR_NOMEM, "out of memory for the sizes of %u shards", g->size);
    result = dt_group_agree(g, result);
    if (result == DT_OK)
        result = write_and_commit(&w);
    dt_dir_close(&w.work);
    dt_dir_close(&w.dir);
    free(w.shards);
    return result;
}
