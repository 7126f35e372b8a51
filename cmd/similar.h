/* How alike two words are, to guess what a mistyped one was meant to be. Pure. */
#ifndef DT_CMD_SIMILAR_H
#define DT_CMD_SIMILAR_H

#include <stddef.h>

/* The number of letters to insert, remove or replace that make the n bytes of a the word b; a large
 * number when either is longer than any option's name. */
size_t dt_similar_distance(const char *a, size_t n, const char *b);

#endif
