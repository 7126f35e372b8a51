#include "runtime/base/copy.h"

/* For a memcpy of constant size gcc emits "rep movsq", which is just as slow. */
void dt_copy_in_chunks(void *dst, const void *src, size_t bytes)
{
    char *to = dst;
    const char *from = src;

    for (; bytes > DT_COPY_CHUNK; bytes -= DT_COPY_CHUNK) {
        memmove(to, from, DT_COPY_CHUNK);
        to += DT_COPY_CHUNK;
        from += DT_COPY_CHUNK;
    }
    memcpy(to, from, bytes);
}
