/* A rank's side of the socket to its agent (rankmsg.h).
 *
 * Until dt_agentlink_table has returned it is for one thread; then any may send, ask and heed at
 * any time. What a thread reads that is meant for another, it hands to that one; what stops a
 * communicator goes to the link's "stop", whoever reads it. */
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
    /* which socket it is: a program may have closed it, and opened something else there */
    dev_t dev;
    ino_t ino;
    /* The agent has stopped a communicator for this reason, or all (0), or has itself ended. Any
     * thread calls it, and the other. */
    void (*stop)(void *arg, uint64_t comm, int code, uint32_t culprit);
    /* Nothing can be read any more, for this reason, though the agent has not ended. */
    void (*lost)(void *arg, int error);
    void *arg;

    pthread_mutex_t lock;    /* of what follows, and of reading */
    pthread_cond_t moved;    /* something has been read, or the reader has gone */
    struct dt_reply *wanted; /* by threads that have asked */
    bool reading;            /* one of them sleeps until fd or nudge can be read */
    int nudge;               /* eventfd: another thread has read what may be for them */
    bool over;               /* nobody is answered any more */
};

/* All functions that return dt_result_t have set dt_last_error when they fail. */
void dt_agentlink_none(struct dt_agentlink *l);
/* Takes the inherited socket: checks that it is one and whose, marks it CLOEXEC, and locks it so
 * that a second process of the same rank is told at once. Where there is none it says why, as far
 * as that can be known. */
dt_result_t dt_agentlink_open(struct dt_agentlink *l, const struct dt_agentenv *env);
/* Says hello and waits for the welcome; maps the host's memory. */
dt_result_t dt_agentlink_hello(struct dt_agentlink *l, const struct dt_agentenv *env, uint16_t port,
                               struct dt_rankmsg *welcome, struct dt_hostshm *shm);
/* Waits for the table, which comes when every rank of the job has said hello. dt_msg_free frees it.
 */
dt_result_t dt_agentlink_table(struct dt_agentlink *l, const struct dt_hostshm *shm,
                               union dt_msg *table);
/* fd, where it is still the socket; or -1 with errno EBADF. */
int dt_agentlink_fd(const struct dt_agentlink *l);
/* No other thread may be using it. What is not the socket any more stays open. */
void dt_agentlink_close(struct dt_agentlink *l);

/* Reads what the agent has said, without waiting. */
void dt_agentlink_heed(struct dt_agentlink *l);

/* Tells the agent of a commit or of what was restored. */
dt_result_t dt_agentlink_commit(struct dt_agentlink *l, int64_t step, bool restored);
/* Tells the user, through the agent and dtrun. */
dt_result_t dt_agentlink_note(struct dt_agentlink *l, const char *text);

/* Tells the agent that a call fails and why, so that it fails on every rank of the communicator (0:
 * of the job), on all hosts, for that reason and not because this rank is about to end. With wait
 * it waits for room in the socket; without, what finds none the agent learns from the
 * communicator's memory, which the caller stops. */
void dt_agentlink_failed(struct dt_agentlink *l, uint64_t comm, dt_result_t code, uint32_t culprit,
                         const char *text, bool wait);
/* Tells dtrun that calls of this rank may wait for so long only. */
dt_result_t dt_agentlink_limit(struct dt_agentlink *l, uint32_t ms);

/* Maps the memory of a communicator that has so many ranks on this host, and size in all.
 * DT_ERR_STATE: the job has been stopped. */
dt_result_t dt_agentlink_want_memory(struct dt_agentlink *l, uint64_t comm, uint32_t members,
                                     uint32_t size, uint32_t generation, struct dt_hostshm *shm);
void dt_agentlink_free_memory(struct dt_agentlink *l, uint64_t comm);
/* The memory file of so many bytes for buffers of a communicator's ranks of this host, all of which
 * want it in the call of that number. Returns a descriptor, which the caller closes, and its
 * number, or -1 with errno. */
int dt_agentlink_want_segment(struct dt_agentlink *l, uint64_t comm, uint64_t call, uint64_t bytes,
                              uint32_t members, uint64_t *number);

/* A descriptor that one of the ranks of a communicator on this host gives to some of the others. */
struct dt_given {
    uint64_t comm;
    uint64_t call;
    uint64_t bytes;   /* any number but 0 that all of them name */
    uint32_t members; /* ranks of the communicator on this host */
    uint32_t giver;   /* its local rank in the job */
    uint32_t takers;  /* how many others want it */
};

/* The giver's part, which leaves it its descriptor: they can want it once this has returned 0. -1:
 * errno says why they cannot. */
int dt_agentlink_give(struct dt_agentlink *l, const struct dt_given *given, int fd);
/* Returns a descriptor, which the caller closes, or -1 with errno. */
int dt_agentlink_want_given(struct dt_agentlink *l, const struct dt_given *given);

/* Reports a watched step and returns when the agent lets this rank go on; a fault that was asked
 * for with --inject exit: ends the process here. */
void dt_agentlink_hold(struct dt_agentlink *l, int64_t step);

#endif
