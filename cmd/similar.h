/* How alike an option's name and a word are, also to guess what a mistyped one was meant to be.
 * Pure.
 */
#ifndef DT_CMD_SIMILAR_H
#define DT_CMD_SIMILAR_H

#include <stdbool.h>
#include <stddef.h>

/* The number of letters to insert, remove or replace that make the n bytes of a the word b; a large
 * number when either is longer than any option's name. */
size_t dt_similar_distance(const char *a, size_t n, const char *b);

/* Whether the n bytes of word are the option's name; an underscore in word counts as a dash, as in
 * Python's launchers. */
bool dt_similar_same(const char *name, const char *word, size_t n);

#endif
