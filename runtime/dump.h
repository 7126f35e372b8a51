/* What the flight recorder has, as text for people and as JSON lines for programs. */
#ifndef DT_RUNTIME_DUMP_H
#define DT_RUNTIME_DUMP_H

#include <stdint.h>
#include <stdio.h>

#include "runtime/dtrun.h"
#include "runtime/recorder.h"
#include "runtime/world.h"

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

/* After a failure, once for a process: writes both into the directory that was chosen, if any. What
 * goes wrong is not told: the failure is to be. */
void dt_dump_failure(const struct dt_world *w, const char *why);

#endif
