/* The ranks of one START, from the fork until they and all their descendants have ended.
 *
 * A generation ends by sending either SPAWN_FAILED (no rank ran) or DONE, once every process of it
 * is gone, or is stuck in the kernel 10 s after SIGKILL. Then it is over and may be destroyed. */
#ifndef DT_AGENT_GENERATION_H
#define DT_AGENT_GENERATION_H

#include <signal.h>
#include <sys/resource.h>
#include <uv.h>

#include "launcher/agent/io/channel.h"
#include "launcher/agent/io/standby.h"
#include "launcher/agent/ranks/oom.h"
#include "launcher/agent/sweep/sweep.h"

struct dt_generation;

struct dt_agent_host { /* what generations need from the agent; outlives them */
    uv_loop_t *loop;
    struct dt_channel *channel;
    struct dt_standby *standby;
    struct dt_strs gpus; /* the GPUs that were found */
    uint32_t cores;
    uint16_t free_port;            /* as sent in HELLO */
    struct rlimit files_limit;     /* the limit before the agent raised its own */
    struct rlimit file_size_limit; /* likewise */
    struct dt_oom oom;
    /* whole seconds of CPU time of the last process that was reaped, and of those it had reaped */
    uint64_t reaped_cpu_s;
    bool told_memory_limit;
    bool told_time_limit;
    bool told_shm_size;
    unsigned warned_unserved;  /* libraries (enum dt_library) of which the user was warned */
    char *mpi_dir;             /* DT_PMIX_DIR bytes that receive the directory of the PMIx server */
    char *cgroup;              /* DT_CGROUP_PATH bytes that receive the path of the ranks' cgroup */
    struct dt_groups *groups;  /* receives the ranks' process groups */
    void (*alive)(void *arg);  /* call it often while the loop is blocked */
    void (*vanish)(void *arg); /* --inject host: end as if the power had failed; does not return */
    void *arg;
};

/* Takes over the contents of *start. */
struct dt_generation *dt_generation_create(struct dt_agent_host *host, struct dt_msg_start *start);
void dt_generation_destroy(struct dt_generation *g); /* accepts NULL */

bool dt_generation_over(const struct dt_generation *g);

/* Returns whether other hosts may have noticed a death that this one has not reported yet. A
 * process closes its files before it can be reaped, and reports of deaths are held back while other
 * processes of the host are being started. */
bool dt_generation_has_unreported_deaths(const struct dt_generation *g);

/* Lists the living ranks in which a call has returned DT_ERR_PEER or may soon do so: they may still
 * report something. The caller frees list->v. */
void dt_generation_leaving(const struct dt_generation *g, struct dt_u32s *list);

/* Call this for each process below the agent that was reaped. */
void dt_generation_died(struct dt_generation *g, const siginfo_t *info);
/* Call this when the channel has room again. */
void dt_generation_room(struct dt_generation *g);

/* The following functions handle what the launcher sends. */
void dt_generation_go(struct dt_generation *g, const struct dt_msg_go *m);
void dt_generation_table(struct dt_generation *g, const struct dt_msg_table *m);
void dt_generation_signal(struct dt_generation *g, int signo);
/* The agent was sent SIGTERM. The ranks may have been sent it, too, as when the host shuts down,
 * and the launcher will answer with STOP. */
void dt_generation_expect_stop(struct dt_generation *g);
/* had_term: the ranks have just received SIGTERM, so it is not sent again. */
void dt_generation_stop(struct dt_generation *g, uint32_t grace_ms, bool had_term);
void dt_generation_abort(struct dt_generation *g, const struct dt_msg_abort *m);
void dt_generation_credit(struct dt_generation *g, const struct dt_msg_credit *m);
/* Returns false if the message is invalid. */
bool dt_generation_fenced(struct dt_generation *g, const struct dt_msg_fenced *m);
/* A request of any host's MPI ranks, for the PMIx server of each host. */
void dt_generation_share(struct dt_generation *g, const struct dt_msg_share *m);
/* Returns false if it is more than the credit. */
bool dt_generation_stdin(struct dt_generation *g, const struct dt_msg_stdin *m);
void dt_generation_stdin_eof(struct dt_generation *g, const struct dt_msg_stdin_eof *m);
/* Fills in every local rank's step, and what dt_ranksock_look tells. Free the contents of pong with
 * dt_generation_free_pong. */
void dt_generation_pong(struct dt_generation *g, const struct dt_msg_list *asked,
                        struct dt_msg_pong *pong);
void dt_generation_free_pong(struct dt_msg_pong *pong);

#endif
