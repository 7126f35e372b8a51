#include "runtime/checkpoint/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"

enum { HOSTS_NAMED = 8 };

/* Entries of the directory, by kind. */
struct listing {
    const struct dt_owner *owner;
    enum dt_entry_kind kind;
    struct dt_name *names;
    int64_t *steps;
    size_t n;
};

static dt_result_t list_one(void *arg, const char *name)
{
    struct listing *l = arg;
    struct dt_entry e = dt_entry_of(name, l->owner);
    struct dt_name *names;
    int64_t *steps;

    if (e.kind != l->kind || strlen(name) >= sizeof l->names->s)
        return DT_OK;
    names = realloc(l->names, (l->n + 1) * sizeof *names);
    if (names)
        l->names = names;
    steps = realloc(l->steps, (l->n + 1) * sizeof *steps);
    if (steps)
        l->steps = steps;
    if (!names || !steps)
        return dt_fail(DT_ERR_NOMEM, "out of memory for the list of checkpoints");
    snprintf(names[l->n].s, sizeof names->s, "%s", name);
    steps[l->n++] = e.step;
    return DT_OK;
}

static void listing_free(struct listing *l)
{
    free(l->names);
    free(l->steps);
}

/* Calls f for each entry of a kind; the directory may be changed meanwhile. */
static dt_result_t for_each(struct dt_store *s, struct dt_dir *d, enum dt_entry_kind kind,
                            dt_result_t (*f)(struct dt_store *s, struct dt_dir *d, const char *name,
                                             int64_t step))
{
    struct listing l = { .owner = &s->owner, .kind = kind };
    dt_result_t result = dt_dir_each(d, list_one, &l);

    for (size_t i = 0; i < l.n && result == DT_OK; i++)
        result = f(s, d, l.names[i].s, l.steps[i]);
    listing_free(&l);
    return result;
}

dt_result_t dt_store_list(const struct dt_dir *d, const struct dt_owner *owner,
                          struct dt_steps *steps)
{
    struct listing l = { .owner = owner, .kind = DT_ENTRY_CHECKPOINT };
    dt_result_t result = dt_dir_each(d, list_one, &l);

    dt_steps_sort(l.steps, l.n);
    *steps = (struct dt_steps){ .v = l.steps, .n = l.n };
    l.steps = NULL;
    listing_free(&l);
    return result;
}

void dt_store_drop(struct dt_store *s, const struct dt_dir *d, const char *name, int64_t step)
{
    struct dt_name trash = dt_name_trash(&s->owner, step, ++s->drops);

    if (dt_dir_rename(d, name, trash.s) == DT_OK)
        dt_dir_remove(d, trash.s, DT_MANIFEST_NAME);
}

/* It may be another user's, and is in nobody's way: what cannot be removed stays. */
static dt_result_t remove_trash(struct dt_store *s, struct dt_dir *d, const char *name,
                                int64_t step)
{
    (void)s;
    (void)step;
    dt_dir_remove(d, name, DT_MANIFEST_NAME);
    return DT_OK;
}

/* A step was being saved again when all ended: between its two renames only the older one exists.
 */
