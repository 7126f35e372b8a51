/* The only way to report an error inside dtrun and dtrun-agent. The failing function writes a text
 * that a user can act on (what happened, where, what to do) and returns -1. cmd/ prints it once. */
#ifndef DT_BASE_ERROR_H
#define DT_BASE_ERROR_H

#include <stdarg.h>

/* dtrun's own exit codes; every other code is a rank's. */
enum dt_exit {
    DT_EXIT_USAGE = 2,
    DT_EXIT_PREEMPTED = 75, /* EX_TEMPFAIL: a preempted rank ended and can continue later */
    DT_EXIT_TIMEOUT = 124,
    DT_EXIT_LAUNCH = 125,
    DT_EXIT_NOT_EXECUTABLE = 126,
    DT_EXIT_NOT_FOUND = 127,
    DT_EXIT_SIGNAL = 128, /* + signal number */
};

enum { DT_ERROR_SIZE = 1024 };

struct dt_error {
    int exit_code; /* dtrun's exit code if this error ends the job; 0 means DT_EXIT_LAUNCH */
    char text[DT_ERROR_SIZE]; /* a longer text loses its middle */
};

/* Fills err (which may be NULL) and returns -1. Leaves exit_code as it is. */
int dt_error_set(struct dt_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same, for functions that take fmt themselves. */
int dt_error_vset(struct dt_error *err, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

/* The same for a mistake in what the user typed: sets exit code 2. */
int dt_error_usage(struct dt_error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts text in front of what err already says, as in "nodes:3: " + "slots=abc: ...". Returns -1. */
int dt_error_prefix(struct dt_error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
