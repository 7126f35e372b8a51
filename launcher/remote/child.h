/* A child process as a byte stream on a libuv loop: one socket is its standard input and output, a
 * pipe its standard error. It leads its own session, so that Ctrl-C typed at dtrun does not reach
 * it. The local transport runs dtrun-agent this way, the ssh transport OpenSSH's ssh. */
#ifndef DT_REMOTE_CHILD_H
#define DT_REMOTE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "launcher/base/error.h"

struct dt_child;

struct dt_child_end {
    int spawn_error; /* libuv's error code if it could not be started, else 0 */
    int64_t code;    /* its exit code */
    int signo;       /* the signal that killed it, or 0 */
    bool closed;     /* dt_child_close was called before it ended */
};

struct dt_child_events {
    void (*data)(void *arg, const void *data, size_t n);  /* from its standard output */
    void (*noise)(void *arg, const void *data, size_t n); /* from its standard error */
    void (*drained)(void *arg);                           /* everything has been written */
    /* Called exactly once, last, and never from inside one of the functions below. The child is
     * freed then. */
    void (*ended)(void *arg, const struct dt_child_end *end);
};

/* Returns what to do about a spawn_error. otherwise is the advice if no limit was too low. */
const char *dt_child_remedy(int spawn_error, const char *otherwise);

/* Explains the exit code of an agent, or of the command that runs it. The agent and shells use 128
 * + n to report that signal n killed the process below them. */
void dt_child_explain_code(struct dt_error *why, const char *what, int code);

/* Starts argv[0], searched in PATH. env is its environment, or NULL for this process's. Its streams
 * and its process must end within grace_ms of each other, in either order. After that the process
 * is killed, or its streams are closed. */
struct dt_child *dt_child_open(uv_loop_t *loop, const char *const argv[], const char *const env[],
                               unsigned grace_ms, const struct dt_child_events *events, void *arg);
void dt_child_write(struct dt_child *c, const void *data, size_t n);
/* Returns the number of bytes that have not been written yet. */
size_t dt_child_pending(const struct dt_child *c);
/* Returns the pid of its process if that is not reaped yet, else 0. */
int dt_child_pid(const struct dt_child *c);
/* Closes its standard input and output, which tells it to end. */
void dt_child_close(struct dt_child *c);

#endif
