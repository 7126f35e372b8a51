/* Who waits in which call, for how long, and for whom. Pure; from what every rank's calls are, as
 * PONG tells it.
 *
 * Of each communicator in which some rank waits there is a group, whose members are what its ranks
 * do in it, each a collective and several calls between two at once; the first group is that of all
 * ranks. Ranks of a group are the communicator's, those of a struct dt_wait_graph the job's. */
#ifndef DT_WATCH_WAIT_GRAPH_H
#define DT_WATCH_WAIT_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/codec.h"
#include "runtime/wire/msg.h"

struct dt_wait {        /* of a rank in a group; it may be in several */
    uint64_t call;      /* 0 where it is of a pair */
    uint64_t signature; /* 0: not known */
    uint64_t pair;
    uint32_t limit_ms;
    uint64_t since_ns; /* it has been seen in that */
    uint64_t seen_ns;  /* last; 0: nothing is known of it */
};

struct dt_waitgroup {
    uint64_t comm;
    uint32_t n;
    uint32_t *members;     /* the job's ranks; NULL: each is its own number */
    struct dt_wait *waits; /* members: each of the n first in collectives, then again in pairs */
    uint32_t nwaits;
    uint64_t warned_of; /* what the user was told that somebody waits in; 0: nothing */
    uint32_t warned;    /* of which member */
    bool failed;        /* its calls have been ended */
};

struct dt_waiter { /* a rank of the job */
    bool stopped;  /* its process is, by a signal */
    bool ended;    /* it waits for nobody, and nobody for it */
};

struct dt_wait_graph {
    uint32_t generation; /* of the ranks */
    uint64_t since_ns;   /* what was seen at looks before is of others, or of before a stop */
    uint32_t np;
    uint32_t *limits; /* by host: the least that its ranks have given calls, or 0; in ms */
    uint32_t nhosts;
    struct dt_waiter *ranks;
    struct dt_waitgroup *groups;
    uint32_t n; /* 1 or more */
};

void dt_wait_graph_init(struct dt_wait_graph *w, uint32_t np, uint32_t nhosts);
void dt_wait_graph_free(struct dt_wait_graph *w);
/* A generation begins, or all ranks were stopped. */
void dt_wait_graph_forget(struct dt_wait_graph *w, uint32_t generation, uint64_t now_ns);
/* Whether a PONG, of which PING went out then, is about what is watched now: one that was under way
 * when the ranks were ended or stopped could accuse others. */
bool dt_wait_graph_is_current(const struct dt_wait_graph *w, uint32_t generation, uint64_t ping_ns);

/* The least limit that ranks of any host have given their calls, or 0. */
uint32_t dt_wait_graph_least_limit(const struct dt_wait_graph *w);

/* What PONG tells of a communicator. here: which of the job's ranks run on that host, ascending. */
void dt_wait_graph_note(struct dt_wait_graph *w, const struct dt_msg_comm *comm,
                        const struct dt_u32s *here, uint64_t now_ns);
/* The communicators in which ranks wait, without that of all: those where one has waited longest
 * come first, and no more than so many. The caller frees asked->v (of struct dt_msg_asked). */
void dt_wait_graph_list_oldest(const struct dt_wait_graph *w, uint32_t most,
                               struct dt_msg_list *asked);
/* Forgets the groups in which nobody waits any more. */
void dt_wait_graph_tidy(struct dt_wait_graph *w);

/* The rank of the group whose call is over its limit first; where none has one, the one that has
 * waited longest; -1: nobody waits. limit_ms: of calls that have none of their own, or 0. */
int dt_wait_graph_first_due(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                            uint32_t limit_ms);
/* The limit of that rank's call, or 0. */
uint32_t dt_wait_limit(const struct dt_wait *wait, uint32_t limit_ms);
/* How long it has been there at the time up to which all ranks of the group are known: a host that
 * is not heard of may be further than it seems. */
uint64_t dt_wait_graph_ms(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                          uint32_t who);
/* The call that it waits in, as of dt_hostshm_rank; or 0: in none. */
uint64_t dt_wait_inside(const struct dt_wait *wait);
/* Whether it waits there for no other rank: for its GPU. Its call's number is then the last one's.
 */
bool dt_wait_is_alone(const struct dt_wait *wait);
static inline uint32_t dt_waitgroup_rank(const struct dt_waitgroup *g, uint32_t member)
{
    return g->members ? g->members[member % g->n] : member % g->n;
}

/* Lists of ranks of the job, ascending but for the last; the caller frees list->v.
 *
 * For whom that rank waits: those that have not come to its call yet; if all have, those that are
 * stopped in it or on the way to it. Empty when that is unknown. */
void dt_wait_graph_for_whom(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                            uint32_t who, struct dt_u32s *list);
/* The ranks that are in the call that "who" is in, and not stopped. */
void dt_wait_graph_with(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t who,
                        struct dt_u32s *list);
/* Of those in that call the ranks that mean the same one, or those that mean another: their calls
 * do not fit together, and none will end. */
void dt_wait_graph_alike(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t who,
                         struct dt_u32s *list);
void dt_wait_graph_unlike(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t who,
                          struct dt_u32s *list);
/* Where those for whom "who" waits do themselves wait, in whatever communicator, and so on: the
 * ranks at which that ends, which wait for nobody. Returns whether some of them wait for each
 * other, so that none of these can come, unless by another thread: a deadlock. */
bool dt_wait_graph_in_the_end(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                              uint32_t who, struct dt_u32s *list);
/* The call in which that rank of the job has waited longest: its group, and its number there. NULL:
 * it waits in none. */
const struct dt_waitgroup *dt_wait_graph_doing(const struct dt_wait_graph *w, uint32_t rank,
                                               uint32_t *member);

#endif
