/* Asks nvidia-smi for the state of the GPUs without blocking the loop. If it does not answer in
 * time, it is abandoned. */
#ifndef DT_AGENT_FACTS_GPUASK_H
#define DT_AGENT_FACTS_GPUASK_H

#include <uv.h>

#include "launcher/agent/sweep/sweep.h"
#include "runtime/wire/msg.h"

struct dt_gpuask;

/* Takes over facts and calls done with them, once, after at most 5 s. done must then free them. */
void dt_gpuask_begin(uv_loop_t *loop, struct dt_msg_facts facts, struct dt_groups *groups,
                     void (*done)(void *arg, struct dt_msg_facts *facts), void *arg);

#endif
