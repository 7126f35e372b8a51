/* One-way byte pipes between the ranks of a host, in the memory that they share: from every local
 * rank to every local rank two, each with one writer and one reader, in the order of bytes. They
 * have the shape of non-blocking sockets. A pipe holds less than 64 KiB, less the more ranks there
 * are.
 *
 * A rank's two pipes to itself join two of its threads, each of which writes to the pipe of the set
 * that its s->pipes names, and reads from the other one.
 *
 * The writing rank alone calls dt_pipe_write, the reading one dt_pipe_read; the same thread may do
 * both on its two pipes with a peer, of the set that s->pipes names. Who finds nothing to do waits
 * with dt_shm_wait (rounds.h) for dt_pipe_may_write or dt_pipe_may_read. */
#ifndef DT_SHM_PIPE_H
#define DT_SHM_PIPE_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "runtime/shm/shm.h"

/* Writes as much of the n parts as there is room for to the pipe from this rank to peer. Returns
 * how many bytes that is, or -1 with EAGAIN when there is no room at all. */
ssize_t dt_pipe_write(const struct dt_shm *s, uint32_t peer, const struct iovec *parts, int n);
/* Reads what is there, and fits into the n parts, from the pipe from peer to this rank. Returns how
 * many bytes that is, or -1 with EAGAIN when there is nothing. */
ssize_t dt_pipe_read(const struct dt_shm *s, uint32_t peer, const struct iovec *parts, int n);

/* How many bytes a pipe holds. */
size_t dt_pipe_capacity(const struct dt_shm *s);
/* How many the next call would write. */
size_t dt_pipe_room(const struct dt_shm *s, uint32_t peer);
/* Whether the next call would move anything. */
bool dt_pipe_may_write(const struct dt_shm *s, uint32_t peer);
bool dt_pipe_may_read(const struct dt_shm *s, uint32_t peer);

#endif
