/* The last calls of a communicator that has failed, as a rank tells dtrun of them. */
#ifndef DT_DIAG_LASTCALLS_H
#define DT_DIAG_LASTCALLS_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/coll_error.h"
#include "runtime/diag/recorder.h"
#include "runtime/dtrun.h"
#include "runtime/wire/msg.h"

enum { DT_LASTCALLS_WAY = 48 };

/* "all-reduce of 5 f32 (sum)": the call without its number. Returns text. */
const char *dt_lastcalls_what(const struct dt_call *call, char text[DT_CALL_TEXT]);
/* "DT_ERR_MISMATCH", "ok", or "inside". */
const char *dt_lastcalls_result(const struct dt_record *r);
/* The ways within the host and between hosts, or "-". Returns text. */
const char *dt_lastcalls_way(const struct dt_record *r, char text[DT_LASTCALLS_WAY]);

/* Tells of those among n records, in their order, that are of this communicator. m has all that is
 * to be told beside them. Where nobody can hear it, or now, nobody does. */
void dt_lastcalls_tell(int sock, struct dt_msg_last_calls *m, const struct dt_record *records,
                       size_t n, uint64_t now);

#endif
