/* The network paths between the hosts of a check. First the agents probe each other as they do
 * before a job. Then each measures round trip and bandwidth to the next host, in rounds
 * (dt_reach_rounds), with more and more bytes until a measurement takes long enough. The best of
 * several counts. */
#ifndef DT_CHECK_PATHS_H
#define DT_CHECK_PATHS_H

#include "launcher/check/peer.h"
#include "launcher/session/hostnet.h"

struct dt_check_path {   /* from a node to the next one */
    uint32_t generation; /* of the PROBE that has not been answered yet; 0: none */
    uint32_t bytes;
    bool measured; /* with enough bytes: from now on the best figure counts */
};

struct dt_check_paths {
    struct dt_check_peer **peers; /* by node */
    struct dt_check_path *paths;
    struct dt_hostnet net;
    uint8_t secret[DT_SECRET_BYTES];
    uint32_t generation; /* of the newest PROBE */
    bool begun, over;
    bool all;         /* this is the second attempt, with every address */
    uint32_t waiting; /* number of missing answers */
    size_t round;
    bool measuring;
};

/* peers are the n usable hosts; the array is copied. */
void dt_check_paths_begin(struct dt_check_paths *p, const struct dt_job_config *job,
                          struct dt_check_peer *const *peers, uint32_t n);
/* Processes an answer. The last one sets p->over. */
void dt_check_paths_answer(struct dt_check_paths *p, const struct dt_check_peer *from,
                           struct dt_msg_reach *m);
void dt_check_paths_free(struct dt_check_paths *p);

#endif
