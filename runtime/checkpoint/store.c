#include "runtime/checkpoint/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/visible.h"

/* Calls f for each entry of a kind; the directory may be changed meanwhile. */
static dt_result_t for_each_entry(struct dt_store *s, struct dt_dir *d, enum dt_entry_kind kind,
                                  dt_result_t (*f)(struct dt_store *s, struct dt_dir *d,
                                                   const char *name, int64_t step))
{
    struct dt_listing l;
    dt_result_t result = dt_listing_read(&l, d, &s->owner, kind);

    for (size_t i = 0; i < l.n && result == DT_OK; i++)
        result = f(s, d, l.names[i].s, l.steps[i]);
    dt_listing_free(&l);
    return result;
}

void dt_store_drop(struct dt_store *s, const struct dt_dir *d, const char *name, int64_t step)
{
    struct dt_name trash = dt_name_trash(&s->owner, step, ++s->drops);

    if (dt_dir_rename(d, name, trash.s) == DT_OK)
        dt_dir_remove(d, trash.s, DT_MANIFEST_NAME);
}

/* It may belong to another user. If it cannot be removed, it stays: it does no harm. */
static dt_result_t remove_trash(struct dt_store *s, struct dt_dir *d, const char *name,
                                int64_t step)
{
    (void)s;
    (void)step;
    dt_dir_remove(d, name, DT_MANIFEST_NAME);
    return DT_OK;
}

bool dt_store_begins_anew(const struct dt_store *s)
{
    return s->fresh && !s->has_committed;
}

/* Leaves in aside->steps those that must be moved, lowest first. */
static dt_result_t choose_aside(const struct dt_store *s, const struct dt_dir *d,
                                struct dt_aside *aside)
{
    struct dt_steps *steps = &aside->steps;
    dt_result_t result = dt_steps_list(steps, d, &s->owner);
    size_t n = 0;

    steps->n = dt_steps_after(steps->v, steps->n, aside->all ? -1 : aside->committed);
    for (size_t i = 0; i < steps->n; i++)
        if (steps->v[i] != aside->committed || aside->replaces)
            steps->v[n++] = steps->v[i];
    steps->n = n;
    return result;
}

struct move {
    struct dt_name from;
    char to[2 * DT_NAME_BYTES];
};

/* place: "/" for a name in the directory, or "-" for one beside it. */
static struct move aside_move(const struct dt_aside *aside, size_t i, const char *place)
{
    int64_t step = aside->steps.v[i];
    struct move m = { .from = step == aside->committed ? dt_name_replaced(step)
                                                       : dt_name_checkpoint(step) };

    snprintf(m.to, sizeof m.to, "%s%s%s", aside->to.s, place, dt_name_checkpoint(step).s);
    return m;
}

/* Another user's checkpoint can be renamed, but not moved into another directory, since that
 * changes its entry "..". */
static dt_result_t move_step_aside(const struct dt_dir *d, const struct dt_aside *aside)
{
    struct move in = aside_move(aside, aside->moved, "/"),
                beside = aside_move(aside, aside->moved, "-");
    dt_result_t result = dt_dir_rename(d, in.from.s, in.to);

    if (result != DT_OK && errno == EACCES)
        result = dt_dir_rename(d, beside.from.s, beside.to);
    return result;
}

/* The lowest goes first: after a crash in between, the newest is still there. */
static dt_result_t move_steps_aside(const struct dt_dir *d, struct dt_aside *aside)
{
    dt_result_t result = DT_OK;

    while (aside->moved < aside->steps.n && result == DT_OK) {
        result = move_step_aside(d, aside);
        aside->moved += result == DT_OK;
    }
    if (result == DT_OK)
        unlinkat(d->fd, aside->to.s, AT_REMOVEDIR); /* if all were moved beside it */
    return result;
}

/* Makes a directory whose name no earlier one has. */
static dt_result_t make_aside_dir(struct dt_store *s, const struct dt_dir *d,
                                  struct dt_aside *aside)
{
    int made;

    do {
        aside->to = dt_name_earlier(&s->owner, ++s->asides);
        made = mkdirat(d->fd, aside->to.s, 0777);
    } while (made != 0 && errno == EEXIST);
    if (made != 0) {
        dt_result_t result =
            dt_fail_errno(DT_ERR_IO, errno, "%s/%s: cannot be created", d->path, aside->to.s);

        aside->to.s[0] = '\0';
        return result;
    }
    return DT_OK;
}

static void note_later_steps(const struct dt_store *s, const struct dt_dir *d,
                             const struct dt_aside *aside)
{
    char text[DT_ERROR_TEXT];

    snprintf(text, sizeof text,
             "step %lld was saved while there were later steps, up to %lld; these are now "
             "%.200s/%.200s*",
             (long long)aside->committed, (long long)aside->steps.v[aside->steps.n - 1], d->path,
             aside->to.s);
    s->note(s->arg, text);
}

dt_result_t dt_store_set_aside(struct dt_store *s, const struct dt_dir *d, struct dt_aside *aside)
{
    dt_result_t result = choose_aside(s, d, aside);

    if (result != DT_OK || aside->steps.n == 0)
        return result;
    result = make_aside_dir(s, d, aside);
    if (result == DT_OK)
        result = move_steps_aside(d, aside);
    if (result == DT_OK && !aside->all)
        note_later_steps(s, d, aside);
    return result;
}

void dt_store_put_back(const struct dt_dir *d, const struct dt_aside *aside)
{
    for (size_t i = aside->moved; i-- > 0;) {
        struct move in = aside_move(aside, i, "/"), beside = aside_move(aside, i, "-");

        if (renameat(d->fd, in.to, d->fd, in.from.s) != 0)
            renameat(d->fd, beside.to, d->fd, beside.from.s);
    }
    if (aside->to.s[0])
        unlinkat(d->fd, aside->to.s, AT_REMOVEDIR);
}

