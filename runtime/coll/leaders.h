/* Collectives among the hosts of a communicator. One rank of each host takes part: its leader.
 * Reductions are in files of their own. */
#ifndef DT_COLL_LEADERS_H
#define DT_COLL_LEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/tuning.h"
#include "runtime/tcp/flow.h"
#include "runtime/tcp/mesh.h"

struct dt_leaders {
    struct dt_mesh *mesh;
    const uint32_t *peers; /* by place: the rank of the communicator */
    uint32_t me;           /* this rank's place */
    uint32_t n;
    const struct dt_tuning *tuning;
    bool in_order;  /* never use the ring */
    bool connected; /* all are connected with each other, although they are many */
    uint8_t *scratch;
    size_t scratch_bytes;
    struct dt_flow *flows; /* with all others; NULL: not allocated yet */
    const char *algorithm; /* for the flight recorder */
};

void dt_leaders_close(struct dt_leaders *l);

/* From the rank at place root to all others. Returns when every rank has made this call. */
dt_result_t dt_leaders_broadcast(struct dt_leaders *l, const struct dt_call *call, void *buf,
                                 size_t bytes, uint32_t root);
/* Returns when every rank has made this call. */
dt_result_t dt_leaders_barrier(struct dt_leaders *l, const struct dt_call *call);
/* Likewise; *word becomes the sum over all ranks. */
dt_result_t dt_leaders_barrier_sum(struct dt_leaders *l, const struct dt_call *call,
                                   uint64_t *word);

/* Sends each host's block to all hosts, in log2(hosts) steps. bytes: the size of a block. blocks
 * begins with this host's block, and receives those of the hosts after it. */
dt_result_t dt_leaders_gather(struct dt_leaders *l, const struct dt_call *call, uint8_t *blocks,
                              size_t bytes);

/* Connects this host with others in advance. A call would also do it. */
dt_result_t dt_leaders_connect(struct dt_leaders *l);

/* For algorithms in other files. Makes l->scratch large enough; its contents are lost. */
dt_result_t dt_leaders_scratch(struct dt_leaders *l, size_t bytes);
/* A flow to, or from, the rank at a place. Its slot is the place. */
struct dt_flow dt_leaders_flow_to(const struct dt_leaders *l, uint32_t place, size_t frames);
struct dt_flow dt_leaders_flow_from(const struct dt_leaders *l, uint32_t place, size_t frames);
/* Fills in t's flows, in l's memory: one to each other place, then one from each. Their slots are
 * the places. */
dt_result_t dt_leaders_flows_with_all(struct dt_leaders *l, size_t frames, struct dt_traffic *t);
/* Calls dt_fold for this number of bytes, with the call's type and operation. Does nothing for 0
 * bytes. */
void dt_leaders_fold(const struct dt_call *call, void *dst, const void *const *src, size_t n,
                     size_t bytes, double divisor);
/* Makes the connections that the flows need, and runs the flows. */
dt_result_t dt_leaders_run(struct dt_leaders *l, const struct dt_traffic *t);

#endif
