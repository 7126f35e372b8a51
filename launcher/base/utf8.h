/* Text for JSON, which must be UTF-8 while arguments and paths may be anything. */
#ifndef DT_BASE_UTF8_H
#define DT_BASE_UTF8_H

/* A copy of text in which U+FFFD stands for every byte that is no part of valid UTF-8. */
char *dt_utf8_clean(const char *text);

#endif
