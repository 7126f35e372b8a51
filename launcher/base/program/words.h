/* Finds the programs that a command line names: as arguments ("numactl -N 0 ./train"), in the text
 * of a shell ("sh -c 'exec ./train'"), or in a script among them. */
#ifndef DT_BASE_PROGRAM_WORDS_H
#define DT_BASE_PROGRAM_WORDS_H

#include <stdbool.h>

#include "runtime/wire/codec.h"

typedef bool dt_words_test(void *arg, const char *path);

/* path is the program, argv its arguments, and search (as PATH) where to look for names without a
 * slash. Returns whether the first 1000 words name a file that can be executed and passes the test.
 * Of a script the first 64 KiB count. */
bool dt_words_find(const char *path, const struct dt_strs *argv, const char *search,
                   dt_words_test *passes, void *arg);

#endif
