#include "runtime/base/copy.h"

/* Of a memcpy whose size it knows, gcc makes "rep movsq", which is slow there, too. */
void dt_copy_piecewise(void *dst, const void *src, size_t bytes)
{
    char *to = dst;
    const char *from = src;

    for (; bytes > DT_COPY_PIECE; bytes -= DT_COPY_PIECE) {
        memmove(to, from, DT_COPY_PIECE);
        to += DT_COPY_PIECE;
        from += DT_COPY_PIECE;
    }
    memcpy(to, from, bytes);
}
