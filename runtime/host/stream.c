#include "runtime/host/stream.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "runtime/copy.h"
#include "runtime/host/clock.h"
#include "runtime/host/reduce.h"
#include "runtime/wire/hostshm.h"

enum {
    LEAST_BYTES = 2048,          /* less is not worth the choice */
    NEAR_BYTES_PER_NS = 5,       /* what every core writes to memory: slower stores lose */
    TIMED = 16,                  /* one copy in so many is timed, and all after a slow one */
    SLOW = 8,                    /* more than noise */
    ALL_BYTES = DT_HOSTSHM_ROOM, /* every place of a staging has been written to after these */
    LEAST_STAY = 16 * ALL_BYTES, /* the first try to find that plain stores are fast again */
    MOST_STAY = 512 * ALL_BYTES, /* a try is then less than a hundredth of the bytes */
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

static void change(struct dt_stream *s, bool far)
{
    s->far = far;
    s->slow = 0;
    s->untimed = 0;
    s->bytes = 0;
}

static void go_past(struct dt_stream *s)
{
    s->stays = s->stays == 0 ? LEAST_STAY : s->stays < MOST_STAY ? 2 * s->stays : MOST_STAY;
    change(s, true);
}

/* One more time of a plain copy. */
static void weigh(struct dt_stream *s, bool slow)
{
    if (slow)
        s->slow++;
    else if (s->slow > 0)
        s->slow--;
    s->untimed = s->slow > 0 ? 0 : TIMED - 1;
    if (s->slow == SLOW)
        go_past(s);
    else if (s->bytes >= LEAST_STAY)
        s->stays = 0;
}

void dt_stream_learn(struct dt_stream *s, size_t bytes, uint64_t took_ns)
{
    s->bytes += bytes;
    if (s->far && s->bytes >= s->stays)
        change(s, false);
    else if (took_ns > 0)
        weigh(s, took_ns * NEAR_BYTES_PER_NS > bytes);
    else if (s->untimed > 0)
        s->untimed--;
}

/* Until the stores are in the cache: they would still be under way otherwise. */
static uint64_t timed_copy(void *dst, const void *src, size_t bytes)
{
    uint64_t start = dt_clock_ns();

    dt_copy(dst, src, bytes);
    atomic_thread_fence(memory_order_seq_cst);
    return dt_clock_ns() - start + 1; /* 0: not timed */
}

void dt_stream_copy(struct dt_stream *s, void *dst, const void *src, size_t bytes)
{
    uint64_t took = 0;

    if (bytes < LEAST_BYTES) {
        memcpy(dst, src, bytes);
        return;
    }
    if (s->far) {
        dt_stream_past_caches(dst, src, bytes);
        dt_stream_settle();
    } else if (s->untimed == 0 && s->bytes >= ALL_BYTES) {
        took = timed_copy(dst, src, bytes);
    } else {
        dt_copy(dst, src, bytes);
    }
    dt_stream_learn(s, bytes, took);
}
