/* The options of an all-reduce: how they are read, what they mean for the call, and what of them is
 * done to a rank's own numbers. Pure, but for DTRUN_WIRE. */
#ifndef DT_BASE_REDUCEOPTIONS_H
#define DT_BASE_REDUCEOPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/dtrun.h"

/* The wire format of calls that do not say, by what DTRUN_WIRE says, or by the number that was
 * given at "where". Not while another thread makes calls. */
dt_result_t dt_reduceoptions_choose(const char *text);
dt_result_t dt_reduceoptions_choose_wire(dt_wire_t wire, const char *where);
/* What holds for a call without options; NULL: nothing. */
const dt_all_reduce_options_t *dt_reduceoptions_default(size_t count, dt_dtype_t dtype, dt_op_t op);

/* Reads what a program gave, of whatever version, and checks it against the call of this name. In o
 * the wire is never DT_WIRE_DEFAULT. device: the call is about device memory. */
dt_result_t dt_reduceoptions_read(const char *name, const dt_all_reduce_options_t *given,
                                  size_t count, dt_dtype_t dtype, dt_op_t op, bool device,
                                  dt_all_reduce_options_t *o);

/* What the options are in a struct dt_call: equal for equal ones, and otherwise for one pair in
 * 2^56. 0: they change nothing. */
uint64_t dt_reduceoptions_mark(const dt_all_reduce_options_t *o);
/* The mark of a call that is made of pieces, beside that of its options, which have no factors and
 * no threshold: 0 for the first, then this for the mark so far and each one more. */
uint64_t dt_reduceoptions_mark_piece(uint64_t mark, size_t bytes);
/* Of a mark, or of both together, that of the pieces. */
uint64_t dt_reduceoptions_pieces(uint64_t mark);
/* Words for it, to stand behind the call's, such as " as int8"; "" for 0. */
const char *dt_reduceoptions_describe(uint64_t mark);

/* Before the call: scales, and adds the residual, which becomes 0. Returns what to reduce: in, or
 * out where it had to be changed. */
const void *dt_reduceoptions_before(const dt_all_reduce_options_t *o, const void *in, void *out,
                                    size_t count, dt_dtype_t dtype);
/* After it: scales. */
void dt_reduceoptions_after(const dt_all_reduce_options_t *o, void *out, size_t count,
                            dt_dtype_t dtype);

#endif
