/* Says what went wrong in a call: who called what, and who is to blame. */
#ifndef DT_COMM_ERROR_REPORT_H
#define DT_COMM_ERROR_REPORT_H

#include "runtime/comm/comm.h"

/* Makes the coll_error in this call on c what dt_last_error and dt_last_error_info tell; returns
 * the coll_error's code. call NULL: it was noticed outside; ring: where it is the newest, which
 * this thread writes. */
dt_result_t dt_error_report(const struct dt_comm *c, const struct dt_coll_error *t,
                            const struct dt_call *call, const struct dt_ring *ring);

/* "rank 1 (a) called this; rank 2 (b) called that", for those who have called neither: one and
 * other say who and what. Returns text. */
enum { DT_ERROR_REPORT_OTHERS = 768 };
const char *dt_error_report_others(const struct dt_comm *c, const struct dt_coll_error *one,
                                   const struct dt_coll_error *other,
                                   char text[DT_ERROR_REPORT_OTHERS]);

/* After dt_fail, for dt_last_error_info: which call failed; and that this rank is to blame, in one
 * on that communicator. */
void dt_error_report_call(enum dt_call_kind kind);
void dt_error_report_self(const struct dt_world *w, uint64_t comm);
/* Both, of a call that was not made, and so has no number. w NULL: there is no such communicator.
 * Returns r; of DT_OK nothing is told. */
dt_result_t dt_error_report_refusal(const struct dt_world *w, uint64_t comm, enum dt_call_kind kind,
                                    dt_result_t r);

#endif
