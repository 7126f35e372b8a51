/* The header of frames between ranks. It names the sender's call, so that calls that do not match
 * are detected by the first frame instead of hanging. The data follow as they are in memory.
 * Pure. */
#ifndef DT_WIRE_DATAFRAME_H
#define DT_WIRE_DATAFRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/hostshm.h"

enum { DT_DATAFRAME_HEADER = 52 };

enum dt_dataframe_type {
    DT_DATAFRAME_DATA = 0,
    DT_DATAFRAME_FAILURE = 1, /* the last frame: why nothing more will come */
};

struct dt_dataframe {
    uint8_t type;
    uint32_t rank;  /* rank of the job: the sender or, in a failure, the rank that caused it */
    uint32_t bytes; /* of data that follow */
    int32_t code;   /* a dt_result_t, in a failure */
    struct dt_call call;
};

void dt_dataframe_put(const struct dt_dataframe *f, uint8_t out[DT_DATAFRAME_HEADER]);
/* False: the header is invalid. */
bool dt_dataframe_get(struct dt_dataframe *f, const uint8_t in[DT_DATAFRAME_HEADER]);

#endif
