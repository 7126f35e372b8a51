#include "runtime/host/stream.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

enum {
    LEAST_BYTES = 2048, /* less is not worth the choice */
    NEAR_BYTES_PER_NS =
        5,           /* what every core writes to memory: plain stores that take longer lose */
    TIMED_NEAR = 16, /* one copy in so many is timed */
    TIMED_FAR = 256, /* likewise, where each costs several times as much as another */
};

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#include <emmintrin.h>

/* Whole cache lines: a part of one would be read from memory first. */
static size_t copy_lines(char *dst, const char *src, size_t bytes)
{
    size_t i = 0;

    for (; bytes - i >= 64; i += 64) {
        __m128i line[4];

        memcpy(line, src + i, sizeof line);
        for (int k = 0; k < 4; k++)
            _mm_stream_si128((__m128i *)(dst + i) + k, line[k]);
    }
    _mm_sfence(); /* a store-release orders no stores of this kind */
    return i;
}
#else
static size_t copy_lines(char *dst, const char *src, size_t bytes)
{
    memcpy(dst, src, bytes);
    return bytes;
}
#endif

void dt_stream_past_caches(void *dst, const void *src, size_t bytes)
{
    char *to = dst;
    const char *from = src;
    size_t done = -(uintptr_t)to % 64;

    if (done > bytes)
        done = bytes;
    memcpy(to, from, done);
    done += copy_lines(to + done, from + done, bytes - done);
    memcpy(to + done, from + done, bytes - done);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Until the stores are in the cache: they would still be under way otherwise. */
static void timed_copy(struct dt_stream *s, void *dst, const void *src, size_t bytes)
{
    uint64_t start = now_ns();

    memcpy(dst, src, bytes);
    atomic_thread_fence(memory_order_seq_cst);
    s->far = (now_ns() - start) * NEAR_BYTES_PER_NS > bytes;
    s->left = s->far ? TIMED_FAR : TIMED_NEAR;
}

void dt_stream_copy(struct dt_stream *s, void *dst, const void *src, size_t bytes)
{
    if (bytes < LEAST_BYTES) {
        memcpy(dst, src, bytes);
        return;
    }
    if (s->left == 0) {
        timed_copy(s, dst, src, bytes);
        return;
    }
    s->left--;
    if (s->far)
        dt_stream_past_caches(dst, src, bytes);
    else
        memcpy(dst, src, bytes);
}
