/* The agent's side of the sockets to its ranks, and of the memory that it shares with them.
 *
 * Each local rank inherits one end of a SOCK_SEQPACKET pair (DTRUN_AGENT_FD). A linked rank says
 * hello on it and receives the job's secret and a sealed memfd, which holds the control page (abort
 * word, step and state of each rank) and the staging area for the host's collectives. A program
 * that is not linked never uses the socket. */
#ifndef DT_AGENT_RANKLINK_RANKSOCK_H
#define DT_AGENT_RANKLINK_RANKSOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "launcher/base/error.h"
#include "runtime/wire/msg.h"

struct dt_ranksock;

struct dt_ranksock_events { /* no event may call dt_ranksock_destroy */
    /* What the launcher must know: RANK_HELLO, COMMIT, LOG, FAILED, LIMIT or LAST_CALLS. */
    void (*send)(void *arg, uint8_t type, const void *msg);
    /* A watched rank has called dt_step and waits inside it until dt_ranksock_go. */
    void (*step)(void *arg, uint32_t local_rank, int64_t step);
    /* Returns whether ranks may send more. If not, dt_ranksock_room follows. */
    bool (*has_room)(void *arg);
};

struct dt_rank_state {
    bool linked; /* has said hello */
    bool finalized;
    bool peer_lost; /* one of its calls has returned DT_ERR_PEER */
    bool gpu_lost;  /* the GPU of another rank has ended all its calls */
    bool dumping;   /* is writing its last calls */
    bool failed;    /* a communicator failed for good, and the rank has not freed it */
    int64_t step;   /* -1: none */
    pid_t pid;      /* of the linked process */
};

/* start must outlive the object. Returns NULL with err if memory or descriptors have run out. */
struct dt_ranksock *dt_ranksock_create(uv_loop_t *loop, const struct dt_msg_start *start,
                                       const struct dt_ranksock_events *events, void *arg,
                                       struct dt_error *err);
/* Returns the end that local rank i inherits. The agent closes it after the fork
 * (dt_ranksock_forked). */
int dt_ranksock_child_fd(const struct dt_ranksock *s, uint32_t local_rank);
void dt_ranksock_forked(struct dt_ranksock *s, uint32_t local_rank);
/* Sends the table to every rank that has said hello, and later to the others when they do. Ignores
 * the table of another generation. */
void dt_ranksock_table(struct dt_ranksock *s, const struct dt_msg_table *table);
/* Sets the abort word, wakes every waiting rank and informs all: calls on this communicator, or on
 * all if comm is 0, return code (a dt_result_t) with the reason text. The first call wins. */
void dt_ranksock_abort(struct dt_ranksock *s, uint64_t comm, int code, uint32_t culprit_rank,
                       const char *text);
/* Call this before dt_ranksock_abort: sets how a rank of the job ended, if it died, as encoded by
 * dt_hostshm_ending_of. */
void dt_ranksock_ended(struct dt_ranksock *s, uint32_t rank, uint32_t ending);
/* The ranks are being stopped: one that cannot end by itself has to leave by this time of
 * dt_now_ns. */
void dt_ranksock_leave_by(struct dt_ranksock *s, uint64_t ns);
/* Reads what the rank sent before it died, and calls the events. Call this when the rank was
 * reaped, before dt_ranksock_state, because a hello or a commit may still be in its socket. For a
 * living rank it reads why the rank gave up. */
void dt_ranksock_drain(struct dt_ranksock *s, uint32_t local_rank);
/* There is room again for messages of ranks. */
void dt_ranksock_room(struct dt_ranksock *s);
struct dt_rank_state dt_ranksock_state(const struct dt_ranksock *s, uint32_t local_rank);
/* Returns, by local rank, whether the rank is in a call that waits for others, on any communicator.
 * The caller frees it. */
bool *dt_ranksock_inside(const struct dt_ranksock *s);
/* Fills in what PONG says about calls: limit_ms, more and comms, which dt_callwatch_free_report
 * frees. asked lists the requested communicators (struct dt_msg_asked). Also reports failures that
 * are visible in shared memory but were not reported by message. */
void dt_ranksock_look(struct dt_ranksock *s, const struct dt_msg_list *asked,
                      struct dt_msg_pong *pong);
/* The ranks were stopped and continue: their waiting times count from now. */
void dt_ranksock_reset_waits(struct dt_ranksock *s);

/* Makes the rank wait inside dt_step, once, when it reaches this step or a later one: the step
 * event is called, and dt_step returns only after dt_ranksock_go. Used for faults that must be
 * triggered at an exact step. */
void dt_ranksock_watch_step(struct dt_ranksock *s, uint32_t local_rank, int64_t step);
/* exit_code 0..255 makes the waiting rank exit with it; DT_RANK_GO_ON (rankmsg.h) lets it continue.
 */
void dt_ranksock_go(struct dt_ranksock *s, uint32_t local_rank, int exit_code);

/* Accepts NULL. Closes the sockets at once. The memory is freed when the loop has run the close
 * callbacks. */
void dt_ranksock_destroy(struct dt_ranksock *s);

#endif
