/* Writes to one of dtrun's own descriptors without ever blocking the loop, and without making the
 * descriptor non-blocking for the others that share it (a terminal is shared with the user's
 * shell). */
#ifndef DT_IO_OUTFD_H
#define DT_IO_OUTFD_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct dt_outfd;

struct dt_outfd_events {
    void (*wrote)(void *arg);   /* less is pending than before: more may be added */
    void (*drained)(void *arg); /* nothing is pending, even after wrote(); o may be closed */
    void (*failed)(void *arg, int error); /* once; what is queued, or added later, is dropped */
};

struct dt_outfd *dt_outfd_open(uv_loop_t *loop, int fd, const struct dt_outfd_events *events,
                               void *arg);
void dt_outfd_add(struct dt_outfd *o, const void *data, size_t n); /* appends to the queue */
size_t dt_outfd_pending(const struct dt_outfd *o);
/* Drops what is queued. Frees o once the loop has run again. */
void dt_outfd_close(struct dt_outfd *o);

#endif
