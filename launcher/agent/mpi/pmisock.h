/* The sockets by which the ranks of a host speak PMI-1 with their agent. Each rank inherits one,
 * and PMI_FD tells its number; a program that is no MPI program never touches it. */
#ifndef DT_AGENT_MPI_PMISOCK_H
#define DT_AGENT_MPI_PMISOCK_H

#include <stdbool.h>
#include <uv.h>

#include "runtime/wire/msg.h"

struct dt_pmisock;

struct dt_pmisock_events { /* none may destroy the sockets */
    /* The ranks of this host are in a barrier: data for dt_pmisock_fenced on every host. */
    void (*fence)(void *arg, const char *data, size_t n);
    /* A rank called MPI_Abort with that code, and waits to be ended. */
    void (*abort)(void *arg, uint32_t local_rank, int exit_code);
    void (*log)(void *arg, const char *text); /* for the user */
};

/* start outlives the object. NULL with errno: no descriptors are left. */
struct dt_pmisock *dt_pmisock_create(uv_loop_t *loop, const struct dt_msg_start *start,
                                     const struct dt_pmisock_events *events, void *arg);
/* The end that a rank inherits; the agent closes its copy after the fork. */
int dt_pmisock_child_fd(const struct dt_pmisock *s, uint32_t local_rank);
void dt_pmisock_forked(struct dt_pmisock *s, uint32_t local_rank);
/* What the barrier brought; false where no host has said that. */
bool dt_pmisock_fenced(struct dt_pmisock *s, const char *data, size_t n);
void dt_pmisock_destroy(struct dt_pmisock *s); /* accepts NULL */

#endif
