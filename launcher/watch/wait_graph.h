/* Which ranks wait in which call, for how long, and for which ranks. Pure; its input is the calls
 * of every rank, as PONG reports them.
 *
 * There is a group for each communicator in which a rank waits. It holds what each of its members
 * does there: one collective, and several calls between two ranks at once. The first group is
 * DT_WORLD. Ranks in a group are ranks of its communicator; ranks in struct dt_wait_graph are ranks
 * of the job. A slot is an index into the waits of a group. */
#ifndef DT_WATCH_WAIT_GRAPH_H
#define DT_WATCH_WAIT_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/codec.h"
#include "runtime/wire/msg.h"

/* One slot: a rank's collective, or one of its calls between two ranks. */
struct dt_wait {
    uint64_t call;      /* the collective, as in dt_hostshm_rank; 0 for a call between two ranks */
    uint64_t signature; /* of the call's arguments; 0: not known */
    uint64_t pair;      /* the call between two ranks, likewise; 0 for a collective */
    uint32_t limit_ms;
    uint64_t since_ns; /* since when the rank has been in that call */
    uint64_t seen_ns;  /* when this was seen last; 0: nothing is known about the slot */
};

struct dt_waitmember {
    uint32_t rank; /* of the job */
    uint32_t member;
};

struct dt_waitgroup {
    uint64_t comm;
    uint32_t n;
    uint32_t *members;             /* ranks of the job; NULL: each member is its own rank */
    struct dt_waitmember *by_rank; /* n, ascending; NULL likewise */
    /* The collectives of the n members, then their calls between two, n at a time. */
    struct dt_wait *waits;
    uint32_t nwaits;
    uint64_t warned_of; /* the call for which the user was warned last; 0: none */
    uint32_t warned;    /* the slot that was in that call */
    bool failed;        /* its calls were made to fail */
};

struct dt_waiter { /* a rank of the job */
    bool stopped;  /* a signal has stopped its process */
    bool ended;    /* it waits for no rank, and no rank waits for it */
};

struct dt_wait_graph {
    uint32_t generation; /* generation of the ranks */
    uint64_t since_ns;   /* answers to an earlier PING are ignored */
    uint32_t np;
    uint32_t *limits; /* by host: the lowest limit of its ranks' calls in ms, or 0 */
    uint32_t nhosts;
    struct dt_waiter *ranks;
    struct dt_waitgroup *groups;
    uint32_t n; /* at least 1 */
};

void dt_wait_graph_init(struct dt_wait_graph *w, uint32_t np, uint32_t nhosts);
void dt_wait_graph_free(struct dt_wait_graph *w);
/* Forgets everything: a generation begins, or all ranks were stopped. */
void dt_wait_graph_forget(struct dt_wait_graph *w, uint32_t generation, uint64_t now_ns);
/* Returns whether a PONG, which answers a PING sent at ping_ns, is about the current ranks. An
 * older one, from before ranks were ended or stopped, could blame the wrong ranks. */
bool dt_wait_graph_is_current(const struct dt_wait_graph *w, uint32_t generation, uint64_t ping_ns);

/* Returns the lowest limit of calls on any host, or 0. */
uint32_t dt_wait_graph_least_limit(const struct dt_wait_graph *w);

/* Records what PONG reports about a communicator. here lists the job's ranks on that host,
 * ascending. */
void dt_wait_graph_note(struct dt_wait_graph *w, const struct dt_msg_comm *comm,
                        const struct dt_u32s *here, uint64_t now_ns);
/* Lists the communicators in which ranks wait, except DT_WORLD: longest wait first, at most max of
 * them. The caller frees asked->v (of struct dt_msg_asked). */
void dt_wait_graph_list_oldest(const struct dt_wait_graph *w, uint32_t max,
                               struct dt_msg_list *asked);
/* Forgets the groups in which no rank waits any more. */
void dt_wait_graph_tidy(struct dt_wait_graph *w);

/* Returns the slot whose call exceeds its limit first. If no call has a limit, returns the slot
 * that has waited longest. -1: no rank waits. limit_ms, or 0, is for calls without a limit of their
 * own. */
int dt_wait_graph_first_due(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                            uint32_t limit_ms);
/* Returns the limit of the call, or 0. */
uint32_t dt_wait_limit(const struct dt_wait *wait, uint32_t limit_ms);
/* Returns how long the slot has waited. Time after the oldest report on a rank of the group does
 * not count: a silent host may be further along than it seems. */
uint64_t dt_wait_graph_waited_ms(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                                 uint32_t slot);
/* Returns the call that it waits in, as in dt_hostshm_rank, or 0 if it is in none. */
uint64_t dt_wait_call(const struct dt_wait *wait);
/* Returns whether it waits for its GPU, or for NCCL to launch a call there, and for no other rank.
 * Such a wait has the number of the collective before it. */
bool dt_wait_is_for_gpu(const struct dt_wait *wait);
bool dt_wait_is_for_launch(const struct dt_wait *wait); /* only for the latter */
static inline uint32_t dt_waitgroup_rank(const struct dt_waitgroup *g, uint32_t member)
{
    return g->members ? g->members[member % g->n] : member % g->n;
}
/* The inverse. -1: that rank of the job is no member. */
int64_t dt_waitgroup_member(const struct dt_waitgroup *g, uint32_t rank);

/* The functions from here to dt_wait_graph_chain_ends list ranks of the job. All lists but that of
 * dt_wait_graph_chain_ends are in ascending order. The caller frees list->v.
 *
 * The ranks that a slot waits for: those that have not reached its call yet. If all have, those
 * that are stopped in the call or on the way to it. Empty if unknown. */
void dt_wait_graph_awaited(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                           uint32_t slot, struct dt_u32s *list);
/* The ranks in the call of the slot that are not stopped. */
void dt_wait_graph_in_same_call(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                                uint32_t slot, struct dt_u32s *list);
/* The ranks in that call whose arguments match, or do not match, those of the slot. If some do not
 * match, the call cannot end. */
void dt_wait_graph_matching(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                            uint32_t slot, struct dt_u32s *list);
void dt_wait_graph_mismatching(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                               uint32_t slot, struct dt_u32s *list);
/* Follows the waits from slot on, across communicators: lists the ranks at the ends of the chains,
 * which wait for no rank. Returns whether there is a cycle: a deadlock, unless another thread of a
 * rank ends it. */
bool dt_wait_graph_chain_ends(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                              uint32_t slot, struct dt_u32s *list);
/* A rank of the job has not reached a call in g. Returns the group of the wait that delays it, with
 * its slot there, or NULL if it waits for no rank. That is the longest of its waits, since most
 * programs make their calls in one thread. But saves in the background have threads of their own:
 * they neither delay other calls nor are delayed by them. */
const struct dt_waitgroup *dt_wait_graph_delaying_wait(const struct dt_wait_graph *w,
                                                       const struct dt_waitgroup *g, uint32_t rank,
                                                       uint32_t *slot);

#endif
