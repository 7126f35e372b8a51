/* What --check has found out about one host. Three pure parts read it: cells (the host's line in
 * the table), remarks (a comparison with the others) and json. */
#ifndef DT_CHECK_HOST_H
#define DT_CHECK_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/session/heartbeat.h"
#include "runtime/wire/msg.h"

/* How a host's wall clock differs from this machine's, as NTP would estimate it. */
struct dt_check_clock {
    int64_t offset_ns; /* the host's clock minus this machine's */
    uint64_t error_ns; /* of the offset: half the round trip of the fastest answer */
};

struct dt_check_host {
    const char *name;
    char *problem;       /* why a job would not start here, as "phase: reason", or NULL */
    const char *carrier; /* of the connection: local, libssh2, ssh; auto: no connection was made */
    bool greeted;        /* the agent said HELLO, so the members up to has_facts are known */
    double connect_seconds;
    bool agent_sent;
    char *agent_version;
    uint32_t cores; /* available to ranks */
    uint64_t memory;
    bool has_facts; /* facts and clock are known */
    struct dt_msg_facts facts;
    struct dt_check_clock clock;
    const char *next; /* the next host in the ring if the path there was measured, else NULL */
    uint32_t rtt_us;
    double bandwidth; /* bit/s */
};

/* Compares the wall clocks. h knows the offset between the two clocks that count from boot, and
 * must have had an answer. wall_ahead is CLOCK_REALTIME minus CLOCK_BOOTTIME, on the host and on
 * this machine. */
struct dt_check_clock dt_check_clock_of(const struct dt_heartbeat *h, int64_t host_wall_ahead_ns,
                                        int64_t own_wall_ahead_ns);

/* Return the cores that ranks may keep busy and the bytes of memory that they may use, within the
 * limits of affinity and cgroup. */
double dt_check_cores(const struct dt_check_host *h);
double dt_check_host_memory(const struct dt_check_host *h);
/* Returns the models of its GPUs, each once, as in "H100 80GB HBM3, A100". The caller frees them.
 */
char *dt_check_gpu_models(const struct dt_check_host *h);
/* Sums the uncorrected memory errors of its GPUs. Returns false if no GPU counts them. */
bool dt_check_gpu_ecc(const struct dt_check_host *h, uint64_t *sum);
void dt_check_set_problem(struct dt_check_host *h,
                          const char *text);      /* ignored if it already has one */
void dt_check_host_free(struct dt_check_host *h); /* frees its contents */

#endif
