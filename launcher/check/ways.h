/* The ways between the hosts of a check. First the agents probe each other as they do before a job;
 * then each measures round trip and bandwidth to the next host, in rounds (rounds.h), with more and
 * more bytes until they take long enough for a figure. The best of several counts. */
#ifndef DT_CHECK_WAYS_H
#define DT_CHECK_WAYS_H

#include "launcher/check/peer.h"
#include "launcher/session/hostnet.h"

struct dt_check_way {    /* from a node to the next one */
    uint32_t generation; /* of the PROBE without an answer; 0: none */
    uint32_t bytes;
    bool measured; /* with enough bytes: from now on the best figure counts */
    uint64_t asked_ns;
};

struct dt_check_ways {
    struct dt_check_peer **peers; /* by node */
    struct dt_check_way *ways;
    struct dt_hostnet net;
    uint8_t secret[DT_SECRET_BYTES];
    uint32_t generation; /* the newest */
    bool begun, over;
    bool all;         /* the second try, with every address */
    uint32_t waiting; /* answers */
    size_t round;
    bool measuring;
};

/* peers: the hosts that can be used, n of them; copied. */
void dt_check_ways_begin(struct dt_check_ways *w, const struct dt_job_config *job,
                         struct dt_check_peer *const *peers, uint32_t n);
/* An answer came. The last one sets w->over. */
void dt_check_ways_reach(struct dt_check_ways *w, const struct dt_check_peer *from,
                         struct dt_msg_reach *m);
void dt_check_ways_free(struct dt_check_ways *w);

#endif
