/* XXH3-128 of a stream of bytes. */
#ifndef DT_BASE_CHECKSUM_H
#define DT_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

enum { DT_CHECKSUM_BYTES = 16 };

struct dt_checksum { /* the canonical (big-endian) form */
    uint8_t bytes[DT_CHECKSUM_BYTES];
};

struct dt_hasher;

struct dt_hasher *dt_hasher_create(void); /* NULL: out of memory */
void dt_hasher_add(struct dt_hasher *h, const void *data, size_t n);
struct dt_checksum dt_hasher_sum(const struct dt_hasher *h); /* of everything added so far */
void dt_hasher_destroy(struct dt_hasher *h);                 /* accepts NULL */

struct dt_checksum dt_checksum(const void *data, size_t n);

#endif
