/* Records how the processes of a generation ended. Reports each death to the launcher, and to the
 * ranks of the host if they would wait for the dead rank, but only once all processes have been
 * started. */
#ifndef DT_AGENT_DEATHS_H
#define DT_AGENT_DEATHS_H

#include <signal.h>
#include <stdbool.h>

struct dt_generation;
struct dt_process;

void dt_deaths_note(struct dt_generation *g, struct dt_process *p, const siginfo_t *info);
void dt_deaths_report(struct dt_generation *g); /* reports all that have not been reported */
/* Returns whether a death has not been reported yet, or a process is about to end. */
bool dt_deaths_owed(const struct dt_generation *g);

#endif
