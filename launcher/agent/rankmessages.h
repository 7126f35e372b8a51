/* Passes the messages that ranks send on their sockets on to the launcher. */
#ifndef DT_AGENT_RANKMESSAGES_H
#define DT_AGENT_RANKMESSAGES_H

#include "launcher/agent/ranklink/ranksock.h"

extern const struct dt_ranksock_events dt_rankmessages_events; /* arg: the struct dt_generation */

#endif
