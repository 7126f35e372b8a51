/* What the transports over a child process (local, ssh, rsh, srun) have in common: the child is the
 * byte stream. */
#ifndef DT_REMOTE_TRANSPORT_CHILD_H
#define DT_REMOTE_TRANSPORT_CHILD_H

#include "launcher/remote/child.h"
#include "launcher/remote/pass.h"

struct dt_transport_child { /* the first member of their struct dt_transport */
    struct dt_pass pass;
    struct dt_child *child;
};

/* Changes the command so that it ignores the signals that batch systems send to every process of a
 * job, unless it installs a handler for a signal that it inherits as ignored. dtrun passes these
 * signals on to the ranks, for which it needs the connections. */
void dt_transport_child_shield(struct dt_strs *argv);
void dt_transport_child_write(struct dt_transport *t, const void *bytes, size_t n);
size_t dt_transport_child_pending(const struct dt_transport *t);
void dt_transport_child_close(struct dt_transport *t);

#endif
