/* Asks nvidia-smi for the state of the GPUs, beside the loop: one that does not answer is given up
 * and waited for no more. */
#ifndef DT_AGENT_GPUASK_H
#define DT_AGENT_GPUASK_H

#include <uv.h>

#include "launcher/agent/sweep/sweep.h"
#include "runtime/wire/msg.h"

struct dt_gpuask;

/* Takes facts over, and calls done with them, once, after at most 5 s; they are done's to free
 * then. */
void dt_gpuask_begin(uv_loop_t *loop, struct dt_msg_facts facts, struct dt_groups *groups,
                     void (*done)(void *arg, struct dt_msg_facts *facts), void *arg);

#endif
