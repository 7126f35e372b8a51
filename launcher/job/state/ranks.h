/* The ranks and auxiliaries of one generation, by number (role.h). Pure. */
#ifndef DT_JOB_STATE_RANKS_H
#define DT_JOB_STATE_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/base/strbuf.h"
#include "launcher/io/tail.h"
#include "launcher/watch/cause.h"

enum dt_mpi_state { DT_MPI_UNUSED, DT_MPI_INSIDE, DT_MPI_FINALIZED };

struct dt_rank {  /* or an auxiliary */
    uint32_t pid; /* 0: unknown */
    char *device;
    bool hello; /* it called dt_init */
    uint16_t port;
    bool leaving; /* a call returned DT_ERR_PEER or is about to, as the agent's last ANSWER says */
    enum dt_mpi_state mpi;
    bool ended;
    bool tail_eof;
    int64_t unpaid[2];   /* bytes of output that came, less credit: at most DT_STREAM_CREDIT */
    struct dt_death end; /* valid if ended */
    struct dt_tail tail; /* of its standard error, or of both with --merge-stderr */
};

struct dt_ranks {
    struct dt_rank *v;
    uint32_t np;
    uint32_t nprocs;       /* ranks and auxiliaries */
    uint32_t ended_well;   /* ranks that exited with 0 and had no call return DT_ERR_PEER */
    uint32_t hellos;       /* ranks that called dt_init */
    uint32_t linked_alive; /* those of them that are alive */
    uint32_t in_mpi;       /* ranks that are alive, between MPI_Init and MPI_Finalize */
    uint32_t missed;       /* ranks that exited with 0 before MPI_Finalize, or without MPI_Init */
    bool go;               /* GO was sent: all ranks run */
};

void dt_ranks_init(struct dt_ranks *r, uint32_t np, uint32_t nprocs);
void dt_ranks_reset(struct dt_ranks *r); /* a generation begins */
/* GO is sent. From now on a rank runs until it ends, even if its host has not said STARTED yet. */
void dt_ranks_go(struct dt_ranks *r);
/* The rank called dt_init, and listens at this port. */
void dt_ranks_hello(struct dt_ranks *r, uint32_t number, uint16_t port);
/* The rank called MPI_Init, or (inside false) MPI_Finalize. Does nothing if it has ended. */
void dt_ranks_mpi(struct dt_ranks *r, uint32_t number, bool inside);
void dt_ranks_end(struct dt_ranks *r, uint32_t number, const struct dt_death *end);
uint32_t dt_ranks_alive(const struct dt_ranks *r); /* without auxiliaries */
/* Writes the ranks that run (alive) or those that do not, as dt_words_list does. */
void dt_ranks_words(const struct dt_ranks *r, bool alive, struct dt_strbuf *out);
void dt_ranks_free(struct dt_ranks *r);

#endif
