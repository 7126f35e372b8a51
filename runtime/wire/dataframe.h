/* The header of what ranks send each other: it names the sender's call, so that calls that do not
 * fit are found by the first frame instead of hanging. Data follow as they stand in memory. Pure.
 */
#ifndef DT_WIRE_DATAFRAME_H
#define DT_WIRE_DATAFRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/hostshm.h"

enum { DT_DATAFRAME_HEADER = 52 };

enum dt_dataframe_type {
    DT_DATAFRAME_DATA = 0,
    DT_DATAFRAME_FAILURE = 1, /* the last one: why nothing more will come */
};

struct dt_dataframe {
    uint8_t type;
    uint32_t rank;  /* of the job: the sender; in a failure: whom to blame */
    uint32_t bytes; /* that follow */
    int32_t code;   /* of a failure: a dt_result_t */
    struct dt_call call;
};

void dt_dataframe_put(const struct dt_dataframe *f, uint8_t out[DT_DATAFRAME_HEADER]);
/* False: this is none. */
bool dt_dataframe_get(struct dt_dataframe *f, const uint8_t in[DT_DATAFRAME_HEADER]);

#endif
