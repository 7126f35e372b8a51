#include "runtime/checkpoint/shard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/names.h"

static dt_result_t write_chunk(void *file, void *chunk, size_t n)
{
    return dt_file_write(file, chunk, n);
}

static dt_result_t write_buffer(struct dt_file *f, const struct dt_buffer *b)
{
    if (b->device && b->bytes)
        return b->device->read(b->data, b->bytes, write_chunk, f);
    return dt_file_write(f, b->data, b->bytes);
}

static dt_result_t write_contents(struct dt_file *f, const struct dt_put *head,
                                  const struct dt_buffers *b, struct dt_shard_info *info)
{
    dt_result_t result = dt_file_write(f, head->data, head->len);

    info->bytes = head->len;
    for (uint32_t i = 0; i < b->n && result == DT_OK; i++) {
        result = write_buffer(f, &b->v[i]);
        info->bytes += b->v[i].bytes;
    }
    if (result != DT_OK)
        return result;
    info->sum = dt_hasher_sum(f->hasher);
    info->bytes += DT_CHECKSUM_BYTES;
    return dt_file_write(f, info->sum.bytes, DT_CHECKSUM_BYTES);
}

static dt_result_t fail_no_memory(void)
{
    return dt_fail(DT_ERR_NOMEM, "out of memory for the head of a checkpoint");
}

dt_result_t dt_shard_write(const struct dt_dir *d, const struct dt_shard_head *head,
                           struct dt_shard_info *info)
{
    struct dt_name name = dt_name_shard(head->rank);
    struct dt_put bytes = { 0 };
    struct dt_file f = { .fd = -1 };
    dt_result_t result;

    dt_shard_head_encode(&bytes, head);
    if (bytes.failed)
        result = fail_no_memory();
    else
        result = dt_file_create(&f, d, name.s);
    if (result == DT_OK)
        result = write_contents(&f, &bytes, &head->buffers, info);
    if (result == DT_OK)
        result = dt_file_finish(&f);
    dt_file_close(&f);
    dt_put_free(&bytes);
    return result;
}

static dt_result_t fail_damaged(const struct dt_file *f, const char *what)
{
    return dt_fail(DT_ERR_IO, "%s/%s: is damaged: %s", f->dir->path, f->name, what);
}

/* Reads the head. *data: the bytes of data that must follow. */
static dt_result_t read_head(struct dt_file *f, uint64_t bytes, struct dt_shard_head *head,
                             uint64_t *data)
{
    uint8_t prefix[DT_SHARD_PREFIX], *rest = NULL;
    dt_result_t result;
    size_t len;

    if (bytes < DT_SHARD_PREFIX + DT_CHECKSUM_BYTES)
        return fail_damaged(f, "it is too short");
    result = dt_file_read(f, prefix, sizeof prefix);
    if (result != DT_OK)
        return result;
    len = dt_shard_prefix_decode(prefix);
    if (len == 0 || len > bytes - DT_SHARD_PREFIX - DT_CHECKSUM_BYTES)
        return fail_damaged(f, "its header is not that of a checkpoint of this version");
    rest = malloc(len);
    if (!rest)
        return fail_no_memory();
    result = dt_file_read(f, rest, len);
    if (result == DT_OK && dt_shard_head_decode(rest, len, head) != 0)
        result = errno == ENOMEM ? fail_no_memory() : fail_damaged(f, "its head is wrong");
    free(rest);
    *data = bytes - DT_SHARD_PREFIX - len - DT_CHECKSUM_BYTES;
    return result;
}

static bool sizes_add_up(const struct dt_buffers *b, uint64_t data)
{
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->v[i].bytes > data)
            return false;
        data -= b->v[i].bytes;
    }
    return data == 0;
}

/* Reads and checks the checksum after all data. */
static dt_result_t check_checksum(struct dt_file *f, const struct dt_shard_info *info)
{
    struct dt_checksum sum = dt_hasher_sum(f->hasher);
    uint8_t written[DT_CHECKSUM_BYTES];
    dt_result_t result = dt_file_read(f, written, sizeof written);

    if (result != DT_OK)
        return result;
    if (memcmp(sum.bytes, written, sizeof written) != 0 ||
        memcmp(sum.bytes, info->sum.bytes, sizeof written) != 0)
        return fail_damaged(f, "its checksum differs");
    return DT_OK;
}

/* Only an undamaged file can show that it does not fit the program. */
static dt_result_t fail_misfit(struct dt_file *f, uint64_t data, const struct dt_shard_info *info,
                               const char *why)
{
    dt_result_t result = dt_file_read(f, NULL, data);

    if (result == DT_OK)
        result = check_checksum(f, info);
    if (result != DT_OK)
        return result;
    return dt_fail(DT_ERR_MISMATCH, "%s/%s: %s", f->dir->path, f->name, why);
}

static dt_result_t check_head(struct dt_shard *s, uint64_t bytes)
{
    struct dt_shard_head found = { 0 };
    char why[256] = "";
    uint64_t data = 0;
    dt_result_t result;

    if (bytes != s->info->bytes)
        return fail_damaged(&s->file, "its size differs");
    result = read_head(&s->file, bytes, &found, &data);
    if (result != DT_OK)
        return result;
    if (!sizes_add_up(&found.buffers, data))
        result = fail_damaged(&s->file, "its sizes do not add up");
    else if (!dt_shard_fits(&found, s->wanted, why, sizeof why))
        result = fail_misfit(&s->file, data, s->info, why);
    dt_shard_head_free(&found);
    return result;
}

dt_result_t dt_shard_open(struct dt_shard *s, const struct dt_dir *d,
                          const struct dt_shard_head *wanted, const struct dt_shard_info *info)
{
    uint64_t bytes;
    dt_result_t result;

    *s = (struct dt_shard){ .name = dt_name_shard(wanted->rank), .wanted = wanted, .info = info };
    result = dt_file_open(&s->file, d, s->name.s, &bytes);
    return result == DT_OK ? check_head(s, bytes) : result;
}

static dt_result_t read_chunk(void *file, void *chunk, size_t n)
{
    return dt_file_read(file, chunk, n);
}

static dt_result_t read_buffer(struct dt_file *f, const struct dt_buffer *b)
{
    if (b->device)
        return b->device->write(b->data, b->bytes, read_chunk, f);
    return dt_file_read(f, b->data, b->bytes);
}

dt_result_t dt_shard_load(struct dt_shard *s)
{
    const struct dt_buffers *fill = &s->wanted->buffers;
    dt_result_t result = DT_OK;

    for (uint32_t i = 0; i < fill->n && result == DT_OK; i++)
        if (fill->v[i].bytes)
            result = read_buffer(&s->file, &fill->v[i]);
    return result == DT_OK ? check_checksum(&s->file, s->info) : result;
}

void dt_shard_close(struct dt_shard *s)
{
    dt_file_close(&s->file);
}
