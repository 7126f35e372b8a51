/* The faults of --inject that concern this host's ranks, and what triggers them. */
#ifndef DT_AGENT_RANKS_INJECTOR_H
#define DT_AGENT_RANKS_INJECTOR_H

#include <uv.h>

#include "launcher/agent/ranklink/ranksock.h"
#include "launcher/base/inject.h"

struct dt_injector;

struct dt_injector_events {
    /* The fault happens now, to this local rank (to any rank if it is a fault of a host or agent).
     * If it is triggered inside a call of dt_step, the call has not returned yet. */
    void (*trigger)(void *arg, uint32_t local_rank, const struct dt_inject *fault,
                    const char *text);
};

/* Arms the faults; they are triggered once the ranks run. start and sock outlive the object.
 * Ignores a text that does not parse: dtrun sends none. */
struct dt_injector *dt_injector_create(uv_loop_t *loop, const struct dt_msg_start *start,
                                       struct dt_ranksock *sock,
                                       const struct dt_injector_events *events, void *arg);
/* All ranks run: triggers the faults without a step, each when its time comes. */
void dt_injector_running(struct dt_injector *f);
/* A watched rank has called dt_step: triggers its fault, and lets the rank continue if it may. */
void dt_injector_step(struct dt_injector *f, uint32_t local_rank, int64_t step);
void dt_injector_destroy(struct dt_injector *f); /* accepts NULL */

#endif
