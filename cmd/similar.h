/* How similar a word is to an option's name; used to guess what a mistyped option was meant to be.
 * Pure. */
#ifndef DT_CMD_SIMILAR_H
#define DT_CMD_SIMILAR_H

#include <stdbool.h>
#include <stddef.h>

/* Returns how many letters to insert, remove or replace to turn the n bytes of a into the word b.
 * The result is a large number if either is longer than any option's name. */
size_t dt_similar_distance(const char *a, size_t n, const char *b);

/* Returns whether the n bytes of word are the option's name, in which * at the end stands for any
 * text. An underscore in word counts as a dash, as in launchers written in Python. */
bool dt_similar_same(const char *name, const char *word, size_t n);

#endif
