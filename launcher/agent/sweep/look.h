/* A look at the processes of this machine: a child reads /proc, and the loop is told what it found.
 *
 * The loop cannot read it. That takes long where there are many processes, and longer on a busy
 * host. And it may block: the kernel takes locks that a process keeps while it waits for a file
 * system. The child ends by itself, or with the agent. */
#ifndef DT_AGENT_SWEEP_LOOK_H
#define DT_AGENT_SWEEP_LOOK_H

#include <stddef.h>
#include <sys/types.h>
#include <uv.h>

enum { DT_LOOK_ANSWER = 4096 }; /* the most bytes of an answer; one write and one read take all */

struct dt_look;

struct dt_look_at {
    /* Runs in the child, which has no descriptors of the agent any more. Writes the answer and
     * returns its length. agent: the parent. */
    size_t (*look)(const void *what, pid_t agent, void *answer);
    const void *what;
    /* Called once, unless dt_look_end comes first. n is 0 if the child has died. */
    void (*done)(void *arg, const void *answer, size_t n);
    void *arg;
};

/* Returns NULL, with errno, if no child can be forked. The look frees itself after done. */
struct dt_look *dt_look_begin(uv_loop_t *loop, const struct dt_look_at *at);
void dt_look_end(struct dt_look *look); /* accepts NULL */

#endif
