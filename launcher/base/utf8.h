/* Recognises valid UTF-8: JSON must be UTF-8, while arguments and paths may have any bytes. Also
 * finds the byte order mark that some editors put in front of text. */
#ifndef DT_BASE_UTF8_H
#define DT_BASE_UTF8_H

#include <stddef.h>

/* Returns the length of the valid sequence that text begins with, or 0 if there is none. */
size_t dt_utf8_sequence(const char *text);
/* Returns a copy of text with U+FFFD instead of every byte that is not part of valid UTF-8. */
char *dt_utf8_clean(const char *text);
/* Returns the length of the byte order mark at the beginning of the n bytes of text, or 0. */
size_t dt_utf8_bom_size(const char *text, size_t n);

#endif
