#include "runtime/coll/width.h"

#include "runtime/base/least.h"

enum {
    LEADERS_MOST = 8,  /* one core each; more connections do not use a network better */
    HOSTS_MOST = 8,    /* with at most so many hosts, each leader may send to all others at once */
    PART_LEAST = 8192, /* bytes of a host's part of a slice; in smaller ones frames cost too much */
};

uint32_t dt_width(size_t hosts, size_t least_ranks, size_t round)
{
    size_t leaders = dt_least(round / (hosts * PART_LEAST), LEADERS_MOST + 1);

    leaders = dt_least(leaders > 1 ? leaders - 1 : 1, least_ranks);
    return hosts <= HOSTS_MOST ? (uint32_t)leaders : 1;
}
