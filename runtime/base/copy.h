/* Copies of many bytes, between buffers that do not overlap.
 *
 * glibc before 2.40 copies 4 KiB and more by "rep movsb" on AMD's Zen 3 and 4, and these take some
 * 20 times as long for it where dst is 1 to 31 bytes further into its page than src is into its own
 * (bug 30994 there; 2 bytes/ns instead of 40 on a Zen 3). That is the rule, not the exception:
 * malloc's large buffers begin 16 bytes into a page, and staging at the beginning of one. */
#ifndef DT_BASE_COPY_H
#define DT_BASE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    DT_COPY_PIECE = 1024,        /* bytes; the C library takes "rep movsb" from 2 KiB on, or more */
    DT_COPY_WHOLE = 1024 * 1024, /* and not for what is larger than the second-level cache */
};

/* Whether memcpy may be slow for that. Pure. */
static inline bool dt_copy_is_slow(uintptr_t dst, uintptr_t src, size_t bytes)
{
    enum { PAGE = 4096, NEAR = 32 };

    return (dst - src - 1) % PAGE < NEAR - 1 && bytes > DT_COPY_PIECE && bytes < DT_COPY_WHOLE;
}

/* Like memcpy, in pieces that it copies by other means. */
void dt_copy_piecewise(void *dst, const void *src, size_t bytes);

/* Like memcpy. */
static inline void dt_copy(void *dst, const void *src, size_t bytes)
{
    if (dt_copy_is_slow((uintptr_t)dst, (uintptr_t)src, bytes))
        dt_copy_piecewise(dst, src, bytes);
    else
        memcpy(dst, src, bytes);
}

#endif
