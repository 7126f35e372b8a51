/* --npernode gpu, cpu or auto: how many ranks each host gets. */
#ifndef DT_CMD_PERNODE_H
#define DT_CMD_PERNODE_H

#include "launcher/base/error.h"
#include "launcher/hosts/hostlist.h"

/* per_node is a DT_PER_NODE_ constant. Slots and gpus= that the user gave are kept, and so are the
 * tasks of a batch job, if it has several on the host. Else the local host gets as many slots as it
 * has of these. Other hosts, for which this is unknown before they are asked, are an error. root is
 * "", or a directory that stands for / in tests. */
int dt_pernode_slots(struct dt_hostlist *hosts, int per_node, const char *root,
                     struct dt_error *err);

#endif
