#include "runtime/shm/pipe.h"

#include <errno.h>

#include "runtime/base/copy.h"
#include "runtime/base/min.h"
#include "runtime/shm/rounds.h"

/* Each side stores only its own count, and so may load it relaxed. Its store is a release: the
 * writer's makes the bytes visible before the count that covers them, and the reader's allows the
 * writer to overwrite bytes only after they have been read. The other side loads with acquire.
 * Waking works as in rounds: the count is stored before the check for sleepers. */

size_t dt_pipe_capacity(const struct dt_shm *s)
{
    return s->map.pipe - sizeof(struct dt_hostshm_pipe);
}

static size_t room(const struct dt_shm *s, const struct dt_hostshm_pipe *p)
{
    return dt_pipe_capacity(s) - (size_t)(atomic_load_explicit(&p->written, memory_order_relaxed) -
                                          atomic_load_explicit(&p->read, memory_order_acquire));
}

static size_t bytes_ready(const struct dt_hostshm_pipe *p)
{
    return (size_t)(atomic_load_explicit(&p->written, memory_order_acquire) -
                    atomic_load_explicit(&p->read, memory_order_relaxed));
}

/* Copy between memory and the ring. "at" counts all bytes that the pipe has ever carried. */
static void copy_in(const struct dt_shm *s, struct dt_hostshm_pipe *p, uint64_t at,
                    const uint8_t *from, size_t bytes)
{
    size_t begin = at % dt_pipe_capacity(s);
    size_t straight = dt_min(bytes, dt_pipe_capacity(s) - begin);

    dt_copy(p->data + begin, from, straight);
    dt_copy(p->data, from + straight, bytes - straight);
}

static void copy_out(const struct dt_shm *s, const struct dt_hostshm_pipe *p, uint64_t at,
                     uint8_t *to, size_t bytes)
{
    size_t begin = at % dt_pipe_capacity(s);
    size_t straight = dt_min(bytes, dt_pipe_capacity(s) - begin);

    dt_copy(to, p->data + begin, straight);
    dt_copy(to + straight, p->data, bytes - straight);
}

/* Counts the bytes that have moved, and returns their number like read(2). */
static ssize_t count(const struct dt_shm *s, uint32_t peer, _Atomic uint64_t *counter,
                     uint64_t before, uint64_t now)
{
    if (now == before) {
        errno = EAGAIN;
        return -1;
    }
    atomic_store_explicit(counter, now, memory_order_release);
    dt_shm_wake_one(s, peer);
    return (ssize_t)(now - before);
}

ssize_t dt_pipe_write(const struct dt_shm *s, uint32_t peer, const struct iovec *iov, int n)
{
    struct dt_hostshm_pipe *p = dt_hostshm_pipe(&s->map, s->pipes, s->me, peer);
    uint64_t before = atomic_load_explicit(&p->written, memory_order_relaxed);
    uint64_t end = before + room(s, p);
    uint64_t at = before;

    for (int i = 0; i < n && at < end; i++) {
        size_t bytes = dt_min(iov[i].iov_len, (size_t)(end - at));

        if (bytes)
            copy_in(s, p, at, iov[i].iov_base, bytes);
        at += bytes;
    }
    return count(s, peer, &p->written, before, at);
}

/* When a rank sends to itself, one side writes to the set that the other reads from. */
static struct dt_hostshm_pipe *read_from(const struct dt_shm *s, uint32_t peer)
{
    return dt_hostshm_pipe(&s->map, peer == s->me ? 1 - s->pipes : s->pipes, peer, s->me);
}

ssize_t dt_pipe_read(const struct dt_shm *s, uint32_t peer, const struct iovec *iov, int n)
{
    struct dt_hostshm_pipe *p = read_from(s, peer);
    uint64_t before = atomic_load_explicit(&p->read, memory_order_relaxed);
    uint64_t end = before + bytes_ready(p);
    uint64_t at = before;

    for (int i = 0; i < n && at < end; i++) {
        size_t bytes = dt_min(iov[i].iov_len, (size_t)(end - at));

        if (bytes)
            copy_out(s, p, at, iov[i].iov_base, bytes);
        at += bytes;
    }
    return count(s, peer, &p->read, before, at);
}

size_t dt_pipe_room(const struct dt_shm *s, uint32_t peer)
{
    return room(s, dt_hostshm_pipe(&s->map, s->pipes, s->me, peer));
}

bool dt_pipe_may_write(const struct dt_shm *s, uint32_t peer)
{
    return dt_pipe_room(s, peer) > 0;
}

bool dt_pipe_may_read(const struct dt_shm *s, uint32_t peer)
{
    return bytes_ready(read_from(s, peer)) > 0;
}
