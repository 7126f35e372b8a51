/* Makes new communicators out of an existing one. */
#ifndef DT_API_SPLIT_H
#define DT_API_SPLIT_H

#include "runtime/comm/comm.h"

/* What each rank contributes to a split. */
struct dt_split_word {
    uint64_t color; /* 0: this rank joins no new communicator */
    int64_t key;
    uint64_t id; /* the id of the new communicator if this is its first rank */
};

/* Stores the ranks of rank me's color, ordered by key, then by rank. Returns their number. Pure. */
uint32_t dt_split_members(const struct dt_split_word *words, uint32_t n, uint32_t me,
                          uint32_t *members);

/* The memory that a split of parent needs before the ranks first wait for each other. NULL: out of
 * memory. */
struct dt_split_word *dt_split_alloc(const struct dt_comm *parent);
/* Collective on parent, as a call of this kind. *out is NULL if color is 0. The new communicator
 * has a slot. words: from dt_split_alloc, freed here. If it is NULL, parent ends. */
dt_result_t dt_comm_split_into(struct dt_comm *parent, enum dt_call_kind kind, uint64_t color,
                               int64_t key, struct dt_split_word *words, struct dt_comm **out);
/* Removes a communicator from its slot, whose lock the caller holds, and frees it. */
void dt_comm_destroy(struct dt_comm *c);

#endif
