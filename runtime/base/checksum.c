#include "runtime/base/checksum.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static struct dt_checksum canonical(XXH128_hash_t hash)
{
    XXH128_canonical_t c;
    struct dt_checksum sum;

    XXH128_canonicalFromHash(&c, hash);
    memcpy(sum.bytes, c.digest, sizeof sum.bytes);
    return sum;
}

struct dt_hasher *dt_hasher_create(void)
{
    XXH3_state_t *state = XXH3_createState();

    if (state)
        XXH3_128bits_reset(state);
    return (struct dt_hasher *)state;
}

void dt_hasher_add(struct dt_hasher *h, const void *data, size_t n)
{
    XXH3_128bits_update((XXH3_state_t *)h, data, n);
}

struct dt_checksum dt_hasher_sum(const struct dt_hasher *h)
{
    return canonical(XXH3_128bits_digest((const XXH3_state_t *)h));
}

void dt_hasher_destroy(struct dt_hasher *h)
{
    XXH3_freeState((XXH3_state_t *)h);
}

struct dt_checksum dt_checksum(const void *data, size_t n)
{
    return canonical(XXH3_128bits(data, n));
}
