#include "tests/unit/checkpoint/checkpoint_ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

static struct rank *rank_of(void *ctx)
{
    return ctx;
}

/* Shows the words of all ranks to combine, which writes its own result. */
static dt_result_t meet(struct rank *r, int64_t *v, size_t n, int64_t (*combine)(int64_t, int64_t))
{
    struct job *j = r->job;
    int64_t *out = malloc(n * sizeof *out);

    j->words[r->store.group.rank] = v;
    pthread_barrier_wait(&j->barrier);
    for (size_t i = 0; i < n; i++) {
        out[i] = j->words[0][i];
        for (uint32_t k = 1; k < j->size; k++)
            out[i] = combine(out[i], j->words[k][i]);
    }
    pthread_barrier_wait(&j->barrier);
    memcpy(v, out, n * sizeof *v);
    free(out);
    return DT_OK;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t added(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static dt_result_t group_min(void *ctx, int64_t *v, size_t n)
{
    return meet(rank_of(ctx), v, n, smaller);
}

static dt_result_t group_sum(void *ctx, int64_t *v, size_t n)
{
    return meet(rank_of(ctx), v, n, added);
}

static dt_result_t group_broadcast(void *ctx, void *buf, size_t bytes, uint32_t root)
{
    struct rank *r = rank_of(ctx);
    struct job *j = r->job;

    j->words[r->store.group.rank] = buf;
    pthread_barrier_wait(&j->barrier);
    if (r->store.group.rank != root)
        memcpy(buf, j->words[root], bytes);
    pthread_barrier_wait(&j->barrier);
    return DT_OK;
}

static void committed(void *arg, int64_t step)
{
    struct job *j = arg;

    j->committed = step;
}

static void note(void *arg, const char *text)
{
    struct job *j = arg;

    j->notes++;
    snprintf(j->note, sizeof j->note, "%s", text);
}

void job_fill(struct job *j, int64_t fill)
{
    for (uint32_t k = 0; k < j->size; k++) {
        for (int i = 0; i < WORDS; i++)
            j->ranks[k].weights[i] = fill * 1000003 + k * 1009 + i;
        j->ranks[k].loss = (double)fill / (k + 1);
    }
}

bool job_holds(const struct job *j, int64_t fill)
{
    for (uint32_t k = 0; k < j->size; k++) {
        for (int i = 0; i < WORDS; i++)
            if (j->ranks[k].weights[i] != fill * 1000003 + k * 1009 + i)
                return false;
        if (j->ranks[k].loss != (double)fill / (k + 1))
            return false;
    }
    return true;
}

void job_init(struct job *j, uint32_t size, const char *dir, uint32_t generation, int64_t fill)
{
    *j = (struct job){ .size = size, .committed = -1 };
    pthread_barrier_init(&j->barrier, NULL, size);
    for (uint32_t k = 0; k < size; k++) {
        struct rank *r = &j->ranks[k];

        r->job = j;
        r->store = (struct dt_store){
            .group = { k, size, r, group_min, group_sum, group_broadcast },
            .path = dir,
            .host = k % 2 ? "odd" : "even",
            .leads_host = k < 2,
            .hosts = size < 2 ? 1 : 2,
            .chosen = true,
            .owner = { "job-01234567", generation },
            .arg = j,
            .committed = committed,
            .note = note,
        };
        dt_buffers_add(&r->buffers, "weights", r->weights, sizeof r->weights);
        dt_buffers_add(&r->buffers, "loss", &r->loss, sizeof r->loss);
    }
    job_fill(j, fill);
}

void job_free(struct job *j)
{
    dt_store_release(&j->ranks[0].store);
    for (uint32_t k = 0; k < j->size; k++)
        dt_buffers_free(&j->ranks[k].buffers);
    pthread_barrier_destroy(&j->barrier);
}

static void *save_one(void *arg)
{
    struct rank *r = arg;

    r->result = dt_store_save(&r->store, &r->buffers, r->step);
    snprintf(r->text, sizeof r->text, "%s", dt_last_error());
    return NULL;
}

static void *restore_one(void *arg)
{
    struct rank *r = arg;

    r->result = dt_store_restore(&r->store, &r->buffers, &r->step);
    snprintf(r->text, sizeof r->text, "%s", dt_last_error());
    return NULL;
}

static dt_result_t all(struct job *j, void *(*one)(void *))
{
    if (j->size == 1) { /* needs no thread, which costs much under ThreadSanitizer */
        one(&j->ranks[0]);
        return j->ranks[0].result;
    }
    for (uint32_t k = 0; k < j->size; k++)
        assert_int_equal(pthread_create(&j->ranks[k].thread, NULL, one, &j->ranks[k]), 0);
    for (uint32_t k = 0; k < j->size; k++)
        pthread_join(j->ranks[k].thread, NULL);
    for (uint32_t k = 1; k < j->size; k++) {
        if (j->ranks[k].result != j->ranks[0].result)
            fail_msg("rank %u returned %d (%s), rank 0 %d (%s)", k, j->ranks[k].result,
                     j->ranks[k].text, j->ranks[0].result, j->ranks[0].text);
        if (j->ranks[0].result != DT_OK)
            assert_string_equal(j->ranks[k].text, j->ranks[0].text);
    }
    return j->ranks[0].result;
}

dt_result_t job_save_steps(struct job *j, const int64_t *steps)
{
    for (uint32_t k = 0; k < j->size; k++)
        j->ranks[k].step = steps[k];
    return all(j, save_one);
}

dt_result_t job_save(struct job *j, int64_t step)
{
    return job_save_steps(j, (const int64_t[RANKS_MAX]){ step, step, step, step });
}

dt_result_t job_restore(struct job *j, int64_t *step)
{
    dt_result_t result = all(j, restore_one);

    for (uint32_t k = 1; k < j->size; k++)
        assert_int_equal(j->ranks[k].step, j->ranks[0].step);
    *step = j->ranks[0].step;
    return result;
}

static dt_result_t move_back(void *arg, const char *name)
{
    const struct dt_dir *d = arg;
    char command[PATH_MAX + 400];

    if (strncmp(name, "earlier-", 8) != 0)
        return DT_OK;
    snprintf(command, sizeof command, "cd '%s' && mv %s/* . && rmdir %s", d->path, name, name);
    assert_int_equal(system(command), 0);
    return DT_OK;
}

void job_undo_setting_aside(const char *dir, int64_t step, const struct dt_lineage *before)
{
    const struct dt_owner me = { "job-01234567", 0 };
    struct dt_dir d = { .fd = -1 }, from = { .fd = -1 };
    struct dt_lineage_file f;

    assert_int_equal(dt_dir_open(&d, dir), DT_OK);
    assert_int_equal(dt_dir_each(&d, move_back, &d), DT_OK);
    assert_int_equal(dt_lineage_file_read(&f, &d), DT_OK);
    f.begins = (struct dt_beginning){ .step = step, .before = *before };
    assert_int_equal(dt_steps_open(&from, &d, step), DT_OK);
    assert_int_equal(dt_steps_sum(&f.begins.sum, &from), DT_OK);
    assert_int_equal(dt_lineage_file_write(&f, &d, &me), DT_OK);
    dt_dir_close(&from);
    dt_dir_close(&d);
}
