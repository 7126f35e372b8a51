/* Making communicators out of one that there is. */
#ifndef DT_API_SPLIT_H
#define DT_API_SPLIT_H

#include "runtime/comm/comm.h"

/* What a rank says when a communicator is split. */
struct dt_split_word {
    uint64_t color; /* 0: it will be in none */
    int64_t key;
    uint64_t id; /* what the new one is called if this is its first rank */
};

/* The ranks with rank me's color, in the order of key, then rank. Returns their number. Pure. */
uint32_t dt_split_members(const struct dt_split_word *words, uint32_t n, uint32_t me,
                          uint32_t *members);

/* Collective on parent, as a call of this kind; *out NULL where color is 0. The new communicator
 * has a slot. */
dt_result_t dt_comm_split_into(struct dt_comm *parent, enum dt_call_kind kind, uint64_t color,
                               int64_t key, struct dt_comm **out);
/* Takes a communicator out of its slot, whose lock is held, and frees it. */
void dt_comm_destroy(struct dt_comm *c);

#endif
