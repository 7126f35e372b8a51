/* How the processes of a generation ended. Deaths are recorded when processes are reaped. They are
 * reported to the launcher, and to the ranks that would wait, once all processes have been started.
 */
#ifndef DT_AGENT_RANKS_DEATHS_H
#define DT_AGENT_RANKS_DEATHS_H

#include <signal.h>
#include <stdbool.h>

struct dt_generation;
struct dt_process;

void dt_deaths_note(struct dt_generation *g, struct dt_process *p, const siginfo_t *info);
void dt_deaths_report(struct dt_generation *g); /* reports those that are not reported yet */
/* Returns whether a death is not reported yet, or a process is about to end. */
bool dt_deaths_owed(const struct dt_generation *g);

#endif
