/* What the ranks of a job have published by name, and which of them meet: MPI_Publish_name,
 * MPI_Comm_accept, MPI_Comm_connect, MPI_Comm_disconnect and MPI_Comm_create_from_group. Each host
 * has a copy. All hosts receive the SHAREs of all hosts in the same order, so the copies agree.
 * Pure: answers to requests of this host go through answer. */
#ifndef DT_CMD_PMIX_NAMES_H
#define DT_CMD_PMIX_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/wire/msg.h"

struct dt_names;

struct dt_names_answer {
    uint32_t request; /* of this host */
    bool ok;          /* false: the name is unknown */
    uint32_t rank;    /* which published the data found */
    const char *data; /* found under the name, or brought by all hosts of a meeting */
    size_t n;
    uint64_t meetings; /* after a meeting: how many the job has had before, the same on all hosts */
};

typedef void dt_names_answered(void *arg, const struct dt_names_answer *answer);

/* node is this host's number, nodes how many hosts there are. */
struct dt_names *dt_names_create(uint32_t node, uint32_t nodes, dt_names_answered *answer,
                                 void *arg);
/* Carries out a SHARE. Returns false if no host can have sent it. */
bool dt_names_apply(struct dt_names *n, const struct dt_msg_share *m);
void dt_names_destroy(struct dt_names *n); /* accepts NULL */

#endif
