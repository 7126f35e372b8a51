#include "launcher/agent/horovod/kvstore.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"

enum {
    ADDRESS_BYTES = 136,     /* gloo publishes this much for each peer */
    OTHER_BYTES = 16 * 1024, /* for any other body: the network addresses of an elastic rank */
    SCOPES = 3,           /* a rank uses: all ranks, those of its host, those with its local rank */
    KEYS_PER_RANK = 1024, /* two in each scope, for each of 170 process sets */
};

struct record {
    const char *key;
    struct dt_kvvalue *value;
    char text[]; /* of the key */
};

struct dt_kvstore {
    struct dt_kvlimits limits;
    void *tree; /* of struct record, for tsearch(3) */
    size_t keys;
    size_t bytes;
};

struct dt_kvlimits dt_kvlimits_of(uint32_t np)
{
    size_t body = (size_t)np * ADDRESS_BYTES + OTHER_BYTES;

    return (struct dt_kvlimits){
        .body = body,
        .keys = (size_t)np * KEYS_PER_RANK,
        .bytes = (size_t)np * (body * (SCOPES + 1)),
    };
}

struct dt_kvstore *dt_kvstore_create(const struct dt_kvlimits *limits)
{
    struct dt_kvstore *s = dt_xcalloc(1, sizeof *s);

    s->limits = *limits;
    return s;
}

void dt_kvvalue_release(struct dt_kvvalue *v)
{
    if (!v || --v->refs)
        return;
    free(v->bytes);
    free(v);
}

static void free_record(void *e)
{
    dt_kvvalue_release(((struct record *)e)->value);
    free(e);
}

void dt_kvstore_destroy(struct dt_kvstore *s)
{
    if (!s)
        return;
    tdestroy(s->tree, free_record);
    free(s);
}

static int compare_records(const void *a, const void *b)
{
    const struct record *x = a, *y = b;

    return strcmp(x->key, y->key);
}

static struct record *find_record(const struct dt_kvstore *s, const char *key)
{
    const struct record wanted = { .key = key };
    struct record *const *found = tfind(&wanted, &s->tree, compare_records);

    return found ? *found : NULL;
}

static struct record *add_record(struct dt_kvstore *s, const char *key)
{
    size_t n = strlen(key);
    struct record *e = dt_xcalloc(1, sizeof *e + n + 1);

    memcpy(e->text, key, n);
    e->key = e->text;
    if (!tsearch(e, &s->tree, compare_records)) { /* out of memory */
        free(e);
        return NULL;
    }
    s->keys++;
    s->bytes += n;
    return e;
}

bool dt_kvstore_put(struct dt_kvstore *s, const char *key, uint8_t *body, size_t n)
{
    struct record *e = find_record(s, key);
    size_t freed = e ? e->value->n : 0, needed = n + (e ? 0 : strlen(key));
    bool fits = n <= s->limits.body && (e || s->keys < s->limits.keys) &&
                needed <= s->limits.bytes - (s->bytes - freed);

    if (fits && !e)
        e = add_record(s, key);
    if (!fits || !e) {
        free(body);
        return false;
    }
    dt_kvvalue_release(e->value);
    e->value = dt_xcalloc(1, sizeof *e->value);
    *e->value = (struct dt_kvvalue){ .refs = 1, .n = n, .bytes = body };
    s->bytes += n - freed;
    return true;
}

struct dt_kvvalue *dt_kvstore_get(const struct dt_kvstore *s, const char *key)
{
    struct record *e = find_record(s, key);

    if (!e)
        return NULL;
    e->value->refs++;
    return e->value;
}

void dt_kvstore_delete(struct dt_kvstore *s, const char *key)
{
    struct record *e = find_record(s, key);

    if (!e)
        return;
    tdelete(e, &s->tree, compare_records);
    s->keys--;
    s->bytes -= strlen(key) + e->value->n;
    free_record(e);
}
