/* The file that has the thresholds of this machine (tuning.h): where it is, and reading it. */
#ifndef DT_BASE_TUNINGFILE_H
#define DT_BASE_TUNINGFILE_H

#include "runtime/base/tuning.h"

enum { DT_TUNINGFILE_PATH = 4096, DT_TUNINGFILE_BYTES = 64 * 1024 };

enum dt_tuningfile_found {
    DT_TUNINGFILE_NONE,     /* or DTRUN_TUNING is empty, which says so */
    DT_TUNINGFILE_NAMED,    /* by the user; it may not be there */
    DT_TUNINGFILE_THERE,    /* at one of the usual places */
    DT_TUNINGFILE_TOO_LONG, /* DTRUN_TUNING does not fit path */
};

/* The file that DTRUN_TUNING names; else the user's, ~/.config/dtrun/tuning; else, where there is
 * none, /etc/dtrun/tuning. */
enum dt_tuningfile_found dt_tuningfile_find(char path[DT_TUNINGFILE_PATH]);
/* What is said of that. */
#define DT_TUNINGFILE_TOO_LONG_TEXT                                                                \
    "DTRUN_TUNING is longer than a path can be (4095 characters): it names a file, and does not "  \
    "have the thresholds themselves"

/* The user's own. False: there is no home directory. */
bool dt_tuningfile_own(char path[DT_TUNINGFILE_PATH]);

/* Reads the file into table; warn is told what is wrong with it, a sentence each time, which names
 * file and line. What is wrong counts for nothing. */
void dt_tuningfile_read(struct dt_tuning_table *table, void (*warn)(void *arg, const char *text),
                        void *arg);

#endif
