/* What earlier generations of a job left on this host: found by the environment that every rank
 * hands down. When both processes of an agent are killed at once and the ranks had no control
 * group, nothing else leads to the descendants of its ranks. */
#ifndef DT_AGENT_LEFTOVERS_H
#define DT_AGENT_LEFTOVERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct dt_leftover {
    pid_t pid;
    uint32_t generation;
    int error; /* why it cannot be killed; 0: it was, and has not ended yet */
};

/* Whether the n bytes, a content of /proc/PID/environ, are of a rank of this job, or of what it
 * started, and of which generation. Pure. */
bool dt_leftovers_parse(const char *text, size_t n, const char *job_id, uint32_t *generation);

/* Sends SIGKILL to every process of an earlier generation than this one, whoever's child it is, and
 * returns how many there were; *example is one of them, if possible one that cannot be killed. 0
 * means that none is left; until then, call again. It does not see a process whose environment it
 * may not read, or that has cleared it. */
size_t dt_leftovers_kill(const char *job_id, uint32_t generation, struct dt_leftover *example);

#endif
