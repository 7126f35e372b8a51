/* Finds host names that belong to the same machine. Pure. */
#ifndef DT_HOSTS_DUPLICATE_HOSTS_H
#define DT_HOSTS_DUPLICATE_HOSTS_H

#include <stddef.h>

typedef const char *(*dt_identity_f)(const void *arg, size_t i); /* NULL: unknown */

/* Returns an array: for each of n hosts the lowest index of a host with the same identity, or its
 * own index if its identity is unknown. The caller frees the array. O(n log n). */
size_t *dt_duplicate_hosts_find(size_t n, dt_identity_f identity, const void *arg);

#endif
