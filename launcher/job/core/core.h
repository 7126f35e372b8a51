/* The data that every part of the engine works with: the request, the ops, the state of the job,
 * its ranks and hosts, and how it ends. Data that only some parts need belongs to one of those
 * parts. */
#ifndef DT_JOB_CORE_CORE_H
#define DT_JOB_CORE_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/job/config.h"
#include "launcher/job/core/hostlinks.h"
#include "launcher/job/core/job_fsm.h"
#include "launcher/job/state/outcome.h"
#include "launcher/job/state/ranks.h"
#include "launcher/job/state/timers.h"
#include "launcher/place/plan.h"

struct dt_core {
    const struct dt_job_config *config;
    const struct dt_job_ops *ops;
    struct dt_timers timers;
    enum dt_job_state state;
    /* performs the action that an event requires */
    void (*act)(struct dt_core *c, enum dt_job_action action);
    uint32_t generation;
    struct dt_plan plan; /* of this generation; host indices are those of config->hosts */
    struct dt_ranks ranks;
    struct dt_hostlinks links;
    bool all_started; /* all ranks of the generation run */
    /* by a signal, --timeout, or because the reader of dtrun's output has gone */
    bool told_to_stop;
    struct dt_outcome outcome;
    unsigned dropped; /* the streams (dt_core_stream) of which dtrun drops what ranks write */
    unsigned left;    /* the streams whose output the job does not wait for when it ends */
};

/* Both streams, as bits. */
enum { DT_CORE_STREAMS = 3 };

void dt_core_init(struct dt_core *c, const struct dt_job_config *config,
                  const struct dt_job_ops *ops,
                  void (*act)(struct dt_core *c, enum dt_job_action action));
void dt_core_free(struct dt_core *c);

void dt_core_event(struct dt_core *c, enum dt_job_event event);
void dt_core_begin_generation(struct dt_core *c); /* resets the ranks */
/* Sets the exit code and the reason (unless an earlier reason was set), then raises the event,
 * which ends the job. Takes over reason, which may be NULL. */
void dt_core_end(struct dt_core *c, enum dt_job_event event, int exit_code, char *reason);
/* Raises IDLE or CLOSED if its condition holds (see job_fsm.h). */
void dt_core_check_idle(struct dt_core *c);
/* The bit of stream fd. */
unsigned dt_core_stream(int fd);
/* Asks ops->output_awaits about these streams. Returns those that await something, and in *what
 * the words for it. */
unsigned dt_core_late_streams(const struct dt_core *c, unsigned streams, uint64_t ms,
                              const char **what);
uint64_t dt_core_now(const struct dt_core *c);
const char *dt_core_host_name(const struct dt_core *c, size_t host);
/* Finds two hosts of the plan that are the same machine: its slots would count twice. Call this
 * once all hosts of the plan are connected. */
bool dt_core_find_duplicate_hosts(const struct dt_core *c, size_t *one, size_t *other);
/* Sends QUERY: asks the agents which deaths they know of, and in which ranks a call has returned
 * DT_ERR_PEER or is about to return it. */
void dt_core_query(struct dt_core *c);
void dt_core_on_answer(struct dt_core *c, struct dt_hostlink *h, const struct dt_msg_answer *m);

#endif
