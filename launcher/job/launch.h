/* Starts a generation: takes it from usable hosts to running ranks that know each other's
 * addresses. */
#ifndef DT_JOB_LAUNCH_H
#define DT_JOB_LAUNCH_H

#include "launcher/job/core/core.h"
#include "launcher/job/network.h"
#include "launcher/job/state/fence.h"
#include "launcher/job/state/injections.h"
#include "launcher/job/state/refusal.h"
#include "launcher/job/state/restart.h"

struct dt_launch { /* what it points to must outlive it */
    struct dt_core *core;
    struct dt_network *network;
    const struct dt_injections *injections;
    struct dt_restart *restart; /* read, except that a rank's dt_init sets restart->linked */
    const char *job_id;
    const uint8_t *secret;
    const char *checkpoint_dir;
    struct dt_refusal refusal;
    struct dt_fence fence_of_mpi;
    uint16_t rendezvous_port; /* Horovod's, from the first host's READY; 0: ranks need none */
};

void dt_launch_free(struct dt_launch *l);

void dt_launch_check_hosts(struct dt_launch *l); /* DT_ACT_CHECK_HOSTS */
void dt_launch_start(struct dt_launch *l);       /* a generation begins: START to all its hosts */
/* Sends GO if every host is ready to run its ranks and it is known which addresses ranks use. */
void dt_launch_maybe_go(struct dt_launch *l);
void dt_launch_refuse_network(struct dt_launch *l); /* the hosts do not reach each other */

void dt_launch_on_ready(struct dt_launch *l, struct dt_hostlink *h, const struct dt_msg_ready *m);
void dt_launch_on_started(struct dt_launch *l, struct dt_hostlink *h,
                          const struct dt_msg_started *m);
/* The generation has ended on the host. Returns false if the message is stale. Otherwise the caller
 * does without the host, or refuses the start and raises SPAWN_FAILED. */
bool dt_launch_on_spawn_failed(const struct dt_launch *l, struct dt_hostlink *h,
                               const struct dt_msg_spawn_failed *m);
void dt_launch_refuse(struct dt_launch *l, const struct dt_hostlink *h,
                      const struct dt_msg_spawn_failed *why);
void dt_launch_on_fence(struct dt_launch *l, const struct dt_hostlink *h,
                        const struct dt_msg_fence *m);
/* Sends it to all hosts, so that each gets all SHAREs in the same order. */
void dt_launch_on_share(struct dt_launch *l, const struct dt_hostlink *h,
                        const struct dt_msg_share *m);
/* Returns true if this was the rank's first dt_init. The rank may wait for one that has ended. */
bool dt_launch_on_rank_hello(struct dt_launch *l, const struct dt_msg_rank_hello *m);
void dt_launch_on_timeout(struct dt_launch *l); /* DT_TIMER_START */

#endif
