/* Describes this host: the contents of HELLO. */
#ifndef DT_AGENT_FACTS_HOSTINFO_H
#define DT_AGENT_FACTS_HOSTINFO_H

#include <sys/types.h>

#include "runtime/wire/msg.h"

/* Fills everything except gpus, probe_port and addrs. Free it with dt_msg_free(DT_MSG_HELLO, ...).
 */
void dt_hostinfo_fill(struct dt_msg_hello *hello, pid_t keeper);

#endif
