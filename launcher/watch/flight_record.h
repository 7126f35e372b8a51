/* The last calls of ranks before a call failed for good. Ranks with the same calls share a line,
 * however many they are. Pure. */
#ifndef DT_WATCH_FLIGHT_RECORD_H
#define DT_WATCH_FLIGHT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/base/strbuf.h"
#include "runtime/wire/msg.h"

struct dt_callers { /* ranks that say the same */
    uint64_t comm;
    struct dt_msg_last_call call; /* ns: the longest of theirs; way: "" where theirs differ */
    struct dt_u32s ranks;         /* ascending */
};

struct dt_dumphost {
    char *host;
    char *dir;
    char *trouble; /* why there are no last calls; or "" */
};

struct dt_flight_record { /* zero-initialised */
    struct dt_callers *callers;
    size_t ncallers;
    size_t unsaid;         /* calls for which there was no room */
    struct dt_u32s told;   /* ranks that have reported theirs, ascending */
    struct dt_u32s silent; /* ranks that were ended and reported none, ascending */
    struct dt_dumphost *dumps;
    size_t ndumps;
    bool more_hosts; /* there was no room for */
    bool own;        /* some rank failed for another reason than a lost peer */
};

void dt_flight_record_add(struct dt_flight_record *l, const char *host,
                          const struct dt_msg_last_calls *m);
/* That rank was ended. */
void dt_flight_record_ended(struct dt_flight_record *l, uint32_t rank);
/* The lines, of which each ends with a newline; of many the last are said. */
void dt_flight_record_words(const struct dt_flight_record *l, struct dt_strbuf *out);
/* They have been said. Who told of its own tells nothing more in this generation. */
void dt_flight_record_said(struct dt_flight_record *l);
void dt_flight_record_free(struct dt_flight_record *l); /* makes it as zero-initialised again */

#endif
