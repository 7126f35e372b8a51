#include "runtime/checkpoint/lineage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/format.h"
#include "runtime/checkpoint/listing.h"

enum { WHO_MAX = 128 };

static const char options_text[] =
    "--resume continues from the newest one, --fresh starts afresh and sets "
    "them aside (without dtrun: DTRUN_RESUME=1, DTRUN_FRESH=1)";

static struct dt_checksum sum_of_manifest(const struct dt_dir *d, int64_t step)
{
    struct dt_checksum sum = { { 0 } };
    struct dt_dir from = { .fd = -1 };

    if (dt_steps_open(&from, d, step) == DT_OK)
        dt_steps_sum(&sum, &from);
    dt_dir_close(&from);
    return sum;
}

void dt_head_set(struct dt_head *h, const struct dt_dir *d, int64_t step)
{
    h->step = step;
    h->sum = step >= 0 ? sum_of_manifest(d, step) : (struct dt_checksum){ { 0 } };
}

/* Whether the first checkpoint of the job that begins anew has got its name. */
static bool beginning_is_committed(const struct dt_beginning *b, const struct dt_dir *d)
{
    struct dt_dir from = { .fd = -1 };
    struct dt_checksum sum;
    bool same = b->step >= 0 && dt_dir_open_in(&from, d, dt_name_checkpoint(b->step).s) == DT_OK &&
                dt_steps_sum(&sum, &from) == DT_OK && memcmp(&sum, &b->sum, sizeof sum) == 0;

    dt_dir_close(&from);
    return same;
}

dt_result_t dt_lineage_read(struct dt_lineage *l, int64_t *only, const struct dt_dir *d)
{
    struct dt_lineage_file f;
    dt_result_t result = dt_lineage_file_read(&f, d);
    bool begun = beginning_is_committed(&f.begins, d);

    *l = f.begins.step < 0 || begun ? f.line : f.begins.before;
    *only = begun ? f.begins.step : -1;
    return result;
}

bool dt_lineage_equal(const struct dt_lineage *a, const struct dt_lineage *b)
{
    char texts[2][DT_HOLDER_TEXT];

    dt_holder_write(texts[0], &a->job);
    dt_holder_write(texts[1], &b->job);
    return strcmp(a->id, b->id) == 0 && strcmp(texts[0], texts[1]) == 0;
}

bool dt_lineage_is_of(const struct dt_lineage *l, const struct dt_owner *me)
{
    return dt_holder_is_job(&l->job, me->job_id);
}

static void describe_job(char who[WHO_MAX], const struct dt_lineage *l)
{
    if (l->id[0])
        snprintf(who, WHO_MAX, "job %.40s (lineage %s, host %.24s)", l->job.job, l->id,
                 l->job.host);
    else
        snprintf(who, WHO_MAX, "a job that left no %s", DT_LINEAGE_NAME);
}

dt_result_t dt_lineage_may_restore(const struct dt_head *found, const struct dt_dir *d,
                                   const struct dt_owner *me, bool resume)
{
    char who[WHO_MAX];

    if (resume || found->step < 0 || dt_lineage_is_of(&found->line, me))
        return DT_OK;
    describe_job(who, &found->line);
    return dt_fail(DT_ERR_STATE, "%.140s holds checkpoints of %s: %s", d->path, who, options_text);
}

static dt_result_t fail_head_changed(const struct dt_head *now, const struct dt_head *found,
                                     const struct dt_dir *d)
{
    char who[WHO_MAX], was[WHO_MAX + 80] = "found no checkpoint there";

    if (found->step >= 0) {
        describe_job(who, &found->line);
        snprintf(was, sizeof was, "restored when step %" PRId64 " of %s was the newest there",
                 found->step, who);
    }
    describe_job(who, &now->line);
    return dt_fail(DT_ERR_STATE,
                   "%.100s: this job %s, but now it is step %" PRId64
                   " of %s: start this job again to go on from there, or with another directory",
                   d->path, was, now->step, who);
}

/* A manifest that cannot be read now, or that the restore could not read, says nothing. */
static bool may_be_same(const struct dt_head *now, const struct dt_head *found)
{
    static const struct dt_checksum unread;
    bool both_read = memcmp(&now->sum, &unread, sizeof unread) != 0 &&
                     memcmp(&found->sum, &unread, sizeof unread) != 0;

    return now->step == found->step && dt_lineage_equal(&now->line, &found->line) &&
           (!both_read || memcmp(&now->sum, &found->sum, sizeof now->sum) == 0);
}

dt_result_t dt_lineage_may_save(const struct dt_head *now, const struct dt_head *found,
                                const struct dt_dir *d, const struct dt_owner *me)
{
    char who[WHO_MAX];

    if (now->step < 0 || dt_lineage_is_of(&now->line, me))
        return DT_OK;
    describe_job(who, &now->line);
    if (!found)
        return dt_fail(
            DT_ERR_STATE,
            "%.140s holds checkpoints of %s, which this job has not restored: restore "
            "before the first save, start afresh with --fresh (DTRUN_FRESH=1), or choose "
            "another directory",
            d->path, who);
    return may_be_same(now, found) ? DT_OK : fail_head_changed(now, found, d);
}

dt_result_t dt_lineage_draw_id(struct dt_lineage *l)
{
    uint64_t id;

    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
        return dt_fail_errno(DT_ERR_IO, errno, "getrandom");
    *l = (struct dt_lineage){ .id = "" };
    snprintf(l->id, sizeof l->id, "%016" PRIx64, id);
    return DT_OK;
}
