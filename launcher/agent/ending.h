/* How the processes of a generation end: by themselves, by signals, after a grace period or killed.
 * Then whatever they left behind is killed (the sweep), their output is sent, and the generation is
 * over. */
#ifndef DT_AGENT_ENDING_H
#define DT_AGENT_ENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/msg.h"

struct dt_generation;

/* Ends the generation before any rank runs: nothing was forked, or all processes wait at the gate.
 */
void dt_ending_refuse(struct dt_generation *g, enum dt_spawn_step step, int error,
                      const char *what);
/* The processes cannot be spawned. arg: the struct dt_generation, as below. */
void dt_ending_failed(void *arg, const struct dt_msg_spawn_failed *why);

/* Starts the sweep if the last process has ended. */
void dt_ending_check(struct dt_generation *g);

/* Kills all processes. Call dt_ending_check afterwards: there may be none. */
void dt_ending_kill(struct dt_generation *g);

/* Sends SIGTERM, and kills after grace_ms. had_term: as for dt_generation_stop. */
void dt_ending_grace(struct dt_generation *g, uint32_t grace_ms, bool had_term);

/* The relay has sent all output. */
void dt_ending_flushed(void *arg);

/* Work that blocks the loop calls this, so that dtrun still hears from this host. */
void dt_ending_progress(void *arg);

#endif
