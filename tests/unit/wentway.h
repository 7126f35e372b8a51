/* Which algorithm a rank's last call used, according to its flight recorder. */
#ifndef TESTS_WENTWAY_H
#define TESTS_WENTWAY_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "runtime/dtrun.h"

enum { WENTWAY_DUMP = 64 * 1024 };

/* The algorithm of the last call of that kind ("all-reduce"; "": of any kind), or NULL. program:
 * the process ID of the test, which ranks in another namespace do not see. */
static inline const char *last_way(pid_t program, const char *kind)
{
    static char text[WENTWAY_DUMP + 1];
    static const char mark[] = "\"way\":\"";
    char path[64], begin[64];
    char *last = NULL;
    size_t n;
    FILE *f;

    snprintf(path, sizeof path, "/dev/shm/dtrun-way.%d.%d.jsonl", (int)program, dt_rank());
    snprintf(begin, sizeof begin, "\"kind\":\"%s", kind);
    if (dt_recorder_dump(path) != DT_OK || !(f = fopen(path, "r")))
        return NULL;
    n = fread(text, 1, WENTWAY_DUMP, f);
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

static inline bool went_way(pid_t program, const char *kind, const char *way)
{
    const char *last = last_way(program, kind);

    return last && strcmp(last, way) == 0;
}

/* Does the same for the part between hosts, whatever was used within them. */
static inline bool went_way_between(pid_t program, const char *kind, const char *way)
{
    const char *last = last_way(program, kind), *plus = last ? strchr(last, '+') : NULL;

    return last && strcmp(plus ? plus + 1 : last, way) == 0;
}

#endif
