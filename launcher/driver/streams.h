/* Connects the engine's streams with the user: the output of ranks and dtrun's own messages go to
 * standard output and error or to files, and standard input goes to the engine, as far as it has
 * given credit. */
#ifndef DT_DRIVER_STREAMS_H
#define DT_DRIVER_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "launcher/io/outfiles.h"
#include "launcher/place/plan.h"

struct dt_job;

struct dt_streams_config {
    struct dt_outfiles *files; /* for the output of ranks, or NULL */
    bool tee;                  /* also write to dtrun's standard output and error */
    bool labels;
    bool stamps;
};

struct dt_streams;

/* From this call on, the events of the streams are reported to job, and dtrun's own messages
 * (log.h) are written through them. */
struct dt_streams *dt_streams_open(uv_loop_t *loop, const struct dt_streams_config *config,
                                   const struct dt_plan *plan, struct dt_job *job);
/* The next seven functions are the ops of the engine with the same meaning (launcher/job/ops.h). */
void dt_streams_add(struct dt_streams *s, uint32_t number, int fd, const void *data, size_t n);
void dt_streams_quiet(struct dt_streams *s, uint32_t number, int fd);
void dt_streams_eof(struct dt_streams *s, uint32_t number, int fd);
void dt_streams_end_all(struct dt_streams *s);
const char *dt_streams_awaits(const struct dt_streams *s, int fd, uint64_t ms);
void dt_streams_credit_stdin(struct dt_streams *s, size_t n);
void dt_streams_hold_stdin(struct dt_streams *s);
/* Call this before the loop ends. Drops what is not written. It may be called from an event of one
 * of the streams. The streams use s until the loop has ended, so call dt_streams_free only then. */
void dt_streams_close(struct dt_streams *s);
void dt_streams_free(struct dt_streams *s);

#endif
