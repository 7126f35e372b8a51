/* Ctrl-Z. The terminal's SIGTSTP does not reach the ranks, which are in other sessions, some on
 * other hosts. So dtrun tells the agents to stop them (SIGSTOP) and to hold their leases, because
 * dtrun will be silent. When all agents have answered, dtrun stops itself.
 *
 * dtrun also tells agents without ranks. They have a lease too, and an agent whose ranks end
 * between the stop and the continue must not hold its lease forever. */
#ifndef DT_JOB_PAUSE_H
#define DT_JOB_PAUSE_H

#include "launcher/job/core/core.h"
#include "launcher/job/hang_detect.h"

struct dt_pause {
    struct dt_core *core;
    struct dt_hang_detect *hang_detect; /* forgets the waits that a pause has interrupted */
    bool pausing;                       /* until all agents have answered */
};

void dt_pause_begin(struct dt_pause *p);
void dt_pause_answered(struct dt_pause *p); /* an ANSWER has arrived */
void dt_pause_on_late(struct dt_pause *p);  /* DT_TIMER_PAUSE */

#endif
