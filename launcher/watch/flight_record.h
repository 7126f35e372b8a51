/* The last calls of ranks before a call failed for good. Any number of ranks with the same calls
 * share a line. Pure. */
#ifndef DT_WATCH_FLIGHT_RECORD_H
#define DT_WATCH_FLIGHT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/base/strbuf.h"
#include "runtime/wire/msg.h"

struct dt_callers { /* ranks with the same call */
    uint64_t comm;
    struct dt_msg_last_call call; /* ns is their longest time; algorithm is "" if theirs differ */
    struct dt_u32s ranks;         /* ascending */
};

struct dt_dumphost {
    char *host;
    char *dir;
    char *error; /* why there are no last calls, or "" */
};

struct dt_flight_record { /* zero-initialised */
    struct dt_callers *callers;
    size_t ncallers;
    size_t omitted;          /* number of calls for which there was no room */
    struct dt_u32s reported; /* ranks that have reported, ascending */
    struct dt_u32s silent;   /* ranks that were ended and did not report, ascending */
    struct dt_dumphost *dumps;
    size_t ndumps;
    bool more_hosts; /* some did not fit */
    bool own;        /* some rank failed for a reason other than a lost peer */
};

void dt_flight_record_add(struct dt_flight_record *r, const char *host,
                          const struct dt_msg_last_calls *m);
/* Records that this rank was ended. */
void dt_flight_record_ended(struct dt_flight_record *r, uint32_t rank);
/* Writes lines that end with a newline each. If there are too many, the last calls win. */
void dt_flight_record_words(const struct dt_flight_record *r, struct dt_strbuf *out);
/* The lines were printed: forgets them. Ranks that have reported do not count as silent later in
 * this generation. */
void dt_flight_record_forget_printed(struct dt_flight_record *r);
void dt_flight_record_free(struct dt_flight_record *r); /* makes it zero-initialised again */

#endif
