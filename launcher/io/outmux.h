/* Writes all output of ranks and auxiliaries, and dtrun's own messages, to dtrun's standard output
 * and standard error: in whole lines, with the label and time that the user asked for, and without
 * ever blocking the loop. The bytes of a job's only process pass through unchanged if nothing
 * stands in front of its lines.
 *
 * Bytes wait in the backlog until the descriptor accepts more. Only then are they made into lines
 * and credited to their agent. So memory is bounded by nprocs * (credit + longest held line),
 * whatever labels add, and a slow reader slows down the ranks that write. An unfinished line is
 * shown when its stream becomes quiet, if a label or a time tells it apart from others. */
#ifndef DT_IO_OUTMUX_H
#define DT_IO_OUTMUX_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct dt_outmux;

struct dt_outmux_config {
    uint32_t np;
    uint32_t nprocs; /* ranks and auxiliaries; "number" below is as in role.h */
    bool labels;     /* the process, in front of each line */
    bool stamps;     /* the time when each line was complete, in front of it */
};

struct dt_outmux_events {
    /* The agent of that process may send n more bytes of stream fd (1 or 2). */
    void (*credit)(void *arg, uint32_t number, int fd, uint32_t n);
    /* dtrun's own descriptor fd cannot be written any more; its output is dropped. */
    void (*failed)(void *arg, int fd, int error);
    void (*drained)(void *arg); /* everything that was added for a descriptor is written */
};

struct dt_outmux *dt_outmux_open(uv_loop_t *loop, const struct dt_outmux_config *config,
                                 const struct dt_outmux_events *events, void *arg);
void dt_outmux_add(struct dt_outmux *m, uint32_t number, int fd, const void *data, size_t n);
/* Nothing follows for now: the last bytes are a prompt, not the first half of a late line. */
void dt_outmux_quiet(struct dt_outmux *m, uint32_t number, int fd);
void dt_outmux_eof(struct dt_outmux *m, uint32_t number, int fd);
/* Adds a message, one line, to standard error. While too much waits there, messages are dropped:
 * foreign ones (log.h) first. Once it is read, a line says how many. */
void dt_outmux_message(struct dt_outmux *m, const char *text, size_t n, bool foreign);
/* Ends all unfinished lines, because no stream will continue. */
void dt_outmux_end_all(struct dt_outmux *m);
/* Whether descriptor fd has accepted nothing for ms although output that is not credited waits for
 * it. ms 0: whether anything that was added for it is not written yet. */
bool dt_outmux_awaits(const struct dt_outmux *m, int fd, uint64_t ms);
/* Drops what is not written yet and frees m. */
void dt_outmux_close(struct dt_outmux *m);

#endif
