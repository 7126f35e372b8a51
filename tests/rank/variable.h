/* A variable that the environment of a rank must have. */
#ifndef TESTS_RANK_VARIABLE_H
#define TESTS_RANK_VARIABLE_H

#include <stdio.h>
#include <stdlib.h>

static inline const char *text(const char *name)
{
    const char *value = getenv(name);

    if (!value) {
        fprintf(stderr, "%s is not set\n", name);
        exit(2);
    }
    return value;
}

#endif
