/* The contents of a checkpoint's files. Pure: bytes to structures and back, no I/O.
 *
 *     rank_00000.shard ...   head | data of each buffer, in order | checksum of all that
 *     MANIFEST               step, number of ranks, size and checksum of each shard | checksum
 *
 * The bytes depend only on step, layout and data: two runs that compute the same write the same. */
#ifndef DT_CHECKPOINT_FORMAT_H
#define DT_CHECKPOINT_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/checksum.h"
#include "runtime/dtrun.h"
#include "runtime/wire/codec.h"

enum {
    DT_CHECKPOINT_VERSION = 1,
    DT_SHARD_PREFIX = 16,         /* magic, version, length of the rest of the head */
    DT_SHARD_HEAD_MAX = 16 << 20, /* maximum length of that rest */
    DT_SHARD_NAME_MAX = 255,      /* maximum length of a buffer's name */
};

struct dt_gpu_hostmem;

/* Access to data outside of host memory: in chunks, each of which is passed to f, or as a copy to a
 * place in m. */
struct dt_device_access {
    dt_result_t (*read)(const void *data, uint64_t bytes,
                        dt_result_t (*f)(void *arg, void *chunk, size_t n), void *arg);
    dt_result_t (*write)(void *data, uint64_t bytes,
                         dt_result_t (*f)(void *arg, void *chunk, size_t n), void *arg);
    dt_result_t (*copy)(const void *data, uint64_t bytes, struct dt_gpu_hostmem *m, void *place);
};

/* A registered buffer, or a shard's description of one (then data is NULL). */
struct dt_buffer {
    char *name;
    void *data;
    uint64_t bytes;
    const struct dt_device_access *device; /* NULL: data are in host memory */
};

struct dt_buffers {
    struct dt_buffer *v;
    uint32_t n;
    size_t name_bytes; /* of all names */
};

/* Appends a buffer with a copy of the name. Returns 0, or -1 if memory runs out. */
int dt_buffers_add(struct dt_buffers *b, const char *name, void *data, uint64_t bytes);
void dt_buffers_remove_last(struct dt_buffers *b);
/* Whether a shard's head can also describe a buffer of this name. */
bool dt_buffers_have_room(const struct dt_buffers *b, const char *name);
void dt_buffers_free(struct dt_buffers *b);

struct dt_shard_head {
    int64_t step;
    uint32_t np;
    uint32_t rank;
    struct dt_buffers buffers;
};

void dt_shard_head_encode(struct dt_put *out, const struct dt_shard_head *head);
/* Reads the prefix. Returns the length of the rest, or 0 if it is not a shard's prefix. */
size_t dt_shard_prefix_decode(const uint8_t prefix[DT_SHARD_PREFIX]);
/* Reads the rest of the head. Returns 0, or -1 with errno and an empty head: EBADMSG if it is
 * invalid, or ENOMEM. */
int dt_shard_head_decode(const void *rest, size_t len, struct dt_shard_head *head);
void dt_shard_head_free(struct dt_shard_head *head);

/* Whether a shard fits the rank that wants it; if not, why says the reason (at most len bytes with
 * the NUL). */
bool dt_shard_fits(const struct dt_shard_head *found, const struct dt_shard_head *wanted, char *why,
                   size_t len);

struct dt_shard_info {
    uint64_t bytes; /* of the whole file */
    struct dt_checksum sum;
};

struct dt_manifest {
    int64_t step;
    uint32_t np;
    struct dt_shard_info *shards; /* by rank */
};

void dt_manifest_encode(struct dt_put *out, const struct dt_manifest *m);
/* Likewise: EBADMSG if the bytes are damaged or not a manifest. */
int dt_manifest_decode(const void *data, size_t len, struct dt_manifest *m);
void dt_manifest_free(struct dt_manifest *m);

#endif
