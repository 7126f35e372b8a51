/* What --check reports about this host beyond HELLO: the contents of FACTS. */
#ifndef DT_AGENT_FACTS_HOSTFACTS_H
#define DT_AGENT_FACTS_HOSTFACTS_H

#include "runtime/wire/msg.h"

/* Fills facts (zeroed before), except for the GPUs. Free them with dt_msg_free(DT_MSG_FACTS, ...).
 * root is "", or a directory that stands for / in tests, with /proc and /sys in it. dir is where
 * checkpoints would go; it need not exist and is not created. Unknown facts stay 0 or empty. */
void dt_hostfacts_fill(struct dt_msg_facts *facts, const char *root, const char *dir);

#endif
