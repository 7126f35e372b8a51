/* The faults of --inject as dtrun sees them: which go to which host, and which have struck. Each
 * strikes once in a job, not once in each generation. */
#ifndef DT_JOB_STATE_INJECTIONS_H
#define DT_JOB_STATE_INJECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/job/state/ranks.h"
#include "launcher/place/plan.h"
#include "runtime/wire/codec.h"

struct dt_injections {
    const struct dt_strs *faults; /* each was accepted by dt_inject_parse */
    bool *struck;                 /* by fault */
    uint32_t restart;             /* number of restarts before the newest generation */
};

enum dt_injected_loss {
    DT_LOSS_NOT_INJECTED,
    DT_LOSS_OF_AGENT, /* a new agent may be started there */
    DT_LOSS_OF_HOST,  /* the host does not come back */
};

/* faults must outlive it. */
void dt_injections_init(struct dt_injections *in, const struct dt_strs *faults);
void dt_injections_begin(struct dt_injections *in, uint32_t restart); /* a generation begins */
/* Adds the faults that the START for this host must contain. */
void dt_injections_select(const struct dt_injections *in, const struct dt_plan_node *node,
                          struct dt_strs *faults);
void dt_injections_strike(struct dt_injections *in, const char *fault); /* STRUCK has arrived */
/* The host was lost while it had ranks of the generation. An agent that a fault has struck cannot
 * report that. So if a fault that ends the agent was due on this host, that fault counts as struck
 * and as the reason. */
enum dt_injected_loss dt_injections_lose_host(struct dt_injections *in,
                                              const struct dt_plan_node *node);
/* Tells the user, for each fault that has not struck, why not. */
void dt_injections_say_unstruck(const struct dt_injections *in, const struct dt_plan *plan,
                                const struct dt_ranks *ranks);
void dt_injections_free(struct dt_injections *in);

#endif
