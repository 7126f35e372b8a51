/* Writes the flight recorder's calls, as text for people and as JSON lines for programs. */
#ifndef DT_DIAG_DUMP_H
#define DT_DIAG_DUMP_H

#include <stdint.h>
#include <stdio.h>

#include "runtime/diag/recorder.h"
#include "runtime/dtrun.h"
#include "runtime/world/world.h"

/* The origin, time and reason of a dump. */
struct dt_dump_about {
    int rank;
    int size;
    uint32_t generation;
    const char *host;
    const char *why; /* the failure, or "" */
    uint64_t now;    /* CLOCK_MONOTONIC, in nanoseconds */
    uint64_t wall;   /* CLOCK_REALTIME at the same moment */
};

/* Pure. */
void dt_dump_text(FILE *out, const struct dt_dump_about *about, const struct dt_record *records,
                  size_t n);
void dt_dump_json(FILE *out, const struct dt_dump_about *about, const struct dt_record *records,
                  size_t n);

/* Call it after a final failure on a communicator, while that is this thread's last error. Only the
 * first call in a process does anything: it writes both forms into the configured directory, if
 * there is one, and sends dtrun the communicator's last calls, with the directory or the reason why
 * nothing was written. */
void dt_dump_failure(const struct dt_world *w, uint64_t comm);

/* Implements dt_recorder_dump. Writes JSON lines if path ends in .jsonl, else text. NULL: both,
 * into the configured directory. */
dt_result_t dt_dump_now(const struct dt_world *w, const char *path);

#endif
