/* Processes that earlier generations of a job left on this host. They are found by the environment
 * that ranks pass to their children. If both processes of an agent were killed at once and the
 * ranks had no cgroup, nothing else leads to the descendants of its ranks. */
#ifndef DT_AGENT_SWEEP_LEFTOVERS_H
#define DT_AGENT_SWEEP_LEFTOVERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct dt_leftover {
    pid_t pid;
    int error; /* why it cannot be killed; 0: it was killed, and has not ended yet */
};

/* Returns whether the n bytes, the content of /proc/PID/environ, belong to a rank of this job or to
 * a process that it started, and if so stores its generation. Pure. */
bool dt_leftovers_parse(const char *text, size_t n, const char *job_id, uint32_t *generation);

/* Sends SIGKILL to every process of an earlier generation than this one, whatever its parent.
 * Returns how many there were; *example is one of them, if possible one that cannot be killed. 0
 * means that none is left; until then, call it again. It misses a process whose environment it may
 * not read, or that has cleared it. */
size_t dt_leftovers_kill(const char *job_id, uint32_t generation, struct dt_leftover *example);

#endif
