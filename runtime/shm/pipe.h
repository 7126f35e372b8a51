/* One-way byte pipes between the ranks of a host, in shared memory. There are two from every local
 * rank to every local rank, each with one writer and one reader. They behave like non-blocking
 * sockets. A pipe holds less than 64 KiB, and less the more ranks there are.
 *
 * A rank's two pipes to itself connect two of its threads. Each thread writes to the pipe of the
 * set that its s->pipes names, and reads from the other set.
 *
 * Only the writing rank calls dt_pipe_write, and only the reading rank dt_pipe_read. One thread may
 * do both with a peer, in the set that s->pipes names. A side that cannot move anything waits with
 * dt_shm_wait (rounds.h) for dt_pipe_may_write or dt_pipe_may_read. */
#ifndef DT_SHM_PIPE_H
#define DT_SHM_PIPE_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "runtime/shm/shm.h"

/* Writes as much of the n iov as fits into the pipe from this rank to peer. Returns the number of
 * bytes, or -1 with EAGAIN if the pipe is full. */
ssize_t dt_pipe_write(const struct dt_shm *s, uint32_t peer, const struct iovec *iov, int n);
/* Reads as much from the pipe from peer to this rank as it holds and the n iov can take. Returns
 * the number of bytes, or -1 with EAGAIN if the pipe is empty. */
ssize_t dt_pipe_read(const struct dt_shm *s, uint32_t peer, const struct iovec *iov, int n);

/* Capacity of a pipe in bytes. */
size_t dt_pipe_capacity(const struct dt_shm *s);
/* How many bytes the next dt_pipe_write would write. */
size_t dt_pipe_room(const struct dt_shm *s, uint32_t peer);
/* Whether the next call would move at least one byte. */
bool dt_pipe_may_write(const struct dt_shm *s, uint32_t peer);
bool dt_pipe_may_read(const struct dt_shm *s, uint32_t peer);

#endif
