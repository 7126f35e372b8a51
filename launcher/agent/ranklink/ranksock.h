/* The agent's side of the sockets to its ranks, and of the memory it shares with them.
 *
 * Each local rank inherits one end of a SOCK_SEQPACKET pair (DTRUN_AGENT_FD). A linked rank says
 * hello on it and receives the job's secret and a sealed memfd: control page (abort word, step and
 * state of each rank) and staging for the host's collectives. A program that is not linked never
 * touches it. */
#ifndef DT_AGENT_RANKSOCK_H
#define DT_AGENT_RANKSOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "launcher/base/error.h"
#include "runtime/wire/msg.h"

struct dt_ranksock;

struct dt_ranksock_events { /* none may call dt_ranksock_destroy */
    void (*hello)(void *arg, uint32_t rank, uint16_t port);
    void (*commit)(void *arg, int64_t step, bool restored); /* from the rank that coordinates */
    /* A watched rank has called dt_step and is held inside it until dt_ranksock_go. */
    void (*step)(void *arg, uint32_t rank, int64_t step);
    void (*log)(void *arg, const char *text); /* a rank misbehaves, or has a warning */
    /* A call of a rank fails with code (a dt_result_t), as those of all other ranks of the
     * communicator are to; comm 0: those of the job. */
    void (*failed)(void *arg, uint64_t comm, uint32_t culprit, int code, const char *text);
    /* Calls of a rank may wait for so long only, which is less than what was told before. */
    void (*limit)(void *arg, uint32_t ms);
    /* What a rank called last, one of whose calls has failed for good: once for each rank. */
    void (*last_calls)(void *arg, const struct dt_msg_last_calls *m);
    /* Whether ranks may say more; where not, dt_ranksock_room follows. */
    bool (*has_room)(void *arg);
};

struct dt_rank_state {
    bool linked; /* said hello */
    bool finalized;
    bool peer_lost; /* one of its calls has returned DT_ERR_PEER */
    bool dumping;   /* it writes down its last calls */
    bool failed;    /* a communicator has failed for good, and it has not dealt with that */
    int64_t step;   /* -1: none */
    pid_t pid;      /* of the process that is linked */
};

/* start must outlive the object. Returns NULL with err set (memory, descriptors). */
struct dt_ranksock *dt_ranksock_create(uv_loop_t *loop, const struct dt_msg_start *start,
                                       const struct dt_ranksock_events *events, void *arg,
                                       struct dt_error *err);
/* The end that local rank i inherits; the agent closes it after the fork (dt_ranksock_forked). */
int dt_ranksock_child_fd(const struct dt_ranksock *s, uint32_t local_rank);
void dt_ranksock_forked(struct dt_ranksock *s, uint32_t local_rank);
/* Hands the table to every rank that said hello, and to those who will. */
void dt_ranksock_table(struct dt_ranksock *s, const struct dt_msg_table *table);
/* Sets the abort word, wakes every waiter, tells every rank: calls on this communicator, or on all
 * where comm is 0, return code (a dt_result_t), and text is why. The first one counts. */
void dt_ranksock_abort(struct dt_ranksock *s, uint64_t comm, int code, uint32_t culprit_rank,
                       const char *text);
/* Before that: how a rank of the job ended, as of dt_hostshm_ending_of, where it died. */
void dt_ranksock_ended(struct dt_ranksock *s, uint32_t rank, uint32_t ending);
/* Reads what the rank sent before it died, calling the events. To be called when the rank was
 * reaped, before dt_ranksock_state is asked: a hello or a commit may still stand in its socket. And
 * in that of another rank, why this one gave up. */
void dt_ranksock_drain(struct dt_ranksock *s, uint32_t local_rank);
/* There is room again for what ranks say. */
void dt_ranksock_room(struct dt_ranksock *s);
struct dt_rank_state dt_ranksock_state(const struct dt_ranksock *s, uint32_t local_rank);
/* By local rank: whether it is in a call that waits for others, on whatever communicator. The
 * caller frees it. */
bool *dt_ranksock_inside(const struct dt_ranksock *s);
/* Fills in what PONG tells of calls: limit_ms, more and comms, which dt_callwatch_free_told frees.
 * asked: of which communicators (struct dt_msg_asked). Tells, too, of failures that are seen in
 * memory, but of which no message has come. */
void dt_ranksock_look(struct dt_ranksock *s, const struct dt_msg_list *asked,
                      struct dt_msg_pong *pong);
/* The ranks were stopped, and go on: how long they have waited counts from now. */
void dt_ranksock_reset_waits(struct dt_ranksock *s);

/* Lets the rank stop inside dt_step when it reaches this step or a later one, once: the step event
 * is called, and dt_step returns only after dt_ranksock_go. For faults that must hit an exact step.
 */
void dt_ranksock_watch_step(struct dt_ranksock *s, uint32_t local_rank, int64_t step);
/* exit_code 0..255 makes the held rank exit with it; DT_RANK_GO_ON (rankmsg.h) lets it go on. */
void dt_ranksock_go(struct dt_ranksock *s, uint32_t local_rank, int exit_code);

/* Accepts NULL. Closes the sockets at once; its memory goes when the loop has run its close
 * callbacks. */
void dt_ranksock_destroy(struct dt_ranksock *s);

#endif
