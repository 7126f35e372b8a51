#include "runtime/checkpoint/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/error.h"

static dt_result_t add_entry(struct dt_listing *l, const char *name, int64_t step)
{
    struct dt_name *names = realloc(l->names, (l->n + 1) * sizeof *names);
    int64_t *steps;

    if (names)
        l->names = names;
    steps = realloc(l->steps, (l->n + 1) * sizeof *steps);
    if (steps)
        l->steps = steps;
    if (!names || !steps)
        return dt_fail(DT_ERR_NOMEM, "out of memory for the list of checkpoints");
    snprintf(names[l->n].s, sizeof names->s, "%s", name);
    steps[l->n++] = step;
    return DT_OK;
}

static dt_result_t add_if_of_kind(void *arg, const char *name)
{
    struct dt_listing *l = arg;
    struct dt_entry e = dt_entry_of(name, l->owner);

    return e.kind == l->kind && strlen(name) < sizeof l->names->s ? add_entry(l, name, e.step)
                                                                  : DT_OK;
}

dt_result_t dt_listing_read(struct dt_listing *l, const struct dt_dir *d,
                            const struct dt_owner *owner, enum dt_entry_kind kind)
{
    *l = (struct dt_listing){ .owner = owner, .kind = kind };
    return dt_dir_each(d, add_if_of_kind, l);
}

void dt_listing_free(struct dt_listing *l)
{
    free(l->names);
    free(l->steps);
}

/* Transfers ownership of the steps. */
static struct dt_steps take_sorted_steps(struct dt_listing *l)
{
    struct dt_steps steps = { .v = l->steps, .n = l->n };

    dt_steps_sort(steps.v, steps.n);
    l->steps = NULL;
    dt_listing_free(l);
    return steps;
}

dt_result_t dt_steps_list(struct dt_steps *steps, const struct dt_dir *d,
                          const struct dt_owner *owner)
{
    struct dt_listing l;
    dt_result_t result = dt_listing_read(&l, d, owner, DT_ENTRY_CHECKPOINT);

    *steps = take_sorted_steps(&l);
    return result;
}

static bool has_step(const struct dt_listing *l, int64_t step)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->steps[i] == step)
            return true;
    return false;
}

dt_result_t dt_steps_list_restorable(struct dt_steps *steps, const struct dt_dir *d,
                                     const struct dt_owner *owner)
{
    struct dt_listing l, replaced = { .n = 0 };
    dt_result_t result = dt_listing_read(&l, d, owner, DT_ENTRY_CHECKPOINT);

    if (result == DT_OK)
        result = dt_listing_read(&replaced, d, owner, DT_ENTRY_REPLACED);
    for (size_t i = 0; i < replaced.n && result == DT_OK; i++)
        if (!has_step(&l, replaced.steps[i]))
            result = add_entry(&l, replaced.names[i].s, replaced.steps[i]);
    dt_listing_free(&replaced);
    *steps = take_sorted_steps(&l);
    return result;
}

dt_result_t dt_steps_list_one(struct dt_steps *steps, int64_t step)
{
    struct dt_listing l = { .n = 0 };
    dt_result_t result = add_entry(&l, dt_name_checkpoint(step).s, step);

    *steps = take_sorted_steps(&l);
    return result;
}

dt_result_t dt_steps_open(struct dt_dir *from, const struct dt_dir *d, int64_t step)
{
    struct dt_name replaced = dt_name_replaced(step);
    dt_result_t result = dt_dir_open_in(from, d, dt_name_checkpoint(step).s);

    if (result == DT_OK || errno != ENOENT || faccessat(d->fd, replaced.s, F_OK, 0) != 0)
        return result;
    return dt_dir_open_in(from, d, replaced.s);
}

dt_result_t dt_steps_sum(struct dt_checksum *sum, const struct dt_dir *from)
{
    struct dt_file f = { .fd = -1 };
    uint64_t bytes;
    dt_result_t result = dt_file_open(&f, from, DT_MANIFEST_NAME, &bytes);

    if (result == DT_OK)
        result = dt_file_read(&f, NULL, bytes);
    if (result == DT_OK)
        *sum = dt_hasher_sum(f.hasher);
    dt_file_close(&f);
    return result;
}
