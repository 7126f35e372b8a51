/* Sends and receives of GPU memory, through pinned host memory. */
#ifndef DT_P2P_TRANSFER_GPU_H
#define DT_P2P_TRANSFER_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/dtrun.h"

struct dt_operation;
struct dt_p2p;

/* Moves the operation's data and drops its order. The caller holds the channel's lock. limit_ms:
 * how long it may wait for this rank's GPU (struct dt_comm). watched: as for dt_p2p_transfer. */
dt_result_t dt_p2p_transfer_gpu(struct dt_p2p *channel, struct dt_operation *o, uint32_t limit_ms,
                                bool watched);

#endif
