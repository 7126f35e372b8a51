/* Text for JSON, which must be UTF-8 while arguments and paths may be anything; and text from some
 * editors, which begins with a mark that it is UTF-8. */
#ifndef DT_BASE_UTF8_H
#define DT_BASE_UTF8_H

#include <stddef.h>

/* The length of the valid sequence that text begins with; 0 when there is none. */
size_t dt_utf8_sequence(const char *text);
/* A copy of text in which U+FFFD stands for every byte that is no part of valid UTF-8. */
char *dt_utf8_clean(const char *text);
/* The length of that mark where the n bytes of text begin with one, else 0. */
size_t dt_utf8_mark(const char *text, size_t n);

#endif
