/* What --check has found out about one host. The pure parts read it: cells (how it looks in the
 * table), remarks (how it compares with the others), json. */
#ifndef DT_CHECK_HOST_H
#define DT_CHECK_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/check/wallclock.h"
#include "runtime/wire/msg.h"

struct dt_check_host {
    const char *name;
    char *problem;       /* why a job would not start here, as "phase: reason"; NULL: it would */
    const char *carrier; /* of the connection: local, libssh2, ssh; auto: none was made */
    bool greeted;        /* the agent said HELLO: the members from here to has_facts are known */
    double connect_seconds;
    bool agent_sent;
    char *agent_version;
    uint32_t cores; /* available to ranks */
    uint64_t memory;
    bool has_facts; /* facts and clock are known */
    struct dt_msg_facts facts;
    struct dt_wallclock clock;
    const char *next; /* in the ring, if the way there was measured; else NULL */
    uint32_t rtt_us;
    double bandwidth; /* bit/s */
};

/* Cores that ranks may keep busy, after affinity and limits of the cgroup; and bytes of memory. */
double dt_check_cores(const struct dt_check_host *h);
double dt_check_host_memory(const struct dt_check_host *h);
/* The models of its GPUs, each once, as in "H100 80GB HBM3, A100"; to be freed. */
char *dt_check_gpu_models(const struct dt_check_host *h);
/* The sum of their uncorrected memory errors. Returns false if no GPU counts them. */
bool dt_check_gpu_ecc(const struct dt_check_host *h, uint64_t *sum);
void dt_check_set_problem(struct dt_check_host *h, const char *text); /* later ones are ignored */
void dt_check_host_free(struct dt_check_host *h);                     /* what it points to */

#endif
