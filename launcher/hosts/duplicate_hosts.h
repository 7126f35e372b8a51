/* Names that have turned out to be one machine. Pure. */
#ifndef DT_HOSTS_DUPLICATE_HOSTS_H
#define DT_HOSTS_DUPLICATE_HOSTS_H

#include <stddef.h>

/* first[i]: the lowest index that has the identity of i; i itself where that is NULL, which is
 * nobody's. O(n log n). */
void dt_duplicate_hosts_find(const char *const *identities, size_t n, size_t *first);

#endif
