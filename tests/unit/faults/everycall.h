/* Every call that the ranks of a job make together, once, with a check of what it returned: for
 * tests that disturb a job wherever it can be. */
#ifndef TESTS_EVERYCALL_H
#define TESTS_EVERYCALL_H

#include <stddef.h>

#include "runtime/dtrun.h"

struct everycall {
    const char *name;
    dt_result_t (*make)(void); /* EVERYCALL_WRONG: DT_OK, but not the right result */
};

enum { EVERYCALL_WRONG = 1000 };

/* In an order in which they can be made. The first is dt_init, the last dt_finalize. */
extern const struct everycall everycalls[];
extern const size_t everycalls_n;

#endif
