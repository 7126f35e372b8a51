/* Finds the words of a command line that a shell may run: its arguments ("numactl -N 0 ./train"),
 * the text for a shell ("sh -c 'exec ./train'"), and the text of scripts of shells and of R among
 * them. */
#ifndef DT_BASE_PROGRAM_WORDS_H
#define DT_BASE_PROGRAM_WORDS_H

#include <stdbool.h>

#include "runtime/wire/codec.h"

typedef bool dt_words_test(void *arg, const char *word);

/* Returns whether a word passes the test. path is the program; argv[0] is ignored. Looks at every
 * argument, at the first 64 KiB of each script, and at 1000 words of all texts together. */
bool dt_words_find(const char *path, const struct dt_strs *argv, dt_words_test *passes, void *arg);

#endif
