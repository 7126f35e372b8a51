/* A rank's side of the socket to its agent (rankmsg.h).
 *
 * Until dt_agentlink_table has returned, only one thread may use it. Afterwards any thread may
 * send, ask and read at any time. A thread that reads an answer meant for another thread passes it
 * on. A thread that reads that a communicator was stopped calls the link's "stop". */
#ifndef DT_WORLD_AGENTLINK_H
#define DT_WORLD_AGENTLINK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/dtrun.h"
#include "runtime/wire/hostshm.h"
#include "runtime/wire/rankmsg.h"
#include "runtime/world/agentenv.h"

struct dt_reply;

struct dt_agentlink {
    int fd; /* -1: none */
    /* identify the socket: a program may close it and open something else as this descriptor */
    dev_t dev;
    ino_t ino;
    /* The agent has stopped a communicator (0: all of them), or has itself ended. Any thread may
     * call this and the next function. */
    void (*stop)(void *arg, uint64_t comm, int code, uint32_t culprit);
    /* The socket cannot be read any more, although the agent still runs. */
    void (*lost)(void *arg, int error);
    void *arg;

    pthread_mutex_t lock;    /* protects reading and the following fields */
    pthread_cond_t moved;    /* a message has been read, or the reading thread has stopped */
    struct dt_reply *wanted; /* the questions of waiting threads */
    bool reading;            /* one of these threads sleeps until fd or nudge is readable */
    int nudge;               /* eventfd: another thread has read a message that may be for them */
    bool over;               /* there will be no more answers */
};

/* Functions that return dt_result_t set dt_last_error when they fail. */
void dt_agentlink_none(struct dt_agentlink *l);
/* Takes the inherited socket: checks that it is the agent's, marks it CLOEXEC, and locks it, so
 * that a second process of this rank fails at once. If there is no socket, the error says why, as
 * far as it can be found out. */
dt_result_t dt_agentlink_open(struct dt_agentlink *l, const struct dt_agentenv *env);
/* Sends HELLO and waits for the welcome. Maps the host's shared memory. */
dt_result_t dt_agentlink_hello(struct dt_agentlink *l, const struct dt_agentenv *env, uint16_t port,
                               struct dt_rankmsg *welcome, struct dt_hostshm *shm);
/* Waits for the table, which the agent sends when every rank of the job has sent HELLO. The caller
 * frees it with dt_msg_free. */
dt_result_t dt_agentlink_table(struct dt_agentlink *l, const struct dt_hostshm *shm,
                               union dt_msg *table);
/* The descriptor, if it still is the socket; else -1 with errno EBADF. */
int dt_agentlink_fd(const struct dt_agentlink *l);
/* No other thread may be using it. A descriptor that is not the socket any more stays open. */
void dt_agentlink_close(struct dt_agentlink *l);

/* Handles all messages that have arrived, without waiting. */
void dt_agentlink_poll(struct dt_agentlink *l);

/* Tells the agent of a commit, or of a restore: see struct dt_msg_commit. */
dt_result_t dt_agentlink_commit(struct dt_agentlink *l, int64_t step, uint8_t kind);
/* Sends a message for the user, through the agent to dtrun. */
dt_result_t dt_agentlink_note(struct dt_agentlink *l, const char *text);
/* As dt_agentlink_note, but only dtrun --verbose shows it. */
dt_result_t dt_agentlink_detail(struct dt_agentlink *l, const char *text);

/* Tells the agent that a call has failed, and why. It then fails with this reason on all ranks of
 * the communicator (0: of the job), on all hosts, even if this rank exits right afterwards. wait:
 * waits for room in the socket. Otherwise, if there is no room, the agent learns of the failure
 * from the communicator's memory, which the caller stops. */
void dt_agentlink_failed(struct dt_agentlink *l, uint64_t comm, dt_result_t code, uint32_t culprit,
                         const char *text, bool wait);
/* Tells dtrun the limit of this rank's calls. */
dt_result_t dt_agentlink_limit(struct dt_agentlink *l, uint32_t ms);

/* Maps the memory of a communicator that has "members" ranks on this host, and size ranks in all.
 * DT_ERR_STATE: the job has been stopped. */
dt_result_t dt_agentlink_want_memory(struct dt_agentlink *l, uint64_t comm, uint32_t members,
                                     uint32_t size, uint32_t generation, struct dt_hostshm *shm);
void dt_agentlink_free_memory(struct dt_agentlink *l, uint64_t comm);
/* Asks for a memory file of this size, for buffers of the communicator's ranks on this host. All of
 * them ask for it in the call of that number. Returns a descriptor, which the caller closes, and
 * the file's number, or -1 with errno. */
int dt_agentlink_want_segment(struct dt_agentlink *l, uint64_t comm, uint64_t call, uint64_t bytes,
                              uint32_t members, uint64_t *number);

/* A descriptor that one rank of a communicator gives to other ranks on its host. */
struct dt_given {
    uint64_t comm;
    uint64_t call;
    uint64_t bytes;   /* an identifier that all of them pass; not 0 */
    uint32_t members; /* the communicator's ranks on this host */
    uint32_t giver;   /* the giver's local rank in the job */
    uint32_t takers;  /* number of takers */
};

/* The giver's side; it keeps its own descriptor. Takers may ask once this has returned 0. -1 with
 * errno: they may not. */
int dt_agentlink_give(struct dt_agentlink *l, const struct dt_given *given, int fd);
/* The taker's side. Returns a descriptor, which the caller closes, or -1 with errno. */
int dt_agentlink_want_given(struct dt_agentlink *l, const struct dt_given *given);

/* Reports a watched step and returns when the agent lets this rank continue. For --inject exit,
 * ends the process here. */
void dt_agentlink_hold(struct dt_agentlink *l, int64_t step);

#endif
