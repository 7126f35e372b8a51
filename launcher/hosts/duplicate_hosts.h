/* Finds host names that belong to the same machine. Pure. */
#ifndef DT_HOSTS_DUPLICATE_HOSTS_H
#define DT_HOSTS_DUPLICATE_HOSTS_H

#include <stddef.h>

/* Sets first[i] to the lowest index with the same identity as i, or to i itself if that identity is
 * NULL (unknown). O(n log n). */
void dt_duplicate_hosts_find(const char *const *identities, size_t n, size_t *first);

#endif
