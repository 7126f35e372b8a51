/* Measures how long a collective takes: every rank measures itself, and the ranks agree on a
 * figure. */
#ifndef DT_CMD_PERF_MEASURE_H
#define DT_CMD_PERF_MEASURE_H

#include "cmd/perf/args.h"
#include "cmd/perf/ops.h"

struct dt_perf_figures {
    bool measured;   /* the collective exists in this form */
    bool checked;    /* its result was checked */
    double us;       /* of a call, back to back */
    double p50, p99; /* of calls that were timed one by one, in us */
    size_t wrong;    /* number of elements, of all ranks together */
};

double dt_perf_now_us(void); /* from a monotonic clock */
/* Returns a number that dtrun put into the environment, such as DT_ENV_NODES, or "otherwise" if it
 * is not there. */
int dt_perf_env_number(const char *name, int otherwise);

struct dt_perf_buffers {
    char *in;
    char *out;
    char *memory[2]; /* to free */
    /* host memory in which data are created and checked; NULL if the buffers are host memory */
    char *aside;
};

/* Returns false if memory ran out. */
bool dt_perf_buffers_make(struct dt_perf_buffers *b, const struct dt_perf_args *a);
void dt_perf_buffers_free(struct dt_perf_buffers *b);

/* Returns how many elements a block has (on average, for a v form) if the larger buffer has up to
 * that many bytes. */
size_t dt_perf_count(const struct dt_perf_op *op, const struct dt_perf_case *c, size_t bytes);
/* Returns the bytes of the larger buffer. */
size_t dt_perf_bytes(const struct dt_perf_op *op, const struct dt_perf_case *c, size_t count);

/* Collective. Every rank gets the same figures. */
dt_result_t dt_perf_measure(const struct dt_perf_op *op, const struct dt_perf_case *c,
                            const struct dt_perf_args *a, const struct dt_perf_buffers *b,
                            size_t count, bool in_place, struct dt_perf_figures *f);

/* Collective. Measures the time in us of an out-of-place call on the slowest rank. */
dt_result_t dt_perf_time_us(const struct dt_perf_op *op, const struct dt_perf_case *c,
                            const struct dt_perf_buffers *b, size_t count, int times, double *us);

/* Collective. Measures the time in us that a core of the slowest rank takes to read and write one
 * byte of such buffers, with all ranks at once: half of the time for copying. */
dt_result_t dt_perf_memory_us(const struct dt_perf_buffers *b, size_t bytes, double *us_per_byte);

#endif
