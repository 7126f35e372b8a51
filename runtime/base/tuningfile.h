/* Finds and reads the file with this machine's thresholds (tuning.h). */
#ifndef DT_BASE_TUNINGFILE_H
#define DT_BASE_TUNINGFILE_H

#include "runtime/base/tuning.h"

enum { DT_TUNINGFILE_PATH = 4096, DT_TUNINGFILE_BYTES = 64 * 1024 };

enum dt_tuningfile_found {
    DT_TUNINGFILE_NONE,     /* or DTRUN_TUNING is empty, which disables the file */
    DT_TUNINGFILE_NAMED,    /* named by DTRUN_TUNING; it may not exist */
    DT_TUNINGFILE_THERE,    /* found in one of the usual places */
    DT_TUNINGFILE_TOO_LONG, /* DTRUN_TUNING is too long for path */
};

/* Finds the file: the one that DTRUN_TUNING names, else ~/.config/dtrun/tuning, else
 * /etc/dtrun/tuning. */
enum dt_tuningfile_found dt_tuningfile_find(char path[DT_TUNINGFILE_PATH]);
#define DT_TUNINGFILE_TOO_LONG_TEXT                                                                \
    "DTRUN_TUNING is longer than a path can be (4095 characters): it names a file, and does not "  \
    "hold the thresholds themselves"

/* The path of the user's own file. False: there is no home directory. */
bool dt_tuningfile_own(char path[DT_TUNINGFILE_PATH]);

/* Reads the file into table, which also learns what this machine's processor is like. Ignores a
 * wrong line, and calls warn, at most 8 times, with a sentence that names file and line. */
void dt_tuningfile_read(struct dt_tuning_table *table, void (*warn)(void *arg, const char *text),
                        void *arg);

#endif
