/* The engine of a job, from connecting to its exit code: it connects to all hosts, starts the
 * ranks, passes on their output, decides what a death means, and restarts or ends the job.
 *
 * It does no input or output itself and reads no clock. The functions under "events" tell it what
 * happens. It acts only through the ops that it is given (ops.h). The same events at the same times
 * always have the same effect. */
#ifndef DT_JOB_JOB_H
#define DT_JOB_JOB_H

#include <stdbool.h>

#include "launcher/job/config.h"
#include "launcher/job/ops.h"
#include "runtime/wire/msg.h"

struct dt_job_origin { /* what differs between two runs of one request */
    uint32_t tag;      /* random: part of the job's id */
    uint8_t secret[DT_SECRET_BYTES];
    bool terminal; /* a person reads dtrun's messages as they appear */
    bool batch;    /* a batch system may signal dtrun and agents alike */
};

struct dt_job;

/* ops, and what config points to, must outlive the job. */
struct dt_job *dt_job_new(const struct dt_job_config *config, const struct dt_job_origin *origin,
                          const struct dt_job_ops *ops);
void dt_job_free(struct dt_job *job);

const char *dt_job_id(const struct dt_job *job);

/* Opens the first connections. */
void dt_job_begin(struct dt_job *job);

/* ---- events; after the last one (ops.end) only signals may follow, which are ignored ---- */

void dt_job_greeted(struct dt_job *job, size_t host, const struct dt_msg_hello *hello);
/* The files of --push are on the host, in this directory ("": nothing is pushed). Follows
 * dt_job_greeted. The engine starts no ranks on the host before this event. */
void dt_job_pushed(struct dt_job *job, size_t host, const char *dir);
/* Any message after HELLO. Strings and lists that the engine keeps are taken out of msg. */
void dt_job_message(struct dt_job *job, size_t host, uint8_t type, union dt_msg *msg);
/* A line that was printed on the host outside the protocol. */
void dt_job_noise(struct dt_job *job, size_t host, const char *line);
/* The connection has ended by itself. why is "phase: reason; remedy", or "" if the agent ended
 * normally. */
void dt_job_disconnected(struct dt_job *job, size_t host, const char *why);
/* A connection that the engine closed has ended. There may already be a new one to the host. */
void dt_job_hung_up(struct dt_job *job, size_t host);
void dt_job_timer(struct dt_job *job, enum dt_job_timer timer);
void dt_job_signal(struct dt_job *job, int signo); /* dtrun received it */
/* n bytes of the process's output have been shown or written to its file. */
void dt_job_shown(struct dt_job *job, uint32_t number, int fd, size_t n);
void dt_job_output_moved(struct dt_job *job); /* output_awaits() may have changed */
/* what: "standard output", or a file; error: as errno. */
void dt_job_output_failed(struct dt_job *job, const char *what, int error);
/* at most as much as was credited */
void dt_job_stdin(struct dt_job *job, const void *data, size_t n);
/* One of these follows, once. error: as errno. */
void dt_job_stdin_eof(struct dt_job *job);
void dt_job_stdin_failed(struct dt_job *job, int error);

/* ---- results, after ops.end ---- */

int dt_job_exit_code(const struct dt_job *job);
int dt_job_ended_by(const struct dt_job *job); /* the signal that ended it, or 0 */
char *dt_job_report(const struct dt_job *job); /* the JSON for --report; the caller frees it */

#endif
