/* The server side of PMI-1 for the ranks of one host. MPICH, MVAPICH and Intel MPI use this wire
 * protocol to set up MPI_COMM_WORLD. Pure: bytes come in, and answers and events go out
 * through struct dt_pmi_ops.
 *
 * Each rank sends one request at a time, a line of words "key=value", and waits for the answer.
 * What a rank puts into the key-value space is visible to every rank of the job after the next
 * barrier, in which hosts exchange what their ranks have put. RFC 13 of the Flux project and
 * MPICH's src/pmi/maint/pmi-1.1.txt describe the protocol. */
#ifndef DT_AGENT_MPI_PMI_H
#define DT_AGENT_MPI_PMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DT_PMI_KEY_MAX = 64, /* bytes, with the terminating null, as clients are told */
    DT_PMI_VALUE_MAX = 1024,
    DT_PMI_LINE_MAX = 2048,
    DT_PMI_PUTS_MAX = 4096, /* by one rank between two barriers */
};

struct dt_pmi;

struct dt_pmi_ops { /* none may destroy the server */
    void (*reply)(void *arg, uint32_t local_rank, const char *line, size_t n);
    /* All ranks of this host are in a barrier. data is what they have put since the last one, to be
     * passed to dt_pmi_fenced on every host. */
    void (*fence)(void *arg, const char *data, size_t n);
    void (*abort)(void *arg, uint32_t local_rank, int exit_code); /* MPI_Abort */
    /* A rank has called MPI_Init, or (inside false) MPI_Finalize. */
    void (*state)(void *arg, uint32_t local_rank, bool inside);
    void (*spawn_refused)(void *arg, uint32_t local_rank); /* MPI_Comm_spawn */
};

struct dt_pmi_job {
    const char *name;     /* of the key-value space; different for each generation of a job */
    const char *mapping;  /* the value of PMI_process_mapping, from dt_mpimap_text */
    uint32_t universe;    /* slots of all hosts */
    uint32_t local_ranks; /* on this host */
};

/* Copies the contents of job. */
struct dt_pmi *dt_pmi_create(const struct dt_pmi_job *job, const struct dt_pmi_ops *ops, void *arg);
void dt_pmi_destroy(struct dt_pmi *p); /* accepts NULL */

/* Processes bytes of a rank, in pieces of any size. Returns NULL, or what the rank did wrong; then
 * its socket must be closed. */
const char *dt_pmi_input(struct dt_pmi *p, uint32_t local_rank, const char *bytes, size_t n);

/* The barrier is complete. data is the concatenation of what all hosts passed to fence, in any
 * order. Returns false if it is malformed, or no barrier is in progress. */
bool dt_pmi_fenced(struct dt_pmi *p, const char *data, size_t n);

#endif
