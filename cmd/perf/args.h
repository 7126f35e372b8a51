/* What dtrun-perf was asked for. The options are those of nccl-tests. Pure. */
#ifndef DT_CMD_PERF_ARGS_H
#define DT_CMD_PERF_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/kernels/dtype.h"

enum {
    DT_PERF_ALL = -1,
    DT_PERF_ARGS_WRONG = 160, /* what is wrong with them, in bytes */
};

enum dt_perf_average { DT_PERF_RANK0, DT_PERF_MEAN, DT_PERF_MIN, DT_PERF_MAX }; /* as -a has them */

struct dt_perf_args {
    const char *collective;
    size_t min_bytes; /* of the larger buffer, as nccl-tests counts */
    size_t max_bytes;
    size_t step;    /* bytes to add; 0: multiply instead */
    double factor;  /* by which the size grows */
    int iterations; /* 0: as many as take a tenth of a second */
    int warmup;
    int dtype; /* a dt_dtype_t, or DT_PERF_ALL */
    int op;    /* a dt_op_t, likewise */
    int root;  /* likewise */
    bool check;
    const char *json; /* where to; "-" instead of the table; or NULL */
    size_t offset;    /* bytes from an aligned address */
    double link;      /* Gbit/s of a host's network, each way; 0: to be measured */
    enum dt_perf_average average;
    bool gpu;  /* buffers lie in its memory */
    bool raw;  /* NCCL itself is measured, too */
    bool tune; /* instead; no collective */
    bool help;
    bool version;
};

/* Returns NULL, or what is wrong, as a sentence in text. */
const char *dt_perf_args_parse(struct dt_perf_args *a, int argc, char **argv,
                               char text[DT_PERF_ARGS_WRONG]);
void dt_perf_args_help(void);

/* The size after this one; more than max_bytes: there is none. */
size_t dt_perf_next_size(const struct dt_perf_args *a, size_t bytes);

/* Names as nccl-tests prints them: float, half, int8 and so on. */
const char *dt_perf_type_name(dt_dtype_t dtype);

#endif
