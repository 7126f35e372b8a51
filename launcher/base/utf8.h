/* Text for JSON must be UTF-8, while arguments and paths may have any bytes. Text from some editors
 * begins with a byte order mark. */
#ifndef DT_BASE_UTF8_H
#define DT_BASE_UTF8_H

#include <stddef.h>

/* The length of the valid sequence that text begins with; 0 when there is none. */
size_t dt_utf8_sequence(const char *text);
/* A copy of text with U+FFFD instead of every byte that is not part of valid UTF-8. */
char *dt_utf8_clean(const char *text);
/* The length of the byte order mark at the beginning of the n bytes of text; 0 if it has none. */
size_t dt_utf8_mark(const char *text, size_t n);

#endif
