/* For the bodies of test ranks: a check that fails prints itself and becomes the rank's exit
 * code. */
#ifndef TESTS_UNIT_RANKCHECK_H
#define TESTS_UNIT_RANKCHECK_H

#include <stdio.h>

#include "runtime/dtrun.h"

#define NEED(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "rank %d: %s:%d: %s (%s)\n", dt_rank(), __FILE__, __LINE__, #cond,     \
                    dt_last_error());                                                              \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

/* The sum over all ranks of rank + i. */
static inline int64_t ranks_sum(int64_t i)
{
    return dt_size() * i + dt_size() * (dt_size() - 1) / 2;
}

#endif
