#include "runtime/copy.h"

enum { PIECE = 1024 }; /* bytes: the C library uses "rep movsb" from 2 KiB on, or more */

void dt_copy_piecewise(void *dst, const void *src, size_t bytes)
{
    char *to = dst;
    const char *from = src;

    for (; bytes > PIECE; bytes -= PIECE, to += PIECE, from += PIECE)
        memcpy(to, from, PIECE);
    memcpy(to, from, bytes);
}
