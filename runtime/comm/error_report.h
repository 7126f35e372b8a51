/* Describes the failure of a call: which rank called what, and which rank caused it. */
#ifndef DT_COMM_ERROR_REPORT_H
#define DT_COMM_ERROR_REPORT_H

#include "runtime/comm/comm.h"

/* Stores a description of t, which happened in this call on c, for dt_last_error and
 * dt_last_error_info. Returns t's code. call NULL: it happened outside of a call. ring: this thread
 * writes it, and call is its newest entry. */
dt_result_t dt_error_report(const struct dt_comm *c, const struct dt_coll_error *t,
                            const struct dt_call *call, const struct dt_ring *ring);

/* Writes "rank 1 (a) called this; rank 2 (b) called that", for ranks that made neither call. one
 * and other say which rank called what. Returns text. */
enum { DT_ERROR_REPORT_OTHERS = 768 };
const char *dt_error_report_others(const struct dt_comm *c, const struct dt_coll_error *one,
                                   const struct dt_coll_error *other,
                                   char text[DT_ERROR_REPORT_OTHERS]);

/* Both follow dt_fail and complete dt_last_error_info. The first names the call that failed. The
 * second names this rank as the cause, and the communicator. */
void dt_error_report_call(enum dt_call_kind kind);
void dt_error_report_self(const struct dt_world *w, uint64_t comm);
/* Both, for a call that was refused and so has no number. w NULL: there is no such communicator.
 * Does nothing if r is DT_OK. Returns r. */
dt_result_t dt_error_report_refusal(const struct dt_world *w, uint64_t comm, enum dt_call_kind kind,
                                    dt_result_t r);

#endif
