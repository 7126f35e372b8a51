/* The options of an all-reduce: reads and checks them, gives them a mark for the comparison of
 * calls, and applies the steps that a rank does on its own data. Pure, except for the default wire
 * format. */
#ifndef DT_BASE_REDUCEOPTIONS_H
#define DT_BASE_REDUCEOPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/dtrun.h"

/* Set the wire format of calls that do not name one: by the text of DTRUN_WIRE, or by a number.
 * where names its source in errors. No other thread may make calls meanwhile. */
dt_result_t dt_reduceoptions_choose(const char *text);
dt_result_t dt_reduceoptions_choose_wire(dt_wire_t wire, const char *where);
/* Returns the options for a call that gives none, or NULL if it is exact and without factors. */
const dt_all_reduce_options_t *dt_reduceoptions_default(size_t count, dt_dtype_t dtype, dt_op_t op);

/* Reads the program's options, of any version, and checks them against the call "name". Stores a
 * wire that is never DT_WIRE_DEFAULT. device: the buffers are in device memory. */
dt_result_t dt_reduceoptions_read(const char *name, const dt_all_reduce_options_t *given,
                                  size_t count, dt_dtype_t dtype, dt_op_t op, bool device,
                                  dt_all_reduce_options_t *o);

/* The field options of struct dt_call. Equal for equal options; different options have the same
 * mark with a probability of 2^-56. 0: the options change nothing. */
uint64_t dt_reduceoptions_mark(const dt_all_reduce_options_t *o);
/* The mark of a call that consists of several buffers. Begins as 0, and becomes this for each
 * buffer in turn. It is combined with the mark of the options, which then have no factors and no
 * threshold. */
uint64_t dt_reduceoptions_mark_buffer(uint64_t mark, size_t bytes);
/* The part of a combined mark that stands for the buffers. */
uint64_t dt_reduceoptions_buffers(uint64_t mark);
/* The options as text that follows the call's, such as " as int8"; "" for 0. */
const char *dt_reduceoptions_describe(uint64_t mark);

/* Before the call: scales, and adds the residual, which becomes 0. Returns the buffer to reduce:
 * in, or out if the data were changed. */
const void *dt_reduceoptions_before(const dt_all_reduce_options_t *o, const void *in, void *out,
                                    size_t count, dt_dtype_t dtype);
/* After the call: scales. */
void dt_reduceoptions_after(const dt_all_reduce_options_t *o, void *out, size_t count,
                            dt_dtype_t dtype);

#endif
