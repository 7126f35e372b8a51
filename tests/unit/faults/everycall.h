/* Every call that the ranks of a job make together, once, with a check of its result. For tests
 * that disturb a job at any point. */
#ifndef TESTS_EVERYCALL_H
#define TESTS_EVERYCALL_H

#include <stddef.h>

#include "runtime/dtrun.h"

struct everycall {
    const char *name;
    dt_result_t (*make)(void); /* returns EVERYCALL_WRONG for DT_OK with a wrong result */
};

enum { EVERYCALL_WRONG = 1000 };

/* The calls in an order in which they can be made. The first is dt_init, the last dt_finalize. */
extern const struct everycall everycalls[];
extern const size_t everycalls_n;

#endif
