/* The arguments of dtrun-perf. The options are those of nccl-tests. Pure. */
#ifndef DT_CMD_PERF_ARGS_H
#define DT_CMD_PERF_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/kernels/dtype.h"

enum {
    DT_PERF_ALL = -1,
    DT_PERF_ARGS_WRONG = 160, /* bytes of a text that says what is wrong */
};

enum dt_perf_average {
    DT_PERF_RANK0,
    DT_PERF_MEAN,
    DT_PERF_MIN,
    DT_PERF_MAX
}; /* in the numbering of -a */

struct dt_perf_args {
    const char *collective;
    size_t min_bytes; /* of the larger buffer, as in nccl-tests */
    size_t max_bytes;
    size_t step;    /* bytes to add to get the next size; 0: multiply instead */
    double factor;  /* factor to get the next size */
    int iterations; /* 0: as many as take a tenth of a second */
    int warmup;
    int dtype; /* a dt_dtype_t, or DT_PERF_ALL */
    int op;    /* a dt_op_t, or DT_PERF_ALL */
    int root;  /* a rank, or DT_PERF_ALL */
    bool check;
    const char *json; /* file to write to; "-": instead of the table; or NULL */
    size_t offset;    /* bytes from an aligned address */
    double link;      /* Gbit/s of a host's network in each direction; 0: measure it */
    enum dt_perf_average average;
    bool gpu;  /* buffers are in GPU memory */
    bool raw;  /* measure NCCL itself, too */
    bool tune; /* measure thresholds instead of a collective */
    bool help;
    bool version;
};

/* Returns NULL, or text with a sentence that says what is wrong. */
const char *dt_perf_args_parse(struct dt_perf_args *a, int argc, char **argv,
                               char text[DT_PERF_ARGS_WRONG]);
void dt_perf_args_help(void);

/* Returns the size after this one. A result above max_bytes means that there is none. */
size_t dt_perf_next_size(const struct dt_perf_args *a, size_t bytes);

/* Returns the names that nccl-tests prints: float, half, int8 and so on. */
const char *dt_perf_type_name(dt_dtype_t dtype);

#endif