/* The older content may be another job's, which is never removed. Like trash, what cannot be moved
 * stays. */
static void set_replaced_aside(struct dt_store *s, const struct dt_dir *d, int64_t step)
{
    struct dt_aside aside = { .committed = step, .replaces = true, .steps = { &step, 1 } };

    if (make_aside_dir(s, d, &aside) == DT_OK && move_steps_aside(d, &aside) != DT_OK)
        dt_store_put_back(d, &aside);
}

/* A step was being saved again when the job ended. If the new content did not get the name, the
 * older one gets it back. Otherwise the older one is dropped if LINEAGE names this job and the job
 * does not begin anew; else it may be another job's, and is set aside. */
static dt_result_t finish_replacing(struct dt_store *s, struct dt_dir *d, const char *name,
                                    int64_t step)
{
    struct dt_name final = dt_name_checkpoint(step);
    struct stat st;

    if (fstatat(d->fd, final.s, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return dt_dir_rename(d, name, final.s);
    if (dt_lineage_is_of(&s->lineage, &s->owner))
        dt_store_drop(s, d, name, step);
    else
        set_replaced_aside(s, d, step);
    return DT_OK;
}

/* A job that had begun anew ended before it had set aside what was there before. LINEAGE may go on
 * saying so: that is true until the next job that saves here writes it. */
static dt_result_t finish_beginning_anew(struct dt_store *s, const struct dt_dir *d)
{
    struct dt_aside aside = { .all = true };
    struct dt_lineage line;
    dt_result_t result = dt_lineage_read(&line, &aside.committed, d);

    if (result != DT_OK || aside.committed < 0)
        return result;
    aside.replaces = faccessat(d->fd, dt_name_replaced(aside.committed).s, F_OK, 0) == 0;
    result = dt_store_set_aside(s, d, &aside);
    if (result != DT_OK)
        dt_store_put_back(d, &aside);
    free(aside.steps.v);
    return result;
}

static dt_result_t tidy_directory(struct dt_store *s, struct dt_dir *d)
{
    dt_result_t result = finish_beginning_anew(s, d);

    if (result == DT_OK)
        result = for_each_entry(s, d, DT_ENTRY_REPLACED, finish_replacing);
    if (result == DT_OK)
        result = for_each_entry(s, d, DT_ENTRY_TRASH, remove_trash);
    if (result == DT_OK)
        result = for_each_entry(s, d, DT_ENTRY_LEFT_BEHIND, remove_trash);
    if (result == DT_OK)
        result = dt_dir_sync(d);
    return result;
}

dt_result_t dt_store_list(const struct dt_store *s, const struct dt_dir *d, struct dt_steps *steps,
                          struct dt_head *head)
{
    int64_t only;
    dt_result_t result = dt_lineage_read(&head->line, &only, d);

    if (result == DT_OK)
        result = only >= 0 ? dt_steps_list_one(steps, only)
                           : dt_steps_list_restorable(steps, d, &s->owner);
    if (result == DT_OK)
        dt_head_set(head, d, steps->n ? steps->v[0] : -1);
    return result;
}

/* Decides which lineage this job's checkpoints are of, if it may save there. */
static dt_result_t choose_lineage(struct dt_store *s, const struct dt_dir *d)
{
    struct dt_steps steps = { 0 };
    struct dt_head now;
    dt_result_t result = dt_store_list(s, d, &steps, &now);

    free(steps.v);
    if (result == DT_OK && !s->fresh)
        result = dt_lineage_may_save(&now, s->has_found ? &s->found : NULL, d, &s->owner);
    if (result != DT_OK)
        return result;
    if (s->fresh || now.step < 0 || !now.line.id[0])
        return dt_lineage_draw_id(&s->lineage);
    s->lineage = now.line;
    return DT_OK;
}

static dt_result_t open_on_rank_0(struct dt_store *s, struct dt_dir *d)
{
    dt_result_t result = dt_dir_make(s->path);

    if (result == DT_OK)
        result = dt_dir_open(d, s->path);
    if (result == DT_OK)
        result = dt_owner_take(&s->ownership, d, &s->owner, s->host);
    if (result == DT_OK && !s->ready)
        result = choose_lineage(s, d);
    if (result == DT_OK && !s->ready)
        result = tidy_directory(s, d);
    return result;
}

void dt_store_release(struct dt_store *s)
{
    dt_owner_release(&s->ownership);
}

/* On all ranks, once rank 0 has opened the directory. */
static dt_result_t open_on_all_ranks(struct dt_store *s, struct dt_dir *d)
{
    dt_result_t result = s->ready ? DT_OK : dt_visible_check(s, d);

    if (result == DT_OK) {
        s->ready = true;
        if (s->group.rank != 0)
            result = dt_dir_open(d, s->path);
    }
    return dt_group_agree(&s->group, result);
}

dt_result_t dt_store_open(struct dt_store *s, struct dt_dir *d)
{
    const struct dt_group *g = &s->group;
    dt_result_t result = DT_OK;

    d->fd = -1;
    if (g->rank == 0)
        result = open_on_rank_0(s, d);
    result = dt_group_agree(g, result);
    if (result == DT_OK)
        result = open_on_all_ranks(s, d);
    if (result != DT_OK)
        dt_dir_close(d);
    if (!s->ready) /* there is nothing that this job may use */
        dt_owner_give_back(&s->ownership);
    return result;
}
