#include "runtime/base/copy.h"

/* For a memcpy of constant size gcc emits "rep movsq", which is just as slow. */
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
