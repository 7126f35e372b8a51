/* What the flight recorder has, as text for people and as JSON lines for programs. */
#ifndef DT_DIAG_DUMP_H
#define DT_DIAG_DUMP_H

#include <stdint.h>
#include <stdio.h>

#include "runtime/diag/recorder.h"
#include "runtime/dtrun.h"
#include "runtime/world/world.h"

/* Of whom, when and why a dump is. */
struct dt_dump_about {
    int rank;
    int size;
    uint32_t generation;
    const char *host;
    const char *why; /* the failure, or "" */
    uint64_t now;    /* CLOCK_MONOTONIC, in nanoseconds, */
    uint64_t wall;   /* and CLOCK_REALTIME at the same moment */
};

/* Pure. */
void dt_dump_text(FILE *out, const struct dt_dump_about *about, const struct dt_record *records,
                  size_t n);
void dt_dump_json(FILE *out, const struct dt_dump_about *about, const struct dt_record *records,
                  size_t n);

/* After a failure for good on a communicator, which is this thread's last one: once for a process,
 * writes both into the directory that was chosen, if any, and tells dtrun of the communicator's
 * last calls, and where the others are or why they could not be written. */
void dt_dump_failure(const struct dt_world *w, uint64_t comm);

/* For dt_recorder_dump: JSON lines into a file that ends in .jsonl, else text; path NULL: both into
 * the directory that was chosen. */
dt_result_t dt_dump_now(const struct dt_world *w, const char *path);

#endif
