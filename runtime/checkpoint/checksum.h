/* XXH3-128 over a stream of bytes. */
#ifndef DT_CHECKPOINT_CHECKSUM_H
#define DT_CHECKPOINT_CHECKSUM_H

#include <stddef.h>

#include "runtime/checkpoint/format.h"

struct dt_hasher;

struct dt_hasher *dt_hasher_create(void); /* NULL out of memory */
void dt_hasher_add(struct dt_hasher *h, const void *data, size_t n);
struct dt_checksum dt_hasher_sum(const struct dt_hasher *h); /* of what was added so far */
void dt_hasher_destroy(struct dt_hasher *h);                 /* accepts NULL */

struct dt_checksum dt_checksum(const void *data, size_t n);

#endif
