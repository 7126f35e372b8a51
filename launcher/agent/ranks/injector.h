/* The faults of --inject that concern this host's ranks, and their triggers. */
#ifndef DT_AGENT_INJECTOR_H
#define DT_AGENT_INJECTOR_H

#include <uv.h>

#include "launcher/agent/ranklink/ranksock.h"
#include "launcher/base/inject.h"

struct dt_injector;

struct dt_injector_events {
    /* The fault strikes now: this local rank (of a host or agent fault: any). A rank that is struck
     * inside dt_step has not left it. */
    void (*strike)(void *arg, uint32_t local_rank, const struct dt_inject *fault, const char *text);
};

/* Arms the faults as soon as the ranks run. start and sock outlive the object. A text that does not
 * parse is passed over: dtrun has refused it before. */
struct dt_injector *dt_injector_create(uv_loop_t *loop, const struct dt_msg_start *start,
                                       struct dt_ranksock *sock,
                                       const struct dt_injector_events *events, void *arg);
void dt_injector_running(struct dt_injector *f); /* all ranks run: those without a step are due */
/* A watched rank has called dt_step: strikes, and lets it go on where it may. */
void dt_injector_step(struct dt_injector *f, uint32_t local_rank, int64_t step);
void dt_injector_destroy(struct dt_injector *f); /* accepts NULL */

#endif
