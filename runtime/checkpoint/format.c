#include "runtime/checkpoint/format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/checksum.h"
#include "runtime/wire/msg.h"

static const char shard_magic[8] = "DTSHARD";
static const char manifest_magic[8] = "DTMANIF";

enum { REST_FIXED = 8 + 4 + 4 + 4, REST_PER_BUFFER = 4 + 8 }; /* and the name */
enum { MANIFEST_FIXED = 8 + 4 + 8 + 4, MANIFEST_PER_SHARD = 8 + DT_CHECKSUM_BYTES };

int dt_buffers_add(struct dt_buffers *b, const char *name, void *data, uint64_t bytes)
{
    const bool full = (b->n & (b->n - 1)) == 0; /* the room is always a power of two */
    struct dt_buffer *v = full ? realloc(b->v, (b->n ? 2 * (size_t)b->n : 1) * sizeof *v) : b->v;
    char *copy = strdup(name);

    if (v)
        b->v = v;
    if (!v || !copy) {
        free(copy);
        return -1;
    }
    v[b->n++] = (struct dt_buffer){ .name = copy, .data = data, .bytes = bytes };
    b->name_bytes += strlen(name);
    return 0;
}

void dt_buffers_remove_last(struct dt_buffers *b)
{
    char *name = b->v[--b->n].name;

    b->name_bytes -= strlen(name);
    free(name);
}

bool dt_buffers_have_room(const struct dt_buffers *b, const char *name)
{
    return REST_FIXED + ((size_t)b->n + 1) * REST_PER_BUFFER + b->name_bytes + strlen(name) <=
           DT_SHARD_HEAD_MAX;
}

void dt_buffers_free(struct dt_buffers *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        free(b->v[i].name);
    free(b->v);
    *b = (struct dt_buffers){ 0 };
}

static void encode_rest(struct dt_put *out, const struct dt_shard_head *head)
{
    dt_put_u64(out, (uint64_t)head->step);
    dt_put_u32(out, head->np);
    dt_put_u32(out, head->rank);
    dt_put_u32(out, head->buffers.n);
    for (uint32_t i = 0; i < head->buffers.n; i++) {
        dt_put_str(out, head->buffers.v[i].name);
        dt_put_u64(out, head->buffers.v[i].bytes);
    }
}

void dt_shard_head_encode(struct dt_put *out, const struct dt_shard_head *head)
{
    struct dt_put rest = { .max = DT_SHARD_HEAD_MAX };

    encode_rest(&rest, head);
    dt_put_bytes(out, shard_magic, sizeof shard_magic);
    dt_put_u32(out, DT_CHECKPOINT_VERSION);
    dt_put_u32(out, (uint32_t)rest.len);
    dt_put_bytes(out, rest.data, rest.len);
    out->failed |= rest.failed;
    dt_put_free(&rest);
}

size_t dt_shard_prefix_decode(const uint8_t prefix[DT_SHARD_PREFIX])
{
    struct dt_get g = dt_get_init(prefix, DT_SHARD_PREFIX);
    const uint8_t *magic = dt_get_bytes(&g, sizeof shard_magic);
    uint32_t version = dt_get_u32(&g);
    uint32_t len = dt_get_u32(&g);

    if (memcmp(magic, shard_magic, sizeof shard_magic) != 0 || version != DT_CHECKPOINT_VERSION ||
        len > DT_SHARD_HEAD_MAX)
        return 0;
    return len;
}

int dt_shard_head_decode(const void *rest, size_t len, struct dt_shard_head *head)
{
    struct dt_get g = dt_get_init(rest, len);
    uint32_t n;

    errno = EBADMSG;
    *head = (struct dt_shard_head){ .step = (int64_t)dt_get_u64(&g) };
    head->np = dt_get_u32(&g);
    head->rank = dt_get_u32(&g);
    n = dt_get_u32(&g);
    for (uint32_t i = 0; i < n && !g.failed; i++) {
        char *name = dt_get_str(&g, DT_SHARD_NAME_MAX);
        uint64_t bytes = dt_get_u64(&g);

        if (!name || g.failed || dt_buffers_add(&head->buffers, name, NULL, bytes) != 0)
            g.failed = true;
        free(name);
    }
    if (dt_get_end(&g) == 0 && head->step >= 0 && head->rank < head->np)
        return 0;
    dt_shard_head_free(head);
    return -1;
}

