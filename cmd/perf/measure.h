/* How long a collective takes: every rank measures itself, and the ranks agree on a figure. */
#ifndef DT_CMD_PERF_MEASURE_H
#define DT_CMD_PERF_MEASURE_H

#include "cmd/perf/args.h"
#include "cmd/perf/ops.h"

struct dt_perf_figures {
    bool measured;   /* the collective has this form */
    bool seen;       /* its result was looked at */
    double us;       /* a call, back to back */
    double p50, p99; /* of calls that were timed one by one, us */
    size_t wrong;    /* elements, of all ranks together */
};

double dt_perf_now_us(void); /* of a clock that never jumps */
/* A number that dtrun says of the job in the environment, as DT_ENV_NODES. */
int dt_perf_told(const char *name, int otherwise);

struct dt_perf_buffers {
    char *in;
    char *out;
    char *memory[2]; /* what to free */
    char *aside; /* host memory in which data are made and looked at; that of a buffer, if it is */
};

/* false: memory ran out. */
bool dt_perf_buffers_make(struct dt_perf_buffers *b, const struct dt_perf_args *a);
void dt_perf_buffers_free(struct dt_perf_buffers *b);

/* The elements of a block, or of a v form's in the mean, when the larger buffer has up to so many
 * bytes. */
size_t dt_perf_count(const struct dt_perf_op *op, const struct dt_perf_case *c, size_t bytes);
/* The bytes of the larger buffer. */
size_t dt_perf_bytes(const struct dt_perf_op *op, const struct dt_perf_case *c, size_t count);

/* Collective: every rank ends with the same figures. */
dt_result_t dt_perf_measure(const struct dt_perf_op *op, const struct dt_perf_case *c,
                            const struct dt_perf_args *a, const struct dt_perf_buffers *b,
                            size_t count, bool in_place, struct dt_perf_figures *f);

/* Collective. The microseconds that a call, out of place, takes on the slowest rank. */
dt_result_t dt_perf_time_us(const struct dt_perf_op *op, const struct dt_perf_case *c,
                            const struct dt_perf_buffers *b, size_t count, int times, double *us);

/* Collective. The microseconds that a core of the slowest rank takes to read and write a byte of
 * such buffers, all ranks at once: half of what copying takes. */
dt_result_t dt_perf_memory_us(const struct dt_perf_buffers *b, size_t bytes, double *us_per_byte);

#endif
