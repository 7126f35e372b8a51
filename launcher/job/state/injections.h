/* The faults of --inject as dtrun sees them: which go to which host, and which have been triggered.
 * Each is triggered once in a job, not once in each generation. */
#ifndef DT_JOB_STATE_INJECTIONS_H
#define DT_JOB_STATE_INJECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/job/state/ranks.h"
#include "launcher/place/plan.h"
#include "runtime/wire/codec.h"

struct dt_injections {
    const struct dt_strs *faults; /* each was accepted by dt_inject_parse */
    bool *triggered;              /* by fault */
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
void dt_injections_on_triggered(struct dt_injections *in,
                                const char *fault); /* TRIGGERED has arrived */
/* The host was lost while it had ranks of the generation. An agent that a fault has ended cannot
 * report that. So if such a fault was due on this host, it counts as triggered and as the reason
 * for the loss. */
enum dt_injected_loss dt_injections_lose_host(struct dt_injections *in,
                                              const struct dt_plan_node *node);
/* Tells the user of each fault that was not triggered, and why. */
void dt_injections_say_untriggered(const struct dt_injections *in, const struct dt_plan *plan,
                                   const struct dt_ranks *ranks);
void dt_injections_free(struct dt_injections *in);

#endif
