/* The buffers that the program has registered (dt_checkpoint_register), in host memory or on a GPU.
 */
#ifndef DT_CHECKPOINT_REGISTRY_H
#define DT_CHECKPOINT_REGISTRY_H

#include "runtime/checkpoint/format.h"
#include "runtime/comm/comm.h"

/* The buffers, for a call on world. That call's limit applies to copies of GPU memory, and their
 * errors name it. */
const struct dt_buffers *dt_registry_buffers(struct dt_comm *world, enum dt_call_kind call);
/* Refuses further buffers: a save or restore has begun. */
void dt_registry_close(void);
/* Frees the list, in dt_finalize. */
void dt_registry_free(void);

#endif