static dt_result_t settle_replaced(struct dt_store *s, struct dt_dir *d, const char *name,
                                   int64_t step)
{
    struct dt_name final = dt_name_checkpoint(step);
    struct stat st;

    if (fstatat(d->fd, final.s, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return dt_dir_rename(d, name, final.s);
    dt_store_drop(s, d, name, step);
    return DT_OK;
}

static dt_result_t set_aside(struct dt_store *s, struct dt_dir *d, const char *name, int64_t step)
{
    struct dt_name earlier = dt_name_earlier(&s->owner);
    char to[2 * DT_NAME_BYTES];

    (void)step;
    if (mkdirat(d->fd, earlier.s, 0777) != 0 && errno != EEXIST)
        return dt_fail_errno(DT_ERR_IO, errno, "%s/%s: cannot be made", d->path, earlier.s);
    snprintf(to, sizeof to, "%s/%s", earlier.s, name);
    return dt_dir_rename(d, name, to);
}

static void moved_name(const struct dt_aside *aside, size_t i, char moved[2 * DT_NAME_BYTES])
{
    snprintf(moved, (size_t)2 * DT_NAME_BYTES, "%s/%s", aside->to.s,
             dt_name_checkpoint(aside->steps.v[i]).s);
}

/* Where a crash comes in between, the newest is still there: the lowest goes first. */
static dt_result_t move_aside(const struct dt_dir *d, struct dt_aside *aside, size_t n)
{
    dt_result_t result = DT_OK;

    while (aside->steps.n < n && result == DT_OK) {
        char moved[2 * DT_NAME_BYTES];

        moved_name(aside, aside->steps.n, moved);
        result = dt_dir_rename(d, dt_name_checkpoint(aside->steps.v[aside->steps.n]).s, moved);
        aside->steps.n += result == DT_OK;
    }
    return result;
}

/* Makes a directory that no earlier one of this generation is in the way of. */
static dt_result_t make_aside(struct dt_store *s, const struct dt_dir *d, struct dt_aside *aside)
{
    int made;

    do {
        aside->to = dt_name_earlier_course(&s->owner, ++s->courses);
        made = mkdirat(d->fd, aside->to.s, 0777);
    } while (made != 0 && errno == EEXIST);
    if (made != 0)
        return dt_fail_errno(DT_ERR_IO, errno, "%s/%s: cannot be made", d->path, aside->to.s);
    return DT_OK;
}

dt_result_t dt_store_set_later_aside(struct dt_store *s, const struct dt_dir *d, int64_t step,
                                     struct dt_aside *aside)
{
    dt_result_t result = dt_store_list(d, &s->owner, &aside->steps);
    size_t n = dt_steps_after(aside->steps.v, aside->steps.n, step);
    char text[DT_ERROR_TEXT];

    aside->steps.n = 0;
    if (result != DT_OK || n == 0)
        return result;
    result = make_aside(s, d, aside);
    if (result == DT_OK)
        result = move_aside(d, aside, n);
    if (result != DT_OK)
        return result;
    snprintf(text, sizeof text,
             "step %lld is saved after step %lld: the later checkpoints in %.200s are set aside in "
             "%.200s there",
             (long long)step, (long long)aside->steps.v[n - 1], d->path, aside->to.s);
    s->note(s->arg, text);
    return DT_OK;
}

void dt_store_put_back(const struct dt_dir *d, const struct dt_aside *aside)
{
    for (size_t i = aside->steps.n; i-- > 0;) {
        char moved[2 * DT_NAME_BYTES];

        moved_name(aside, i, moved);
        renameat(d->fd, moved, d->fd, dt_name_checkpoint(aside->steps.v[i]).s);
    }
    if (aside->to.s[0])
        unlinkat(d->fd, aside->to.s, AT_REMOVEDIR);
}

static dt_result_t tidy(struct dt_store *s, struct dt_dir *d)
{
    dt_result_t result = for_each(s, d, DT_ENTRY_REPLACED, settle_replaced);

    if (result == DT_OK)
        result = for_each(s, d, DT_ENTRY_TRASH, remove_trash);
    if (result == DT_OK)
        result = for_each(s, d, DT_ENTRY_LEFT_BEHIND, remove_trash);
    if (result == DT_OK && s->fresh)
        result = for_each(s, d, DT_ENTRY_CHECKPOINT, set_aside);
    if (result == DT_OK)
        result = dt_dir_sync(d);
    return result;
}

/* Makes an empty file whose name nobody can have guessed. */
static dt_result_t put_token(const struct dt_store *s, const struct dt_dir *d,
                             struct dt_name *token)
{
    uint64_t nonce = 0;
    char what[32];
    int fd;

    if (getrandom(&nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
        return dt_fail_errno(DT_ERR_IO, errno, "getrandom");
    snprintf(what, sizeof what, "token-%016llx", (unsigned long long)nonce);
    *token = dt_name_unfinished(&s->owner, what);
    fd = openat(d->fd, token->s, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return dt_fail_errno(DT_ERR_IO, errno, "%s/%s: cannot be made", d->path, token->s);
    close(fd);
    return DT_OK;
}

static bool sees_token(const struct dt_store *s, const struct dt_name *token)
{
    struct dt_dir d = { .fd = -1 };
    struct stat st;
    bool sees;

    if (dt_dir_open(&d, s->path) != DT_OK)
        return false;
    sees = fstatat(d.fd, token->s, &st, 0) == 0;
    dt_dir_close(&d);
    return sees;
}

/* Names the hosts that do not see rank 0's token. blind: this rank's host does not. */
static dt_result_t name_blind_hosts(const struct dt_store *s, bool blind)
{
    const struct dt_group *g = &s->group;
    char hosts[DT_ERROR_TEXT / 2] = "", host[64];
    int64_t last = -1, first = -1;

    for (int i = 0; i < HOSTS_NAMED; i++) {
        int64_t next = blind && (int64_t)g->rank > last ? (int64_t)g->rank : INT64_MAX;
        dt_result_t result = g->min(g->ctx, &next, 1);

        if (result == DT_OK && next == INT64_MAX)
            break;
        snprintf(host, sizeof host, "%s", s->host);
        if (result == DT_OK)
            result = g->broadcast(g->ctx, host, sizeof host, (uint32_t)next);
        if (result != DT_OK)
            return result;
        host[sizeof host - 1] = '\0';
        snprintf(hosts + strlen(hosts), sizeof hosts - strlen(hosts), "%s%s", i ? ", " : "", host);
        last = next;
        first = first < 0 ? next : first;
    }
    if (!hosts[0])
        return DT_OK;
    dt_fail(DT_ERR_IO,
            "the checkpoint directory %s is not shared: what rank 0 writes there cannot be seen on "
            "%s; choose one that all hosts have mounted (--checkpoint-dir)",
            s->path, hosts);
    dt_error_details()->rank = (int)first;
    return DT_ERR_IO;
}

/* Whether all hosts see the directory that rank 0 sees. */
static dt_result_t check_shared(const struct dt_store *s, const struct dt_dir *d)
{
    const struct dt_group *g = &s->group;
    struct dt_name token = { "" };
    dt_result_t result = DT_OK;

    if (g->size == 1)
        return DT_OK;
    if (g->rank == 0)
        result = put_token(s, d, &token);
    result = dt_group_agree(g, result);
    if (result == DT_OK)
        result = g->broadcast(g->ctx, token.s, sizeof token.s, 0);
    if (result != DT_OK)
        return result;
    token.s[sizeof token.s - 1] = '\0';
    result = name_blind_hosts(s, s->speaks && !sees_token(s, &token));
    if (g->rank == 0)
        unlinkat(d->fd, token.s, 0);
    return result;
}

static dt_result_t open_first(struct dt_store *s, struct dt_dir *d, bool create)
{
    dt_result_t result = create ? dt_dir_make(s->path) : DT_OK;

    if (result == DT_OK && (create || access(s->path, F_OK) == 0 || errno != ENOENT))
        result = dt_dir_open(d, s->path);
    if (result == DT_OK && d->fd >= 0)
        result = dt_owner_take(&s->ownership, d, &s->owner, s->host);
    if (result == DT_OK && d->fd >= 0 && !s->ready)
        result = tidy(s, d);
    return result;
}

void dt_store_release(struct dt_store *s)
{
    dt_owner_release(&s->ownership);
}

/* On all ranks, once rank 0 has opened the directory: the same for the others. */
static dt_result_t open_others(struct dt_store *s, struct dt_dir *d)
{
    const struct dt_group *g = &s->group;
    int64_t there = d->fd >= 0;
    dt_result_t result = g->broadcast(g->ctx, &there, sizeof there, 0);

    if (result != DT_OK || !there)
        return result;
    if (!s->ready)
        result = check_shared(s, d);
    if (result == DT_OK) {
        s->ready = true;
        if (g->rank != 0)
            result = dt_dir_open(d, s->path);
    }
    return dt_group_agree(g, result);
}

dt_result_t dt_store_open(struct dt_store *s, struct dt_dir *d, bool create)
{
    const struct dt_group *g = &s->group;
    dt_result_t result = DT_OK;

    d->fd = -1;
    if (g->rank == 0)
        result = open_first(s, d, create);
    result = dt_group_agree(g, result);
    if (result == DT_OK)
        result = open_others(s, d);
    if (result != DT_OK)
        dt_dir_close(d);
    if (!s->ready) /* there is nothing that this job may use */
        dt_owner_release(&s->ownership);
    return result;
}
