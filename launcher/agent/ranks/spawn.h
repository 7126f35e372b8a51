/* Starts the processes of one host, its ranks and auxiliaries: all or none.
 *
 * Every process is forked, enters its directory and finds its program. Then it waits at a gate,
 * which dt_spawn_go opens once all are there. Each process reports on the error pipe that it is
 * ready, or what failed. EOF on that pipe means that all have executed their programs. */
#ifndef DT_AGENT_RANKS_SPAWN_H
#define DT_AGENT_RANKS_SPAWN_H

#include <sys/resource.h>
#include <uv.h>

#include "launcher/agent/mpi/pmisock.h"
#include "launcher/agent/ranklink/ranksock.h"
#include "launcher/place/bind.h"

enum {
    DT_SPAWN_SOCKET_FD = 3, /* the number of a rank's agent socket */
    DT_SPAWN_PMI_FD = 4,    /* the number of its socket for PMI-1 */
};

struct dt_spawned { /* a process; each fd is -1 if there is none */
    pid_t pid;      /* 0: it was not forked */
    int in;         /* writing end of its stdin, for a rank that has one */
    int out;        /* reading ends of its stdout and stderr */
    int err;
};

struct dt_spawn_config {
    const struct dt_msg_start *start; /* outlives the spawn */
    /* The processes to start (role.h): first the ranks, in the order of start. */
    struct dt_u32s numbers;
    struct dt_ranksock *sock;
    struct dt_pmisock *pmi;
    struct dt_strs devices;    /* from dt_gpu_list */
    bool has_mask;             /* dtrun sets CUDA_VISIBLE_DEVICES of ranks */
    uint16_t ras_port;         /* for NCCL; 0: not known */
    uint32_t cores;            /* of the host, as many as its ranks may use at once */
    bool cores_limited;        /* control groups grant less than all CPUs that ranks may run on */
    struct dt_cpus cpus;       /* with --bind-to: the CPUs that ranks are bound to */
    int cgroup;                /* the ranks' cgroup; -1: none */
    struct rlimit files_limit; /* to restore, because the agent has raised its own */
    struct rlimit file_size_limit;
};

struct dt_spawn_events {
    void (*forking)(void *arg); /* after each fork: many take long, without a turn of the loop */
    /* The program needs PMIx, as why shows; called before ready. */
    void (*needs_pmix)(void *arg, const char *why);
    void (*uses_horovod)(void *arg, const char *why);
    void (*ready)(void *arg);   /* all wait at the gate */
    void (*running)(void *arg); /* all run their program */
    /* The first failure, once; running does not follow. The caller kills the processes that were
     * forked. */
    void (*failed)(void *arg, const struct dt_msg_spawn_failed *why);
};

struct dt_spawn;

/* Forks numbers.n processes and fills processes. Returns 0, and events follow. If not all could be
 * forked, returns -1 with *why (valid until the next call); processes then holds those that were
 * forked. */
int dt_spawn_open(struct dt_spawn **spawn, uv_loop_t *loop, const struct dt_spawn_config *config,
                  struct dt_spawned *processes, const struct dt_spawn_events *events, void *arg,
                  struct dt_msg_spawn_failed *why);
/* Opens the gate. Call this after ready. failed follows at once if go cannot be stored. */
void dt_spawn_go(struct dt_spawn *s, const struct dt_msg_go *go);
/* Call this if a process was reaped before running or failed: it may have died without a report. */
void dt_spawn_died(struct dt_spawn *s, uint32_t index, const struct dt_msg_exit *end);
void dt_spawn_close(struct dt_spawn *s); /* works before an event, too; accepts NULL */

#endif
