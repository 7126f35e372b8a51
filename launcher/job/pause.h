/* Ctrl-Z. The terminal's SIGTSTP does not reach the ranks: they are in other sessions, some on
 * other hosts. So the agents are told to stop them (SIGSTOP) and to suspend their leases, since
 * dtrun will be silent. When all have answered, dtrun stops itself.
 *
 * Agents without ranks are told, too. They also have a lease, and an agent whose ranks end between
 * the two signals would suspend it for ever. */
#ifndef DT_JOB_PAUSE_H
#define DT_JOB_PAUSE_H

#include "launcher/job/core/core.h"
#include "launcher/job/hang_detect.h"

struct dt_pause {
    struct dt_core *core;
    struct dt_hang_detect *hang_detect; /* which forgets the waits that a pause has interrupted */
    bool pausing;                       /* until all agents have answered */
};

void dt_pause_begin(struct dt_pause *p);
void dt_pause_answered(struct dt_pause *p); /* an ANSWER has come */
void dt_pause_on_late(struct dt_pause *p);  /* DT_TIMER_PAUSE */

#endif
