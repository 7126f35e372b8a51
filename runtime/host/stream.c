#include "runtime/host/stream.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "runtime/host/clock.h"
#include "runtime/host/reduce.h"

enum {
    LEAST_BYTES = 2048, /* less is not worth the choice */
    NEAR_BYTES_PER_NS =
        5,           /* what every core writes to memory: plain stores that take longer lose */
    TIMED_NEAR = 16, /* one copy in so many is timed */
    TIMED_FAR = 256, /* likewise, where each costs several times as much as another */
};

/* Whole cache lines: a part of one would be read from memory first. */
void dt_stream_past_caches(void *dst, const void *src, size_t bytes)
{
    char *to = dst;
    const char *from = src;
    size_t done = -(uintptr_t)to % DT_CACHE_LINE, lines;

    if (done > bytes)
        done = bytes;
    memcpy(to, from, done);
    lines = (bytes - done) / DT_CACHE_LINE * DT_CACHE_LINE;
    dt_reduce_kernels()->copy_past(to + done, from + done, lines);
    done += lines;
    memcpy(to + done, from + done, bytes - done);
}

/* A store-release orders no stores of this kind. */
void dt_stream_settle(void)
{
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}

/* Until the stores are in the cache: they would still be under way otherwise. */
static void timed_copy(struct dt_stream *s, void *dst, const void *src, size_t bytes)
{
    uint64_t start = dt_clock_ns();

    memcpy(dst, src, bytes);
    atomic_thread_fence(memory_order_seq_cst);
    s->far = (dt_clock_ns() - start) * NEAR_BYTES_PER_NS > bytes;
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
    if (!s->far) {
        memcpy(dst, src, bytes);
        return;
    }
    dt_stream_past_caches(dst, src, bytes);
    dt_stream_settle();
}
