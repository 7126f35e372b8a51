/* The PMIx server of one host, with which Open MPI's ranks set up MPI_COMM_WORLD. It tells libpmix
 * about the job and answers its requests. libpmix calls back in threads of its own. */
#ifndef DT_CMD_PMIX_SERVER_H
#define DT_CMD_PMIX_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/base/error.h"
#include "runtime/wire/msg.h"

struct dt_pmix_events { /* called in any thread, one at a time */
    /* All ranks of this host are in a fence. data is for dt_pmix_fenced on every host. */
    void (*fence)(const char *data, size_t n);
    void (*share)(struct dt_msg_share *m);       /* for dt_pmix_shared on every host */
    void (*abort)(uint32_t rank, int exit_code); /* MPI_Abort */
    /* A rank has called MPI_Init, or (inside false) is about to return from MPI_Finalize. */
    void (*state)(uint32_t rank, bool inside);
    void (*spawn_refused)(uint32_t rank); /* MPI_Comm_spawn */
    /* The rank's MPI prints text on stdout (1) or stderr (2). */
    void (*print)(uint32_t rank, uint8_t stream, const char *text);
};

/* Starts the server for the ranks of start. Its files go into dir. Returns 0, or -1 with err. */
int dt_pmix_open(const struct dt_msg_start *start, const char *dir,
                 const struct dt_pmix_events *events, struct dt_error *err);

/* Returns the variables that ranks need to find the server, except PMIX_RANK. */
int dt_pmix_environment(struct dt_strs *env, struct dt_error *err);

/* The fence is complete. data is the concatenation of what all hosts sent. */
void dt_pmix_fenced(const char *data, size_t n);
/* Carries out a SHARE of any host. Returns false if no host can have sent it. */
bool dt_pmix_shared(const struct dt_msg_share *m);

#endif
