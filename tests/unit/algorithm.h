/* Which algorithm a rank's last call used, according to its flight recorder. */
#ifndef TESTS_UNIT_ALGORITHM_H
#define TESTS_UNIT_ALGORITHM_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "runtime/dtrun.h"

enum { DUMP_BYTES = 64 * 1024 };

/* The algorithm of the last call of that kind ("all-reduce"; "": of any kind), or NULL. program:
 * the process ID of the test, which ranks in another namespace do not see. */
static inline const char *last_algorithm(pid_t program, const char *kind)
{
    static char text[DUMP_BYTES + 1];
    static const char mark[] = "\"algorithm\":\"";
    char path[64], begin[64];
    char *last = NULL;
    size_t n;
    FILE *f;

    snprintf(path, sizeof path, "/dev/shm/dtrun-algorithm.%d.%d.jsonl", (int)program, dt_rank());
    snprintf(begin, sizeof begin, "\"kind\":\"%s", kind);
    if (dt_recorder_dump(path) != DT_OK || !(f = fopen(path, "r")))
        return NULL;
    n = fread(text, 1, DUMP_BYTES, f);
    fclose(f);
    unlink(path);
    text[n] = '\0';
    for (char *at = text; (at = strstr(at, begin)); at++)
        last = at;
    if (!last)
        return NULL;
    last[strcspn(last, "\n")] = '\0';
    last = strstr(last, mark);
    if (!last)
        return NULL;
    last += strlen(mark);
    last[strcspn(last, "\"")] = '\0';
    return last;
}

static inline bool used_algorithm(pid_t program, const char *kind, const char *algorithm)
{
    const char *last = last_algorithm(program, kind);

    return last && strcmp(last, algorithm) == 0;
}

/* Does the same for the algorithm between hosts, whatever was used within them. */
static inline bool used_between_hosts(pid_t program, const char *kind, const char *algorithm)
{
    const char *last = last_algorithm(program, kind), *plus = last ? strchr(last, '+') : NULL;

    return last && strcmp(plus ? plus + 1 : last, algorithm) == 0;
}

#endif
