/* What a user should know about hosts on which a job would start: where a host falls behind the
 * others, since the slowest host slows down the whole job, and what would fail later. Pure.
 *
 * A figure is compared with the median of all hosts that have it (the better one if two are in the
 * middle). A name, such as a driver's, is compared with the most frequent one (the first host's if
 * several are equally frequent). */
#ifndef DT_CHECK_REMARKS_H
#define DT_CHECK_REMARKS_H

#include "launcher/check/host.h"

enum dt_check_column {
    DT_CHECK_HOST,
    DT_CHECK_SSH,
    DT_CHECK_AGENT,
    DT_CHECK_CORES,
    DT_CHECK_PHYSICAL,
    DT_CHECK_MEMORY,
    DT_CHECK_LOAD,
    DT_CHECK_GPUS,
    DT_CHECK_DRIVER,
    DT_CHECK_CLOCK,
    DT_CHECK_DISK,
    DT_CHECK_RTT,
    DT_CHECK_BANDWIDTH,
    DT_CHECK_LINKS, /* from here on only if some host has GPUs */
    DT_CHECK_NCCL,
    DT_CHECK_ERRORS,
    DT_CHECK_COLUMNS,
};

struct dt_remark {
    size_t host;
    enum dt_check_column column; /* the cell that it is about; DT_CHECK_COLUMNS: none */
    char *text;                  /* "8 cores (usual: 16)" */
};

struct dt_remarks {
    struct dt_remark *v;
    size_t n;
};

/* Appends to remarks, which are zero-initialised. */
void dt_remarks_make(struct dt_remarks *remarks, const struct dt_check_host *hosts, size_t n);
void dt_remarks_free(struct dt_remarks *remarks);

#endif
