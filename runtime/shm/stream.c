#include "runtime/shm/stream.h"

#include <stdint.h>
#include <string.h>

#include "runtime/kernels/reduce.h"
#include "runtime/wire/hostshm.h"

/* Stores whole cache lines only: a partial one would have to be read from memory first. */
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

/* A store-release does not order non-temporal stores. */
void dt_stream_settle(void)
{
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}
