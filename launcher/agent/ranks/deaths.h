/* How the processes of a generation ended: written down when they are reaped, told to the launcher
 * and to the ranks that would wait for them when all have been started. */
#ifndef DT_AGENT_DEATHS_H
#define DT_AGENT_DEATHS_H

#include <signal.h>
#include <stdbool.h>

struct dt_generation;
struct dt_process;

void dt_deaths_note(struct dt_generation *g, struct dt_process *p, const siginfo_t *info);
void dt_deaths_report(struct dt_generation *g); /* those that are not reported yet */
/* Whether one is not reported yet, or a process is about to end. */
bool dt_deaths_owed(const struct dt_generation *g);

#endif
