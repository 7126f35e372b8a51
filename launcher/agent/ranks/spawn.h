/* Starting the processes of one host, its ranks and the auxiliaries beside them: all or none.
 *
 * Every one is forked, enters its directory and finds its program, and then waits at a gate that
 * dt_spawn_go opens once all are there. The error pipe brings back, from each, that it is ready or
 * what failed, and its EOF says that all have executed their programs. */
#ifndef DT_AGENT_SPAWN_H
#define DT_AGENT_SPAWN_H

#include <sys/resource.h>
#include <uv.h>

#include "launcher/agent/mpi/pmisock.h"
#include "launcher/agent/ranklink/ranksock.h"
#include "launcher/place/bind.h"

enum {
    DT_SPAWN_SOCKET_FD = 3, /* where a rank finds its agent socket, */
    DT_SPAWN_PMI_FD = 4,    /* and that for PMI-1 */
};

struct dt_spawned { /* a process; each fd is -1 when there is none */
    pid_t pid;      /* 0: was not forked */
    int in;         /* writing end of its stdin, for the rank that has one */
    int out;        /* reading ends of its stdout and stderr */
    int err;
};

struct dt_spawn_config {
    const struct dt_msg_start *start; /* outlives the spawn */
    struct dt_u32s numbers; /* whom to start (role.h): first the ranks, in the order of start */
    struct dt_ranksock *sock;
    struct dt_pmisock *pmi;
    struct dt_strs devices; /* what dt_gpu_list says */
    bool has_mask;          /* ranks get a CUDA_VISIBLE_DEVICES */
    uint16_t ras_port;      /* for NCCL; 0: not known */
    uint32_t cores;         /* of the host */
    struct dt_cpus cpus;    /* with --bind-to: those that ranks are bound to */
    int cgroup;             /* that the ranks go into; -1: none */
    struct rlimit files;    /* to restore: the agent has raised its own */
    struct rlimit file_size;
};

struct dt_spawn_events {
    /* The program does, because of this; before ready. */
    void (*needs_pmix)(void *arg, const char *why);
    void (*uses_horovod)(void *arg, const char *why);
    void (*ready)(void *arg);   /* all wait at the gate */
    void (*running)(void *arg); /* all run their program */
    /* The first failure, once; running does not follow. The caller kills those that were forked. */
    void (*failed)(void *arg, const struct dt_msg_spawn_failed *why);
};

struct dt_spawn;

/* Forks numbers.n processes and fills processes. Returns 0, and one of the events follows; or -1
 * with *why (valid until the next call) when not all could be forked: processes then holds those
 * that were. */
int dt_spawn_open(struct dt_spawn **spawn, uv_loop_t *loop, const struct dt_spawn_config *config,
                  struct dt_spawned *processes, const struct dt_spawn_events *events, void *arg,
                  struct dt_msg_spawn_failed *why);
void dt_spawn_go(struct dt_spawn *s, const struct dt_msg_go *go); /* after ready */
/* To be told when one was reaped before running or failed: it may have died without a word. */
void dt_spawn_died(struct dt_spawn *s, uint32_t index);
void dt_spawn_close(struct dt_spawn *s); /* also before an event; accepts NULL */

#endif
