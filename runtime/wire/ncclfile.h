/* Reads an NCCL configuration file: lines NAME=VALUE without blanks; the first line of a name
 * counts. libdtrun reads the settings that it needs to know, and the agent leaves alone those that
 * the file has. */
#ifndef DT_WIRE_NCCLFILE_H
#define DT_WIRE_NCCLFILE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DT_NCCLFILE_TEXT = 256 };

/* False: the file does not exist or does not set the name. A value that is too long is cut. */
static inline bool dt_ncclfile_find(const char *file, const char *name,
                                    char value[DT_NCCLFILE_TEXT])
{
    FILE *f = fopen(file, "re");
    size_t length = strlen(name);
    char *line = NULL;
    size_t room = 0;
    bool found = false;

    while (f && !found && getline(&line, &room, f) > 0) {
        found = strncmp(line, name, length) == 0 && line[length] == '=';
        if (found)
            snprintf(value, DT_NCCLFILE_TEXT, "%.*s", (int)strcspn(line + length + 1, "\n"),
                     line + length + 1);
    }
    free(line);
    if (f)
        fclose(f);
    return found;
}

#endif
