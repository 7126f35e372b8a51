/* Writes to one of dtrun's own descriptors. It never blocks the loop, and never makes the
 * descriptor non-blocking for other processes that share it (the user's shell shares the terminal).
 */
#ifndef DT_IO_OUTFD_H
#define DT_IO_OUTFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct dt_outfd;

struct dt_outfd_events {
    void (*wrote)(void *arg); /* less is pending than before, so more may be added */
    /* nothing is pending, and wrote() has added nothing either; o may be closed */
    void (*drained)(void *arg);
    void (*failed)(void *arg, int error); /* called once; queued and later bytes are dropped */
};

/* lines: if fd is a pipe, other processes that write to it split no line of up to PIPE_BUF bytes.
 * This costs speed. */
struct dt_outfd *dt_outfd_open(uv_loop_t *loop, int fd, bool lines,
                               const struct dt_outfd_events *events, void *arg);
void dt_outfd_add(struct dt_outfd *o, const void *data, size_t n); /* appends to the queue */
size_t dt_outfd_pending(const struct dt_outfd *o);
/* Returns when the descriptor last accepted bytes or, if later, began to keep them waiting. If it
 * is a pipe whose reader has read since the last call, though too little to make room, returns now.
 */
uint64_t dt_outfd_moved_ns(struct dt_outfd *o);
/* Drops what is queued. Frees o after the loop has run once more. */
void dt_outfd_close(struct dt_outfd *o);

#endif
