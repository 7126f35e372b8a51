/* --npernode gpu, cpu or auto: how many ranks a host gets. */
#ifndef DT_CMD_PERNODE_H
#define DT_CMD_PERNODE_H

#include "launcher/base/error.h"
#include "launcher/hosts/hostlist.h"

/* per_node: a DT_PER_NODE_ constant. Slots and gpus= that were given stand; this machine gets as
 * many slots as it has of these. Of another host that is not known before it is asked: -1. root:
 * "", or a directory that stands for / (tests). */
int dt_pernode_slots(struct dt_hostlist *hosts, int per_node, const char *root,
                     struct dt_error *err);

#endif