void dt_shard_head_free(struct dt_shard_head *head)
{
    dt_buffers_free(&head->buffers);
    *head = (struct dt_shard_head){ 0 };
}

bool dt_shard_fits(const struct dt_shard_head *found, const struct dt_shard_head *wanted, char *why,
                   size_t len)
{
    const struct dt_buffer *f = found->buffers.v, *w = wanted->buffers.v;

    if (found->step != wanted->step || found->np != wanted->np || found->rank != wanted->rank) {
        snprintf(why, len, "it is of step %lld, rank %u of %u", (long long)found->step, found->rank,
                 found->np);
        return false;
    }
    if (found->buffers.n != wanted->buffers.n) {
        snprintf(why, len, "it holds %u buffers, and %u are registered", found->buffers.n,
                 wanted->buffers.n);
        return false;
    }
    for (uint32_t i = 0; i < wanted->buffers.n; i++) {
        if (strcmp(f[i].name, w[i].name) != 0)
            snprintf(why, len, "its buffer %u is \"%s\", and \"%s\" is registered", i, f[i].name,
                     w[i].name);
        else if (f[i].bytes != w[i].bytes)
            snprintf(why, len, "its buffer \"%s\" has %llu bytes, and %llu are registered",
                     f[i].name, (unsigned long long)f[i].bytes, (unsigned long long)w[i].bytes);
        else
            continue;
        return false;
    }
    return true;
}

void dt_manifest_encode(struct dt_put *out, const struct dt_manifest *m)
{
    size_t start = out->len;
    struct dt_checksum sum;

    dt_put_bytes(out, manifest_magic, sizeof manifest_magic);
    dt_put_u32(out, DT_CHECKPOINT_VERSION);
    dt_put_u64(out, (uint64_t)m->step);
    dt_put_u32(out, m->np);
    for (uint32_t i = 0; i < m->np; i++) {
        dt_put_u64(out, m->shards[i].bytes);
        dt_put_bytes(out, m->shards[i].sum.bytes, DT_CHECKSUM_BYTES);
    }
    if (!out->failed) {
        sum = dt_checksum(out->data + start, out->len - start);
        dt_put_bytes(out, sum.bytes, sizeof sum.bytes);
    }
}

static void decode_shards(struct dt_get *g, struct dt_manifest *m)
{
    m->shards = calloc(m->np, sizeof *m->shards);
    for (uint32_t i = 0; m->shards && i < m->np; i++) {
        const uint8_t *sum;

        m->shards[i].bytes = dt_get_u64(g);
        sum = dt_get_bytes(g, DT_CHECKSUM_BYTES);
        if (sum)
            memcpy(m->shards[i].sum.bytes, sum, DT_CHECKSUM_BYTES);
    }
}

int dt_manifest_decode(const void *data, size_t len, struct dt_manifest *m)
{
    struct dt_get g = dt_get_init(data, len);
    const uint8_t *magic = dt_get_bytes(&g, sizeof manifest_magic);
    uint32_t version = dt_get_u32(&g);
    const uint8_t *sum;
    struct dt_checksum want;

    errno = EBADMSG;
    *m = (struct dt_manifest){ .step = (int64_t)dt_get_u64(&g) };
    m->np = dt_get_u32(&g);
    if (g.failed || memcmp(magic, manifest_magic, sizeof manifest_magic) != 0 ||
        version != DT_CHECKPOINT_VERSION || m->step < 0 || m->np < 1 || m->np > DT_RANKS_MAX ||
        len != MANIFEST_FIXED + (size_t)m->np * MANIFEST_PER_SHARD + DT_CHECKSUM_BYTES) {
        *m = (struct dt_manifest){ 0 };
        return -1;
    }
    decode_shards(&g, m);
    want = dt_checksum(data, len - DT_CHECKSUM_BYTES);
    sum = dt_get_bytes(&g, DT_CHECKSUM_BYTES);
    if (m->shards && dt_get_end(&g) == 0 && memcmp(sum, want.bytes, sizeof want.bytes) == 0)
        return 0;
    dt_manifest_free(m);
    return -1;
}

void dt_manifest_free(struct dt_manifest *m)
{
    free(m->shards);
    *m = (struct dt_manifest){ 0 };
}
