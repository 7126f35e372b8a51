#include "runtime/coll/roster.h"

#include <string.h>

void dt_roster_fill(struct dt_roster *r, const uint32_t *node_of, uint32_t size, uint32_t hosts)
{
    for (uint32_t rank = 0; rank < size; rank++)
        r->first[node_of[rank] + 1]++;
    for (uint32_t host = 0; host < hosts; host++)
        r->first[host + 1] += r->first[host];
    for (uint32_t rank = 0; rank < size; rank++)
        r->ranks[r->first[node_of[rank]]++] = rank;
    memmove(r->first + 1, r->first, hosts * sizeof *r->first);
    r->first[0] = 0;
}
