/* Copies large amounts of data between buffers that do not overlap.
 *
 * For 4 KiB and more, glibc before 2.40 copies with "rep movsb" on AMD's Zen 3 and 4. On these
 * processors the instruction is about 20 times slower if dst is 1 to 31 bytes further into its page
 * than src is into its own (glibc bug 30994; 2 bytes/ns instead of 40 on a Zen 3). That is a common
 * case: malloc places large buffers 16 bytes into a page, and staging memory begins at the start of
 * one. */
#ifndef DT_BASE_COPY_H
#define DT_BASE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    DT_COPY_CHUNK = 1024,        /* bytes; glibc uses "rep movsb" from 2 KiB on, or later */
    DT_COPY_WHOLE = 1024 * 1024, /* glibc does not use it beyond the size of the L2 cache */
};

/* Whether memcpy would be slow for these addresses and this size. Pure. */
static inline bool dt_copy_is_slow(uintptr_t dst, uintptr_t src, size_t bytes)
{
    enum { PAGE = 4096, NEAR = 32 };

    return (dst - src - 1) % PAGE < NEAR - 1 && bytes > DT_COPY_CHUNK && bytes < DT_COPY_WHOLE;
}

/* Copies in chunks too small for "rep movsb". */
void dt_copy_in_chunks(void *dst, const void *src, size_t bytes);

/* Like memcpy, but fast for all addresses. */
static inline void dt_copy(void *dst, const void *src, size_t bytes)
{
#if defined(__x86_64__)
    if (dt_copy_is_slow((uintptr_t)dst, (uintptr_t)src, bytes)) {
        dt_copy_in_chunks(dst, src, bytes);
        return;
    }
#endif
    memcpy(dst, src, bytes);
}

#endif
