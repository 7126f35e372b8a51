#include "cmd/perf/measure.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/perf/choice.h"
#include "cmd/perf/elements.h"
#include "cmd/perf/memory.h"

enum {
    ALIGNMENT = 4096,
    SLACK = 4096 + 64, /* for -u, and for bytes beyond the end */
    LEAST_ITERATIONS = 20,
    MOST_ITERATIONS = 100000,
    MOST_TIMED = 10000, /* number of calls that are timed for the percentiles */
};

static const double wanted_us = 1e5; /* duration of a measurement if the number of calls is free */

int dt_perf_env_number(const char *name, int otherwise)
{
    const char *text = getenv(name);

    return text ? atoi(text) : otherwise;
}

double dt_perf_now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

bool dt_perf_buffers_make(struct dt_perf_buffers *b, const struct dt_perf_args *a)
{
    size_t room = (a->max_bytes + SLACK + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

    for (int i = 0; i < 2; i++) {
        /* This touches every page, so that no page fault happens while a call is timed. */
        b->memory[i] = dt_perf_memory_new(room);
        if (!b->memory[i])
            return false;
    }
    if (dt_perf_memory_is_gpu() && !(b->aside = malloc(room)))
        return false;
    b->in = b->memory[0] + a->offset;
    b->out = b->memory[1] + a->offset;
    return true;
}

void dt_perf_buffers_free(struct dt_perf_buffers *b)
{
    dt_perf_memory_free(b->memory[0]);
    dt_perf_memory_free(b->memory[1]);
    free(b->aside);
}

static dt_result_t agree(double *value, dt_op_t op)
{
    return dt_all_reduce(DT_WORLD, DT_IN_PLACE, value, 1, DT_F64, op);
}

/* Combines the figures of all ranks into one. */
static dt_result_t combine(const struct dt_perf_args *a, double *value)
{
    switch (a->average) {
    case DT_PERF_RANK0:
        return dt_broadcast(DT_WORLD, value, 1, DT_F64, 0);
    case DT_PERF_MIN:
        return agree(value, DT_MIN);
    case DT_PERF_MAX:
        return agree(value, DT_MAX);
    default:
        return agree(value, DT_AVG);
    }
}

/* ---- the buffers ---- */

static size_t blocks(bool many)
{
    return many ? (size_t)dt_size() : 1;
}

size_t dt_perf_count(const struct dt_perf_op *op, const struct dt_perf_case *c, size_t bytes)
{
    return op->empty ? 0 : bytes / dt_dtype_size(c->dtype) / blocks(op->many_in || op->many_out);
}

size_t dt_perf_bytes(const struct dt_perf_op *op, const struct dt_perf_case *c, size_t count)
{
    return count * dt_dtype_size(c->dtype) * blocks(op->many_in || op->many_out);
}

struct run {
    const struct dt_perf_op *op;
    struct dt_perf_case c;
    const struct dt_perf_args *a;
    char *in;
    char *out;
    char *aside;
    size_t count;
    size_t *counts; /* storage of c.gives and c.takes; NULL: all blocks have count elements */
};

/* Computes what this rank sends to each rank, then what it receives from each. */
static bool make_counts(struct run *r)
{
    int n = dt_size(), me = dt_rank();

    if (!r->op->block_count)
        return true;
    r->counts = malloc(2 * sizeof *r->counts * (size_t)n);
    if (!r->counts)
        return false;
    for (int i = 0; i < n; i++) {
        r->counts[i] = dt_perf_block_count(r->op, me, i, n, r->count);
        r->counts[n + i] = dt_perf_block_count(r->op, i, me, n, r->count);
    }
    r->c.gives = r->counts;
    r->c.takes = r->counts + n;
    return true;
}

/* Returns where this rank's block begins in a buffer with blocks of all ranks, in bytes. */
static size_t before_own(const struct run *r)
{
    size_t elements = 0;

    for (int i = 0; i < dt_rank(); i++)
        elements += dt_perf_block_count(r->op, i, i, dt_size(), r->count);
    return elements * dt_dtype_size(r->c.dtype);
}

static dt_result_t begin_run(struct run *r, const struct dt_perf_op *op,
                             const struct dt_perf_case *c, const struct dt_perf_buffers *b,
                             size_t count)
{
    *r = (struct run){
        .op = op, .c = *c, .in = b->in, .out = b->out, .aside = b->aside, .count = count
    };
    return make_counts(r) ? DT_OK : DT_ERR_NOMEM;
}

static void end_run(struct run *r)
{
    free(r->counts);
}

static void put_in_place(struct run *r)
{
    char *whole = r->out;

    r->in = whole + (r->op->place == DT_PERF_OWN_IN ? before_own(r) : 0);
    r->out = whole + (r->op->place == DT_PERF_OWN_OUT ? before_own(r) : 0);
}

static dt_result_t call(const struct run *r)
{
    return r->op->run(&r->c, r->in, r->out, r->count);
}

/* ---- measuring ---- */

static dt_result_t repeat(const struct run *r, int times, double *us)
{
    dt_result_t result = dt_barrier(DT_WORLD);
    double start = dt_perf_now_us();

    for (int i = 0; i < times && result == DT_OK; i++)
        result = call(r);
    *us = (dt_perf_now_us() - start) / (times ? times : 1);
    return result;
}

/* Every rank must choose the same number. */
static dt_result_t iterations(const struct run *r, int *n)
{
    double us, wanted;
    dt_result_t result = repeat(r, r->a->warmup, &us);

    *n = r->a->iterations;
    if (*n || result != DT_OK)
        return result;
    result = repeat(r, LEAST_ITERATIONS / 4, &us);
    if (result == DT_OK)
        result = agree(&us, DT_MAX);
    wanted = wanted_us / (us > 0.01 ? us : 0.01);
    *n = wanted < LEAST_ITERATIONS  ? LEAST_ITERATIONS
         : wanted > MOST_ITERATIONS ? MOST_ITERATIONS
                                    : (int)wanted;
    return result;
}

static dt_result_t percentiles(const struct run *r, int times, struct dt_perf_figures *f)
{
    int n = times < MOST_TIMED ? times : MOST_TIMED;
    double *us = malloc(sizeof *us * (size_t)n);
    dt_result_t result = us ? dt_barrier(DT_WORLD) : DT_ERR_NOMEM;

    for (int i = 0; i < n && result == DT_OK; i++) {
        double start = dt_perf_now_us();

        result = call(r);
        us[i] = dt_perf_now_us() - start;
    }
    if (result == DT_OK) {
        dt_perf_sort(us, (size_t)n);
        f->p50 = dt_perf_percentile(us, (size_t)n, 50);
        f->p99 = dt_perf_percentile(us, (size_t)n, 99);
        result = combine(r->a, &f->p50);
    }
    if (result == DT_OK)
        result = combine(r->a, &f->p99);
    free(us);
    return result;
}

static void fill(const struct run *r, size_t elements)
{
    char *in = r->aside ? r->aside : r->in;

    dt_perf_fill(r->op, &r->c, in, elements, dt_rank(), dt_size());
    if (r->aside)
        dt_perf_memory_put(r->in, in, elements * dt_dtype_size(r->c.dtype));
}

/* Returns the number of elements in this rank's result. */
static size_t result_elements(const struct run *r)
{
    size_t elements = 0;

    if (!r->op->many_out)
        return dt_perf_block_count(r->op, dt_rank(), dt_rank(), dt_size(), r->count);
    for (int i = 0; i < dt_size(); i++)
        elements += r->counts ? r->c.takes[i] : r->count;
    return elements;
}

static size_t count_wrong(const struct run *r)
{
    if (r->aside)
        dt_perf_memory_get(r->aside, r->out, result_elements(r) * dt_dtype_size(r->c.dtype));
    return dt_perf_wrong(r->op, &r->c, r->aside ? r->aside : r->out, r->count, dt_rank(),
                         dt_size());
}

static dt_result_t verify(const struct run *r, bool in_place, size_t *wrong)
{
    int me = dt_rank(), n = dt_size();
    bool has = !r->op->root_alone || me == r->c.root;
    /* the size of the input if it is only this rank's block */
    size_t block = dt_perf_block_count(r->op, me, me, n, r->count);
    double sum = 0;
    dt_result_t result;

    if (!in_place)
        dt_perf_memory_clear(r->out, dt_perf_bytes(r->op, &r->c, r->count));
    fill(r, r->op->many_in ? r->count * (size_t)n : block);
    result = call(r);
    if (result == DT_OK && has)
        sum = (double)count_wrong(r);
    if (result == DT_OK)
        result = agree(&sum, DT_SUM);
    *wrong = (size_t)sum;
    return result;
}

dt_result_t dt_perf_measure(const struct dt_perf_op *op, const struct dt_perf_case *c,
                            const struct dt_perf_args *a, const struct dt_perf_buffers *b,
                            size_t count, bool in_place, struct dt_perf_figures *f)
{
    size_t bytes = dt_perf_bytes(op, c, count);
    struct run r;
    dt_result_t result;
    int n = 0;

    *f = (struct dt_perf_figures){ .measured = !in_place || op->place != DT_PERF_NO_PLACE };
    if (!f->measured)
        return DT_OK;
    /* Zeros stay zeros, however often they are reduced in place. */
    dt_perf_memory_clear(b->in, bytes);
    dt_perf_memory_clear(b->out, bytes);
    result = begin_run(&r, op, c, b, count);
    r.a = a;
    if (in_place)
        put_in_place(&r);
    if (result == DT_OK)
        result = iterations(&r, &n);
    if (result == DT_OK)
        result = repeat(&r, n, &f->us);
    if (result == DT_OK)
        result = combine(a, &f->us);
    if (result == DT_OK)
        result = percentiles(&r, n, f);
    f->checked = a->check && !(in_place && op->place == DT_PERF_UNCHECKED);
    if (result == DT_OK && f->checked)
        result = verify(&r, in_place, &f->wrong);
    end_run(&r);
    return result;
}

dt_result_t dt_perf_time_us(const struct dt_perf_op *op, const struct dt_perf_case *c,
                            const struct dt_perf_buffers *b, size_t count, int times, double *us)
{
    struct run r;
    dt_result_t result = begin_run(&r, op, c, b, count);
    double start;

    if (result == DT_OK)
        result = dt_barrier(DT_WORLD);
    start = dt_perf_now_us();
    for (int i = 0; i < times && result == DT_OK; i++)
        result = call(&r);
    *us = (dt_perf_now_us() - start) / times;
    end_run(&r);
    return result == DT_OK ? agree(us, DT_MAX) : result;
}

dt_result_t dt_perf_memory_us(const struct dt_perf_buffers *b, size_t bytes, double *us_per_byte)
{
    int times = bytes < 1 << 20 ? 200 : 5;
    dt_result_t result = dt_barrier(DT_WORLD);
    double start = dt_perf_now_us();

    for (int i = 0; i < times; i++) {
        memcpy(b->out, b->in, bytes);
        __asm__ volatile("" ::: "memory");
    }
    *us_per_byte = bytes ? (dt_perf_now_us() - start) / times / (2.0 * (double)bytes) : 0;
    return result == DT_OK ? agree(us_per_byte, DT_MAX) : result;
}
