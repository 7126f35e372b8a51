/* The files of a checkpoint: any bytes as the head of a shard and as a manifest. */
#include <string.h>

#include "runtime/base/checksum.h"
#include "runtime/checkpoint/format.h"
#include "tests/fuzz/fuzz.h"

/* Accepted input has only one form: writing it again gives the same bytes. */
static void require_same(struct dt_put *again, const void *data, size_t n)
{
    REQUIRE(!again->failed && again->len == n && memcmp(again->data, data, n) == 0);
    dt_put_free(again);
}

static void try_head(const uint8_t *data, size_t n)
{
    struct dt_put again = { 0 };
    struct dt_shard_head head;
    size_t rest = n < DT_SHARD_PREFIX ? 0 : dt_shard_prefix_decode(data);
    char why[64];

    if (rest == 0 || rest > n - DT_SHARD_PREFIX ||
        dt_shard_head_decode(data + DT_SHARD_PREFIX, rest, &head) != 0)
        return;
    REQUIRE(dt_shard_fits(&head, &head, why, sizeof why));
    dt_shard_head_encode(&again, &head);
    require_same(&again, data, DT_SHARD_PREFIX + rest);
    dt_shard_head_free(&head);
}

static void try_manifest(const uint8_t *data, size_t n)
{
    struct dt_put again = { 0 };
    struct dt_manifest m;

    if (dt_manifest_decode(data, n, &m) != 0)
        return;
    REQUIRE(m.np > 0 && m.shards);
    dt_manifest_encode(&again, &m);
    require_same(&again, data, n);
    dt_manifest_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct dt_checksum sum = dt_checksum(data, n);
    struct dt_put whole = { 0 };

    try_head(data, n);
    try_manifest(data, n);
    dt_put_bytes(&whole, data, n); /* with a checksum, without which it would be refused */
    dt_put_bytes(&whole, sum.bytes, sizeof sum.bytes);
    try_manifest(whole.data, whole.len);
    dt_put_free(&whole);
    return 0;
}
