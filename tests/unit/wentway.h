/* Which way a rank's last call took, as its flight recorder has it. */
#ifndef TESTS_WENTWAY_H
#define TESTS_WENTWAY_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "runtime/dtrun.h"

enum { WENTWAY_DUMP = 64 * 1024 };

/* Of the calls of that kind ("all-reduce"; "": of any). program: the number of the test, which
 * ranks of another namespace do not see. */
static inline bool went_way(pid_t program, const char *kind, const char *way)
{
    static char text[WENTWAY_DUMP + 1];
    char path[64], wanted[64], begin[64];
    const char *last = NULL;
    size_t n;
    FILE *f;

    snprintf(path, sizeof path, "/dev/shm/dtrun-way.%d.%d.jsonl", (int)program, dt_rank());
    snprintf(wanted, sizeof wanted, "\"way\":\"%s\"", way);
    snprintf(begin, sizeof begin, "\"kind\":\"%s", kind);
    if (dt_recorder_dump(path) != DT_OK || !(f = fopen(path, "r")))
        return false;
    n = fread(text, 1, WENTWAY_DUMP, f);
    fclose(f);
    unlink(path);
    text[n] = '\0';
    for (const char *at = text; (at = strstr(at, begin)); at++)
        last = at;
    return last && strstr(last, wanted) && strstr(last, wanted) < last + strcspn(last, "\n");
}

#endif
