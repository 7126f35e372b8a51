/* Where the ranks of a job run, as PMI-1 tells MPI libraries. Pure. */
#ifndef DT_PLACE_MPIMAP_H
#define DT_PLACE_MPIMAP_H

#include <stdint.h>

enum { DT_MPI_MAPPING_MAX = 1024 }; /* bytes, with the terminating null: what PMI-1 has room for */

/* The value of PMI_process_mapping, "(vector,(FIRST,NODES,RANKS),...)": each triple stands for so
 * many nodes in a row with so many ranks in a row each, and MPI begins again with the first triple
 * when ranks are left. "" where that is too long; MPI then finds out by names of hosts. node_of: by
 * rank. The caller frees it. */
char *dt_mpi_mapping(const uint32_t *node_of, uint32_t np);

#endif
