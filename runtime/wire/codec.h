/* Typed encoding and decoding of bytes that cross a process boundary. Integers are little-endian.
 *
 * An encoder (dt_put) grows its buffer up to a hard maximum. A decoder (dt_get) never reads past
 * its end. Both have a sticky "failed" flag: callers encode or decode a whole record and check
 * once. A record with bytes left over is as invalid as one that is too short; dt_get_end checks
 * that. Nothing here aborts, because the code also runs inside users' programs. */
#ifndef DT_WIRE_CODEC_H
#define DT_WIRE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A list of strings. v has a NULL after its last entry, so it can serve as argv or environ. Only
 * dt_strs_add may create a list that dt_strs_add extends, because it computes the allocated length
 * from n. */
struct dt_strs {
    char **v; /* NULL until a string is added */
    uint32_t n;
};

/* copies the string; returns 0, or -1 if out of memory */
int dt_strs_add(struct dt_strs *s, const char *text);
/* Returns whether the n bytes at text are one of the strings. */
bool dt_strs_has(const struct dt_strs *s, const char *text, size_t n);
void dt_strs_free(struct dt_strs *s);

struct dt_u32s {
    uint32_t *v;
    uint32_t n;
};

/* The index of value in an ascending list, or -1. */
int64_t dt_u32s_find(const struct dt_u32s *list, uint32_t value);

struct dt_put {
    uint8_t *data;
    size_t len;
    size_t cap;
    size_t max; /* 0: no limit */
    bool failed;
};

void dt_put_u8(struct dt_put *p, uint8_t v);
void dt_put_u16(struct dt_put *p, uint16_t v);
void dt_put_u32(struct dt_put *p, uint32_t v);
void dt_put_u64(struct dt_put *p, uint64_t v);
void dt_put_bytes(struct dt_put *p, const void *data, size_t n); /* without a length */
void dt_put_str(struct dt_put *p, const char *s);                /* u32 length + bytes */
void dt_put_free(struct dt_put *p);

struct dt_get {
    const uint8_t *p;
    const uint8_t *end;
    bool failed;
};

struct dt_get dt_get_init(const void *data, size_t n);
uint8_t dt_get_u8(struct dt_get *g);
uint16_t dt_get_u16(struct dt_get *g);
uint32_t dt_get_u32(struct dt_get *g);
uint64_t dt_get_u64(struct dt_get *g);
/* points into the input; NULL if it is too short */
const uint8_t *dt_get_bytes(struct dt_get *g, size_t n);
/* A copy of a string of at most max bytes, or NULL. A NUL inside is refused. */
char *dt_get_str(struct dt_get *g, size_t max);
int dt_get_end(const struct dt_get *g); /* 0 if everything was read and nothing failed, else -1 */

#endif
