/* What the ranks of a Horovod job tell each other, by "/SCOPE/KEY": bodies of any bytes. Pure.
 *
 * A rank puts its name and its addresses into every scope that it belongs to, and takes the
 * addresses out again when all have them. The store holds what the ranks of one generation can need
 * for that, and no more: whoever can reach it can write into it. */
#ifndef DT_AGENT_HOROVOD_KVSTORE_H
#define DT_AGENT_HOROVOD_KVSTORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_kvvalue {
    unsigned refs; /* the store's, and those of answers under way */
    size_t n;
    uint8_t *bytes; /* NULL where there are none */
};

struct dt_kvlimits {
    size_t body;  /* bytes of one */
    size_t keys;  /* how many */
    size_t bytes; /* of all keys and bodies together */
};

struct dt_kvlimits dt_kvlimits_of(uint32_t np);

struct dt_kvstore;

struct dt_kvstore *dt_kvstore_create(const struct dt_kvlimits *limits);
void dt_kvstore_destroy(struct dt_kvstore *s); /* accepts NULL */

/* Takes the body, whether or not there is room for it; what the key had before goes. */
bool dt_kvstore_put(struct dt_kvstore *s, const char *key, uint8_t *body, size_t n);
/* The caller releases it; NULL: there is no such key. */
struct dt_kvvalue *dt_kvstore_get(const struct dt_kvstore *s, const char *key);
void dt_kvvalue_release(struct dt_kvvalue *v);                 /* accepts NULL */
void dt_kvstore_delete(struct dt_kvstore *s, const char *key); /* a key that is not there, too */

#endif
