/* What the public calls share: the state of this process, and the one communicator it has. */
#ifndef DT_RUNTIME_CONTEXT_H
#define DT_RUNTIME_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/comm.h"
#include "runtime/dtrun.h"

/* Every public collective begins with dt_context_enter, which gives the communicator of all ranks,
 * and, where that returned DT_OK, ends with dt_context_leave. DT_ERR_STATE: before dt_init, after
 * dt_finalize, in a forked child, or while another thread is inside such a call. name: of the call.
 */
dt_result_t dt_context_enter(const char *name, struct dt_comm **comm);
void dt_context_leave(void);

#endif
