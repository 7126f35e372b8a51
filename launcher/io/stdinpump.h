/* Reads dtrun's standard input only as fast as its receiver gives credit.
 *
 * Reads a terminal only while dtrun's process group is its foreground group: reading in the
 * background would stop dtrun (SIGTTIN). */
#ifndef DT_IO_STDINPUMP_H
#define DT_IO_STDINPUMP_H

#include <stddef.h>
#include <uv.h>

struct dt_stdinpump;

struct dt_stdinpump_events {
    void (*data)(void *arg, const void *data,
                 size_t n); /* n is at most the payload of a data frame */
    /* One of these is called, once. error: as errno; the rest of the input is lost. */
    void (*eof)(void *arg);
    void (*failed)(void *arg, int error);
};

/* Reads nothing until dt_stdinpump_credit is called. */
struct dt_stdinpump *dt_stdinpump_open(uv_loop_t *loop, int fd,
                                       const struct dt_stdinpump_events *events, void *arg);
/* The receiver accepts n more bytes. */
void dt_stdinpump_credit(struct dt_stdinpump *p, size_t n);
/* The receiver is gone; a new one begins with the next credit. */
void dt_stdinpump_hold(struct dt_stdinpump *p);
/* Accepts NULL. Frees p after the loop has run once more. */
void dt_stdinpump_close(struct dt_stdinpump *p);

#endif
