/* What --check wants to know of this host beyond HELLO: the contents of FACTS. */
#ifndef DT_AGENT_HOSTFACTS_H
#define DT_AGENT_HOSTFACTS_H

#include "runtime/wire/msg.h"

/* Fills facts (zeroed before), except for the GPUs; dt_msg_free(DT_MSG_FACTS, ...) frees it. root:
 * "", or a directory that stands for / where /proc and /sys are looked into (tests). dir: where
 * checkpoints would go, a path that need not exist; it is not created. What cannot be found out
 * stays 0 or empty. */
void dt_hostfacts_fill(struct dt_msg_facts *facts, const char *root, const char *dir);

#endif
