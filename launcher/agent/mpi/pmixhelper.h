/* dtrun-pmix, the PMIx server for this host's ranks if their program needs one, as the agent sees
 * it: a process that reports which variables the ranks need, and then exchanges fences. */
#ifndef DT_AGENT_MPI_PMIXHELPER_H
#define DT_AGENT_MPI_PMIXHELPER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "runtime/wire/msg.h"

enum { DT_PMIX_DIR = 64 }; /* bytes of the path of its directory */

struct dt_pmixhelper;

struct dt_pmixhelper_events {                      /* none may destroy the helper */
    void (*ready)(void *arg, struct dt_strs *env); /* once; it may take over the contents of env */
    void (*fence)(void *arg, const char *data, size_t n);
    void (*share)(void *arg, const struct dt_msg_share *m); /* for all hosts, this one included */
    void (*abort)(void *arg, uint32_t rank, int exit_code);
    void (*state)(void *arg, uint32_t rank, bool inside); /* of MPI: Init or Finalize was called */
    void (*log)(void *arg, const char *text);
    void (*print)(void *arg, const struct dt_msg_output *m); /* for a rank */
    void (*gone)(void *arg, const char *why); /* it cannot be started, or has ended */
};

/* Creates a directory for it, writes the path to dir (DT_PMIX_DIR bytes), and starts it. ready or
 * gone follows. start outlives it. It ends when the agent's children are swept. */
struct dt_pmixhelper *dt_pmixhelper_create(uv_loop_t *loop, const struct dt_msg_start *start,
                                           char *dir, const struct dt_pmixhelper_events *events,
                                           void *arg);
/* A child of the agent has died. Returns whether it was the helper. h may be NULL. */
bool dt_pmixhelper_died(struct dt_pmixhelper *h, const siginfo_t *info);
/* Reads what it has sent. Call this when a rank was reaped, because a state of the rank may still
 * be in its socket. It must not be called from an event. h may be NULL. */
void dt_pmixhelper_drain(struct dt_pmixhelper *h);
void dt_pmixhelper_fenced(struct dt_pmixhelper *h, const struct dt_msg_fenced *m);
void dt_pmixhelper_share(struct dt_pmixhelper *h, const struct dt_msg_share *m);
void dt_pmixhelper_destroy(struct dt_pmixhelper *h); /* accepts NULL */

#endif
