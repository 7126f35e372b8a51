/* All output of ranks and auxiliaries, and dtrun's own messages, to dtrun's standard output and
 * standard error: whole lines with what the user wants before each, never blocking the loop. The
 * bytes of a job's only process pass through as they are where nothing stands before its lines.
 *
 * What came waits as it is until the descriptor takes more; only then it is made into lines and
 * credited to its agent. So memory is bounded by nprocs * (credit + longest held line), whatever
 * labels add, and a slow reader slows down those that write. An unfinished line is shown when its
 * stream is quiet, if labels or times tell whose it is. */
#ifndef DT_IO_OUTMUX_H
#define DT_IO_OUTMUX_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct dt_outmux;

struct dt_outmux_config {
    uint32_t np;
    uint32_t nprocs; /* ranks and auxiliaries; "number" below is as of role.h */
    bool labels;     /* who wrote it, before each line */
    bool stamps;     /* the time before each line: when it was complete */
};

struct dt_outmux_events {
    /* The agent of that process may send n more bytes of stream fd (1 or 2). */
    void (*credit)(void *arg, uint32_t number, int fd, uint32_t n);
    /* dtrun's own descriptor fd cannot be written any more; what goes there is dropped. */
    void (*failed)(void *arg, int fd, int error);
    void (*drained)(void *arg); /* all that was given is out */
};

struct dt_outmux *dt_outmux_open(uv_loop_t *loop, const struct dt_outmux_config *config,
                                 const struct dt_outmux_events *events, void *arg);
void dt_outmux_add(struct dt_outmux *m, uint32_t number, int fd, const void *data, size_t n);
/* Nothing follows for now: what came is a prompt, not the half of a line whose rest is late. */
void dt_outmux_quiet(struct dt_outmux *m, uint32_t number, int fd);
void dt_outmux_eof(struct dt_outmux *m, uint32_t number, int fd);
/* A message of dtrun's own, whole lines, to standard error. */
void dt_outmux_message(struct dt_outmux *m, const char *text, size_t n);
/* Ends all unfinished lines: no stream will go on. */
void dt_outmux_end_all(struct dt_outmux *m);
bool dt_outmux_is_drained(const struct dt_outmux *m);
/* Drops what is not out yet; frees m. */
void dt_outmux_close(struct dt_outmux *m);

#endif
