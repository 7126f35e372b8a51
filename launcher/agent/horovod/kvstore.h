/* What the ranks of a Horovod job tell each other, by "/SCOPE/KEY": bodies of any bytes. Pure.
 *
 * A rank puts its name and its addresses into every scope that it belongs to, and deletes the
 * addresses when all ranks have read them. The store holds only as much as the ranks of one
 * generation can need for that, because any process that can reach it can write to it. */
#ifndef DT_AGENT_HOROVOD_KVSTORE_H
#define DT_AGENT_HOROVOD_KVSTORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_kvvalue {
    unsigned refs; /* one for the store, and one for each answer in progress */
    size_t n;
    uint8_t *bytes; /* NULL if there are none */
};

struct dt_kvlimits {
    size_t body;  /* bytes of one body */
    size_t keys;  /* how many */
    size_t bytes; /* of all keys and bodies together */
};

struct dt_kvlimits dt_kvlimits_of(uint32_t np);

struct dt_kvstore;

struct dt_kvstore *dt_kvstore_create(const struct dt_kvlimits *limits);
void dt_kvstore_destroy(struct dt_kvstore *s); /* accepts NULL */

/* Takes over the body, and replaces what the key had before. Returns false if there is no room. */
bool dt_kvstore_put(struct dt_kvstore *s, const char *key, uint8_t *body, size_t n);
/* Returns NULL if there is no such key. The caller releases the value. */
struct dt_kvvalue *dt_kvstore_get(const struct dt_kvstore *s, const char *key);
void dt_kvvalue_release(struct dt_kvvalue *v);                 /* accepts NULL */
void dt_kvstore_delete(struct dt_kvstore *s, const char *key); /* the key need not exist */

#endif
