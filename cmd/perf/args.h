/* The arguments of dtrun-perf. The options are those of nccl-tests. Pure. */
#ifndef DT_CMD_PERF_ARGS_H
#define DT_CMD_PERF_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/kernels/dtype.h"

enum {
    DT_PERF_ALL = -1,
    DT_PERF_ARGS_ERROR = 160, /* bytes, for a message */
};

/* The values of -a. */
enum dt_perf_average { DT_PERF_RANK0, DT_PERF_MEAN, DT_PERF_MIN, DT_PERF_MAX };

struct dt_perf_args {
    const char *collective;
    size_t min_bytes; /* of the larger buffer, as in nccl-tests */
    size_t max_bytes;
    size_t step;    /* the next size is that many bytes larger; 0: use factor */
    double factor;  /* the next size is that many times as large */
    int iterations; /* 0: as many as take a tenth of a second */
    int warmup;
    int dtype; /* a dt_dtype_t, or DT_PERF_ALL */
    int op;    /* a dt_op_t, or DT_PERF_ALL */
    int root;  /* a rank, or DT_PERF_ALL */
    bool check;
    const char *json; /* a file; "-": standard output, instead of the table; or NULL */
    size_t offset;    /* bytes from an aligned address */
    double link;      /* Gbit/s of a host's network in each direction; 0: measure it */
    enum dt_perf_average average;
    bool gpu;  /* buffers are in GPU memory */
    bool raw;  /* measure NCCL itself, too */
    bool tune; /* measure thresholds instead of a collective */
    bool help;
    bool version;
};

/* Returns NULL, or text, which then says what is wrong. */
const char *dt_perf_args_parse(struct dt_perf_args *a, int argc, char **argv,
                               char text[DT_PERF_ARGS_ERROR]);
void dt_perf_args_help(void);

/* Returns the size after this one. A result above max_bytes means that there is none. */
size_t dt_perf_next_size(const struct dt_perf_args *a, size_t bytes);

/* Returns the names that nccl-tests prints: float, half, int8 and so on. */
const char *dt_perf_type_name(dt_dtype_t dtype);

#endif
