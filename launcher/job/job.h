/* The engine of a job, from connecting to its exit code: it connects to all hosts, starts the
 * ranks, passes on their output, decides what a death means, restarts or stops.
 *
 * It does no input or output and knows no clock. What happens is told to it by the functions under
 * "events"; what it does goes through the ops that it was given (ops.h). Given the same events at
 * the same times it does the same. */
#ifndef DT_JOB_JOB_H
#define DT_JOB_JOB_H

#include <stdbool.h>

#include "launcher/job/config.h"
#include "launcher/job/ops.h"
#include "runtime/wire/msg.h"

struct dt_job_origin { /* what differs between two runs of one request */
    uint32_t tag;      /* random: part of the job's id */
    uint8_t secret[DT_SECRET_BYTES];
    bool terminal; /* somebody reads what dtrun says as it happens */
    bool batch;    /* a batch system may signal dtrun and agents alike */
};

struct dt_job;

/* ops, and what config points to, must outlive it. */
struct dt_job *dt_job_new(const struct dt_job_config *config, const struct dt_job_origin *origin,
                          const struct dt_job_ops *ops);
void dt_job_free(struct dt_job *job);

const char *dt_job_id(const struct dt_job *job);

/* Opens the first connections. */
void dt_job_begin(struct dt_job *job);

/* ---- events; after the last one (ops.end) there are no more ---- */

void dt_job_greeted(struct dt_job *job, size_t host, const struct dt_msg_hello *hello);
/* The files of --push are on the host, in this directory; "" where there are none. Comes after
 * dt_job_greeted, and before it no ranks are started there. */
void dt_job_received(struct dt_job *job, size_t host, const char *dir);
/* Any message after HELLO. Strings and lists that the engine keeps are taken out of msg. */
void dt_job_message(struct dt_job *job, size_t host, uint8_t type, union dt_msg *msg);
/* A line that was printed on the host outside the protocol. */
void dt_job_noise(struct dt_job *job, size_t host, const char *line);
/* The connection has ended by itself: "phase: reason; remedy", or "" when the agent ended in order.
 */
void dt_job_disconnected(struct dt_job *job, size_t host, const char *why);
/* A connection to the host that the engine had closed has ended; there may be a new one. */
void dt_job_hung_up(struct dt_job *job, size_t host);
void dt_job_timer(struct dt_job *job, enum dt_job_timer timer);
void dt_job_signal(struct dt_job *job, int signo); /* it came to dtrun */
/* n bytes of what that process wrote are shown, or written to its file. */
void dt_job_shown(struct dt_job *job, uint32_t number, int fd, size_t n);
void dt_job_output_moved(struct dt_job *job); /* output_awaits() may have changed */
/* what: "standard output", or a file; error: as errno. */
void dt_job_output_failed(struct dt_job *job, const char *what, int error);
void dt_job_stdin(struct dt_job *job, const void *data, size_t n); /* no more than was credited */
void dt_job_stdin_eof(struct dt_job *job);                         /* once */

/* ---- what came of it, after ops.end ---- */

int dt_job_exit_code(const struct dt_job *job);
int dt_job_ended_by(const struct dt_job *job); /* the signal that ended it, or 0 */
char *dt_job_report(const struct dt_job *job); /* for --report: JSON; the caller frees it */

#endif
