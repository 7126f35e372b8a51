/* The ranks of one START, from their fork until nothing of them is left.
 *
 * A generation ends with exactly one of SPAWN_FAILED (no rank ran) and DONE; either is sent when
 * every process of it is gone. It is over then, and may be destroyed. */
#ifndef DT_AGENT_GENERATION_H
#define DT_AGENT_GENERATION_H

#include <signal.h>
#include <sys/resource.h>
#include <uv.h>

#include "launcher/agent/io/channel.h"
#include "launcher/agent/ranks/oom.h"
#include "launcher/agent/sweep/sweep.h"

struct dt_generation;

struct dt_agent_host { /* what generations need of their surroundings; outlives them */
    uv_loop_t *loop;
    struct dt_channel *channel;
    struct dt_strs gpus; /* that were found */
    uint32_t cores;
    uint16_t free_port;      /* as HELLO has it */
    struct rlimit files;     /* as it was before the agent raised its own */
    struct rlimit file_size; /* likewise */
    struct dt_oom oom;
    char *mpi_dir; /* DT_PMIX_DIR bytes, where the directory of the PMIx server is written down */
    char *cgroup;  /* DT_CGROUP_PATH bytes, where the group of the ranks is written down */
    struct dt_groups *groups;  /* where their process groups are */
    void (*vanish)(void *arg); /* --inject host: end as if the power had failed; does not return */
    void *arg;
};

/* Takes what *start holds. */
struct dt_generation *dt_generation_create(struct dt_agent_host *host, struct dt_msg_start *start);
void dt_generation_destroy(struct dt_generation *g); /* accepts NULL */

bool dt_generation_over(const struct dt_generation *g);

/* Whether a death that others may have noticed is not told yet: a process closes its files before
 * it can be reaped, and what is reaped while others of the host are being started is kept back. */
bool dt_generation_owes_deaths(const struct dt_generation *g);

/* The ranks that are about to hear of a death, or have, and may have something to say of it; the
 * caller frees list->v. */
void dt_generation_leaving(const struct dt_generation *g, struct dt_u32s *list);

/* Any process below the agent was reaped. */
void dt_generation_died(struct dt_generation *g, const siginfo_t *info);

/* What the launcher sends. */
void dt_generation_go(struct dt_generation *g, const struct dt_msg_go *m);
void dt_generation_table(struct dt_generation *g, const struct dt_msg_table *m);
void dt_generation_signal(struct dt_generation *g, int signo);
/* had_term: the ranks have just had SIGTERM, and are not sent it again. */
void dt_generation_stop(struct dt_generation *g, uint32_t grace_ms, bool had_term);
void dt_generation_abort(struct dt_generation *g, const struct dt_msg_abort *m);
void dt_generation_credit(struct dt_generation *g, const struct dt_msg_credit *m);
/* False: it makes no sense. */
bool dt_generation_fenced(struct dt_generation *g, const struct dt_msg_fenced *m);
bool dt_generation_stdin(struct dt_generation *g,
                         const struct dt_msg_stdin *m); /* false: too much */
void dt_generation_stdin_eof(struct dt_generation *g, const struct dt_msg_stdin_eof *m);
/* Every local rank's step, and who waits in calls: in those communicators that are asked for, too.
 * dt_generation_free_pong frees what is in pong. */
void dt_generation_pong(struct dt_generation *g, const struct dt_msg_list *asked,
                        struct dt_msg_pong *pong);
void dt_generation_free_pong(struct dt_msg_pong *pong);
void dt_generation_room(struct dt_generation *g); /* the channel has room again */

#endif
