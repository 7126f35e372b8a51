#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/shard.h"
#include "runtime/checkpoint/store.h"

enum { MANIFEST_MAX = 64 << 20 };

struct restore {
    struct dt_store *store;
    const struct dt_buffers *buffers;
    struct dt_dir dir;
    struct dt_steps steps;        /* on rank 0: the candidates, newest first */
    size_t next;                  /* of them */
    int64_t step;                 /* the one being tried; -1: there is none left */
    struct dt_shard_info *shards; /* of all ranks, as its manifest says */
    struct dt_dir from;           /* its directory */
    struct dt_shard_head wanted;  /* of this rank's shard there */
    struct dt_shard shard;
    bool refused;        /* one was tried and is no good */
    dt_error_info_t why; /* the last one */
};

static dt_result_t read_manifest(const struct dt_dir *d, struct dt_manifest *m)
{
    struct dt_file f;
    uint64_t bytes = 0;
    uint8_t *data = NULL;
    dt_result_t result = dt_file_open(&f, d, DT_MANIFEST_NAME, &bytes);

    errno = EBADMSG;
    if (result == DT_OK && bytes <= MANIFEST_MAX)
        data = malloc(bytes ? bytes : 1);
    if (data)
        result = dt_file_read(&f, data, bytes);
    if (result == DT_OK && (!data || dt_manifest_decode(data, bytes, m) != 0))
        result = errno == ENOMEM
                     ? dt_fail(DT_ERR_NOMEM, "out of memory for a manifest")
                     : dt_fail(DT_ERR_IO, "%s/%s: is damaged", d->path, DT_MANIFEST_NAME);
    free(data);
    dt_file_close(&f);
    return result;
}

/* Reads a candidate's manifest into r->shards. */
static dt_result_t take(struct restore *r, int64_t step)
{
    const struct dt_group *g = &r->store->group;
    struct dt_name name = dt_name_checkpoint(step);
    struct dt_manifest m = { 0 };
    struct dt_dir d = { .fd = -1 };
    dt_result_t result = dt_dir_open_in(&d, &r->dir, name.s);

    if (result == DT_OK)
        result = read_manifest(&d, &m);
    if (result == DT_OK && m.step != step)
        result = dt_fail(DT_ERR_IO, "%s/%s: is of step %lld", d.path, DT_MANIFEST_NAME,
                         (long long)m.step);
    if (result == DT_OK && m.np != g->size)
        result =
            dt_fail(DT_ERR_MISMATCH,
                    "%s was saved by %u ranks and cannot be restored by %u: start %u ranks, or "
                    "begin afresh (--fresh)",
                    d.path, m.np, g->size, m.np);
    if (result == DT_OK)
        memcpy(r->shards, m.shards, g->size * sizeof *r->shards);
    dt_manifest_free(&m);
    dt_dir_close(&d);
    return result;
}

/* Remembers why the candidate cannot be used. */
static void refuse(struct restore *r, int64_t step)
{
    char text[DT_ERROR_TEXT + 100];

    dt_error_keep(&r->why);
    r->refused = true;
    if (r->store->group.rank != 0)
        return;
    snprintf(text, sizeof text, "the checkpoint of step %lld cannot be used: %s", (long long)step,
             r->why.message);
    r->store->note(r->store->arg, text);
}

/* On rank 0: the newest candidate not tried yet whose manifest is sound. */
static dt_result_t choose(struct restore *r)
{
    dt_result_t result = DT_OK;

    r->step = -1;
    while (r->next < r->steps.n && r->step < 0) {
        int64_t step = r->steps.v[r->next++];

        result = take(r, step);
        if (result == DT_OK)
            r->step = step;
        else if (result == DT_ERR_IO)
            refuse(r, step);
        else
            return result;
    }
    if (r->step >= 0 || !r->refused)
        return DT_OK;
    dt_fail(DT_ERR_IO, "no checkpoint in %s can be used; the last one tried: %.300s", r->dir.path,
            r->why.message);
    dt_error_details()->rank = r->why.rank;
    dt_error_details()->error = r->why.error;
    return DT_ERR_IO;
}

static dt_result_t next_candidate(struct restore *r)
{
    const struct dt_group *g = &r->store->group;
    dt_result_t result = dt_group_agree(g, g->rank == 0 ? choose(r) : DT_OK);

    if (result == DT_OK)
        result = g->broadcast(g->ctx, &r->step, sizeof r->step, 0);
    if (result == DT_OK && r->step >= 0)
        result = g->broadcast(g->ctx, r->shards, g->size * sizeof *r->shards, 0);
    return result;
}

static dt_result_t open_mine(struct restore *r)
{
    const struct dt_group *g = &r->store->group;
    struct dt_name name = dt_name_checkpoint(r->step);
    dt_result_t result = dt_dir_open_in(&r->from, &r->dir, name.s);

    r->wanted = (struct dt_shard_head){ r->step, g->size, g->rank, *r->buffers };
    if (result == DT_OK)
        result = dt_shard_open(&r->shard, &r->from, &r->wanted, &r->shards[g->rank]);
    return result;
}

/* Every rank finds that its shard fits before any rank loads one. A shard is read once, into the
 * buffers: where it turns out to be damaged, an older checkpoint fills the buffers of all ranks
 * again, or the restore fails, which leaves their content unspecified. */
static dt_result_t try_candidate(struct restore *r)
{
    const struct dt_group *g = &r->store->group;
    dt_result_t result = dt_group_agree(g, open_mine(r));

    if (result == DT_OK)
        result = dt_group_agree(g, dt_shard_load(&r->shard));
    dt_shard_close(&r->shard);
    dt_dir_close(&r->from);
    return result;
}

static dt_result_t search(struct restore *r)
{
    for (;;) {
        dt_result_t result = next_candidate(r);

        if (result != DT_OK || r->step < 0)
            return result;
        result = try_candidate(r);
        if (result != DT_ERR_IO)
            return result;
        refuse(r, r->step);
    }
}

static dt_result_t run(struct restore *r)
{
    const struct dt_group *g = &r->store->group;
    dt_result_t result = dt_store_open(r->store, &r->dir, false);

    if (result != DT_OK || r->dir.fd < 0)
        return result;
    if (g->rank == 0)
        result = dt_store_list(&r->dir, &r->store->owner, &r->steps);
    r->shards = calloc(g->size, sizeof *r->shards);
    if (result == DT_OK && !r->shards)
        result = dt_fail(DT_ERR_NOMEM, "out of memory for the sizes of %u shards", g->size);
    result = dt_group_agree(g, result);
    return result == DT_OK ? search(r) : result;
}

dt_result_t dt_store_restore(struct dt_store *s, const struct dt_buffers *buffers, int64_t *step)
{
    struct restore r = { .store = s,
                         .buffers = buffers,
                         .dir = { .fd = -1 },
                         .step = -1,
                         .from = { .fd = -1 },
                         .shard = { .file = { .fd = -1 } } };
    dt_result_t result = run(&r);

    if (result == DT_OK)
        *step = r.step;
    dt_dir_close(&r.dir);
    free(r.steps.v);
    free(r.shards);
    return result;
}
