/* Whether what each rank gives is what the other expects, where every pair states counts of its
 * own: each rank adds up a number, and the sum of all ranks' is 0 if all pairs agree, and otherwise
 * for one disagreement in 2^64. So all know before anything is moved, and not only who is
 * concerned. Pure. */
#ifndef DT_BASE_COUNT_CHECK_H
#define DT_BASE_COUNT_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/blocks.h"

/* What a rank adds for what it gives to a peer, or takes from it, in elements or bytes. It is no
 * multiple of that: if ranks differ by as much here as there, sums of weights could make up for it.
 */
uint64_t dt_count_check_one(uint32_t me, uint32_t peer, uint64_t count, bool gives);
/* For its blocks of all others, of n ranks. */
uint64_t dt_count_check_blocks(uint32_t me, uint32_t n, const struct dt_blocks *blocks, bool gives);

#endif
