/* The server side of PMI-1, the wire protocol by which MPICH, MVAPICH and Intel MPI set up
 * MPI_COMM_WORLD, for the ranks of one host. Pure: bytes come in, and everything else goes out
 * through struct dt_pmi_ops.
 *
 * Each rank sends one request at a time, a line of words "key=value", and waits for the answer.
 * What a rank puts into the key-value space is visible to every rank of the job after the next
 * barrier, in which hosts exchange what their ranks have put. The protocol is described in RFC 13
 * of the Flux project and in MPICH's src/pmi/maint/pmi-1.1.txt. */
#ifndef DT_AGENT_MPI_PMI_H
#define DT_AGENT_MPI_PMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DT_PMI_KEY_MAX = 64, /* bytes, with the terminating null, as clients are told */
    DT_PMI_VALUE_MAX = 1024,
    DT_PMI_LINE_MAX = 2048,
    DT_PMI_PUTS_MAX = 4096, /* of one rank between two barriers */
};

struct dt_pmi;

struct dt_pmi_ops { /* none may destroy the server */
    void (*reply)(void *arg, uint32_t local_rank, const char *line, size_t n);
    /* All ranks of this host are in a barrier. data: what they have put since the last one, for
     * dt_pmi_fenced of every host. */
    void (*fence)(void *arg, const char *data, size_t n);
    void (*abort)(void *arg, uint32_t local_rank, int exit_code); /* MPI_Abort */
    void (*spawn_refused)(void *arg, uint32_t local_rank);        /* MPI_Comm_spawn */
};

struct dt_pmi_job {
    const char *name;     /* of the key-value space: another one for each generation of a job */
    const char *mapping;  /* value of PMI_process_mapping, dt_mpimap_text */
    uint32_t universe;    /* slots of all hosts */
    uint32_t local_ranks; /* on this host */
};

/* Copies what job holds. */
struct dt_pmi *dt_pmi_create(const struct dt_pmi_job *job, const struct dt_pmi_ops *ops, void *arg);
void dt_pmi_destroy(struct dt_pmi *p); /* accepts NULL */

/* Bytes of a rank, in pieces of any size. Returns NULL, or what the rank did wrong: it is not to be
 * listened to any more. */
const char *dt_pmi_input(struct dt_pmi *p, uint32_t local_rank, const char *bytes, size_t n);

/* The barrier is complete; data: the concatenation of what all hosts gave to fence, in any order.
 * Returns false where that is no such data, or no barrier is under way. */
bool dt_pmi_fenced(struct dt_pmi *p, const char *data, size_t n);

#endif
