/* Where the ranks of a job run, in the compact form that MPI libraries know. Pure.
 *
 * A map is a list of triples FIRST, NODES, RANKS: NODES consecutive nodes, starting with FIRST,
 * have RANKS consecutive ranks each. The list starts over while ranks are left. */
#ifndef DT_PLACE_MPIMAP_H
#define DT_PLACE_MPIMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/codec.h"

enum { DT_MPIMAP_TEXT_MAX = 1024 }; /* bytes, with the terminating null: the maximum of PMI-1 */

/* node_of is indexed by rank. The caller frees map->v. */
void dt_mpimap_make(struct dt_u32s *map, const uint32_t *node_of, uint32_t np);

/* Returns the value of PMI_process_mapping, "(vector,(FIRST,NODES,RANKS),...)", or "" if it is too
 * long; MPI then compares host names. The caller frees it. */
char *dt_mpimap_text(const struct dt_u32s *map);

/* The inverse of dt_mpimap_make. Returns false if map is not valid for np ranks on this number of
 * nodes. */
bool dt_mpimap_expand(const struct dt_u32s *map, uint32_t nodes, uint32_t *node_of, uint32_t np);

#endif
