/* Reports the last calls of a failed communicator to dtrun. */
#ifndef DT_DIAG_LASTCALLS_H
#define DT_DIAG_LASTCALLS_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/coll_error.h"
#include "runtime/diag/recorder.h"
#include "runtime/dtrun.h"
#include "runtime/wire/msg.h"

enum { DT_LASTCALLS_ALGORITHM = 48 };

/* Writes "all-reduce of 5 f32 (sum)": the call without its number. Returns text. */
const char *dt_lastcalls_call(const struct dt_call *call, char text[DT_CALL_TEXT]);
/* Returns "DT_ERR_MISMATCH", "ok" or "inside", for example. */
const char *dt_lastcalls_result(const struct dt_record *r);
/* Writes the algorithms within the host and between hosts, or "-". Returns text. */
const char *dt_lastcalls_algorithm(const struct dt_record *r, char text[DT_LASTCALLS_ALGORITHM]);

/* Sends those of n records that are of this communicator, in their order. The caller has set all
 * other fields of m. Does not wait: if the socket is closed or full, nothing is sent. */
void dt_lastcalls_send(int sock, struct dt_msg_last_calls *m, const struct dt_record *records,
                       size_t n, uint64_t now);

#endif
