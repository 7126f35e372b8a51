/* Finds names that belong to one machine. Pure. */
#ifndef DT_HOSTS_DUPLICATE_HOSTS_H
#define DT_HOSTS_DUPLICATE_HOSTS_H

#include <stddef.h>

/* first[i] becomes the lowest index with the same identity as i, or i itself if that is NULL
 * (unknown). O(n log n). */
void dt_duplicate_hosts_find(const char *const *identities, size_t n, size_t *first);

#endif
