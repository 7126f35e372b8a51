#include "launcher/job/state/ranks.h"

#include <stdlib.h>

#include "launcher/base/mem.h"
#include "launcher/watch/words.h"
#include "runtime/wire/msg.h"

void dt_ranks_init(struct dt_ranks *r, uint32_t np, uint32_t nprocs)
{
    *r = (struct dt_ranks){ .v = dt_xcalloc(nprocs, sizeof *r->v), .np = np, .nprocs = nprocs };
}

void dt_ranks_reset(struct dt_ranks *r)
{
    for (uint32_t i = 0; i < r->nprocs; i++) {
        free(r->v[i].device);
        dt_tail_reset(&r->v[i].tail);
        r->v[i] = (struct dt_rank){ 0 };
    }
    r->hellos = r->linked_alive = r->ended_well = r->in_mpi = r->missed = 0;
    r->go = false;
}

void dt_ranks_go(struct dt_ranks *r)
{
    r->go = true;
}

void dt_ranks_hello(struct dt_ranks *r, uint32_t number, uint16_t port)
{
    struct dt_rank *rank = &r->v[number];

    rank->hello = true;
    rank->port = port;
    r->hellos++;
    r->linked_alive += !rank->ended;
}

void dt_ranks_mpi(struct dt_ranks *r, uint32_t number, bool inside)
{
    struct dt_rank *rank = &r->v[number];

    if (rank->ended)
        return;
    r->in_mpi -= rank->mpi == DT_MPI_INSIDE;
    rank->mpi = inside ? DT_MPI_INSIDE : DT_MPI_FINALIZED;
    r->in_mpi += inside;
}

void dt_ranks_end(struct dt_ranks *r, uint32_t number, const struct dt_death *end)
{
    struct dt_rank *rank = &r->v[number];

    r->linked_alive -= rank->hello;
    r->in_mpi -= rank->mpi == DT_MPI_INSIDE;
    rank->ended = true;
    rank->end = *end;
    r->ended_well += number < r->np && end->code == 0 && !(end->flags & DT_EXITED_PEER_LOST);
    r->missed += number < r->np && end->code == 0 && rank->mpi != DT_MPI_FINALIZED;
}

static bool is_alive(const struct dt_ranks *r, uint32_t number)
{
    return r->go && !r->v[number].ended;
}

uint32_t dt_ranks_alive(const struct dt_ranks *r)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->np; i++)
        n += is_alive(r, i);
    return n;
}

void dt_ranks_words(const struct dt_ranks *r, bool alive, struct dt_strbuf *out)
{
    struct dt_u32s list = { dt_xcalloc(r->np, sizeof *list.v), 0 };

    for (uint32_t i = 0; i < r->np; i++) {
        if (is_alive(r, i) == alive)
            list.v[list.n++] = i;
    }
    dt_words_list(out, &list);
    free(list.v);
}

void dt_ranks_free(struct dt_ranks *r)
{
    dt_ranks_reset(r);
    free(r->v);
}
