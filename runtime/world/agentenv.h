/* Reads dtrun's environment variables: which rank of which job this process is. */
#ifndef DT_WORLD_AGENTENV_H
#define DT_WORLD_AGENTENV_H

#include <stdint.h>

#include "runtime/dtrun.h"

struct dt_agentenv {
    int fd; /* -1: this process is a job of one rank */
    uint32_t rank;
    uint32_t size;
    uint32_t nodes;
    uint32_t local_rank;
    uint32_t generation;
};

/* Sets dt_last_error when it fails. DT_ERR_STATE: another launcher started this process as one of
 * several. DT_ERR_ARG: DTRUN_ALONE is neither 0 nor 1. */
dt_result_t dt_agentenv_read(struct dt_agentenv *env);

#endif
