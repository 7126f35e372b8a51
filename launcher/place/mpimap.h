/* Where the ranks of a job run, in the short form that MPI libraries know. Pure.
 *
 * A map is a list of triples FIRST, NODES, RANKS: so many nodes in a row, from the first one, have
 * so many ranks in a row each. It begins again with the first triple while ranks are left. */
#ifndef DT_PLACE_MPIMAP_H
#define DT_PLACE_MPIMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/codec.h"

enum { DT_MPIMAP_TEXT_MAX = 1024 }; /* bytes, with the terminating null: what PMI-1 has room for */

/* node_of: by rank. The caller frees map->v. */
void dt_mpimap_make(struct dt_u32s *map, const uint32_t *node_of, uint32_t np);

/* The value of PMI_process_mapping, "(vector,(FIRST,NODES,RANKS),...)"; "" where that is too long:
 * MPI then goes by the names of hosts. The caller frees it. */
char *dt_mpimap_text(const struct dt_u32s *map);

/* The opposite of make. Returns false where map is none of np ranks on so many nodes. */
bool dt_mpimap_expand(const struct dt_u32s *map, uint32_t nodes, uint32_t *node_of, uint32_t np);

#endif
