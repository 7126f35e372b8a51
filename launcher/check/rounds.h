/* When each host measures the way to the next one in a ring of all hosts. No host takes part in two
 * measurements at once. Pure. */
#ifndef DT_CHECK_ROUNDS_H
#define DT_CHECK_ROUNDS_H

#include <stddef.h>

/* How many rounds n hosts need: none for one host, else two, or three if n is odd. */
size_t dt_rounds_count(size_t n);
/* The round in which host i of n measures the way to host (i + 1) mod n. */
size_t dt_rounds_of(size_t i, size_t n);

#endif
