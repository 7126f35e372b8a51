/* Checks that every rank sends as much as its peer expects, where each pair of ranks states counts
 * of its own. Each rank adds up a number. The sum over all ranks is 0 if all pairs agree, and is 0
 * by chance with a probability of 2^-64 if one does not. So every rank learns of a mismatch, not
 * only the pair. Pure. */
#ifndef DT_BASE_COUNT_CHECK_H
#define DT_BASE_COUNT_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/blocks.h"

/* What a rank adds for the count that it gives to a peer or takes from it. This is a hash of the
 * count, not a multiple: with multiples two differences could cancel each other out. */
uint64_t dt_count_check_one(uint32_t me, uint32_t peer, uint64_t count, bool gives);
/* The sum of these over the blocks of all other ranks, of n ranks. */
uint64_t dt_count_check_blocks(uint32_t me, uint32_t n, const struct dt_blocks *blocks, bool gives);

#endif
