/* The sockets on which the ranks of a host speak PMI-1 with their agent. Each rank inherits one,
 * and PMI_FD is its number. A program without MPI never uses it. */
#ifndef DT_AGENT_MPI_PMISOCK_H
#define DT_AGENT_MPI_PMISOCK_H

#include <stdbool.h>
#include <uv.h>

#include "runtime/wire/msg.h"

struct dt_pmisock;

struct dt_pmisock_events { /* none may destroy the sockets */
    /* All ranks of this host are in a barrier. data is for dt_pmisock_fenced on every host. */
    void (*fence)(void *arg, const char *data, size_t n);
    /* A rank called MPI_Abort with that code, and waits to be killed. */
    void (*abort)(void *arg, uint32_t local_rank, int exit_code);
    /* A rank has called MPI_Init, or (inside false) MPI_Finalize. */
    void (*state)(void *arg, uint32_t local_rank, bool inside);
    void (*log)(void *arg, const char *text); /* for the user */
};

/* start outlives the result. Returns NULL with errno if no descriptors are left. */
struct dt_pmisock *dt_pmisock_create(uv_loop_t *loop, const struct dt_msg_start *start,
                                     const struct dt_pmisock_events *events, void *arg);
/* Returns the end that a rank inherits. The agent closes its copy after the fork. */
int dt_pmisock_child_fd(const struct dt_pmisock *s, uint32_t local_rank);
void dt_pmisock_forked(struct dt_pmisock *s, uint32_t local_rank);
/* The barrier is complete. Returns false if no host can have sent this data. */
bool dt_pmisock_fenced(struct dt_pmisock *s, const char *data, size_t n);
void dt_pmisock_destroy(struct dt_pmisock *s); /* accepts NULL */

#endif
