#include "runtime/wire/codec.h"

#include <stdlib.h>
#include <string.h>

/* The allocated length is the used one, rounded up to a power of two, so it need not be stored. */
static size_t allocated(size_t used)
{
    size_t n = 4;

    while (n < used)
        n *= 2;
    return n;
}

int dt_strs_add(struct dt_strs *s, const char *text)
{
    size_t used = (size_t)s->n + 1; /* including the NULL */
    char *copy = strdup(text), **v;

    if (copy && (!s->v || allocated(used + 1) != allocated(used))) {
        v = realloc(s->v, allocated(used + 1) * sizeof *v);
        if (!v) {
            free(copy);
            return -1;
        }
        s->v = v;
    }
    if (!copy)
        return -1;
    s->v[s->n++] = copy;
    s->v[s->n] = NULL;
    return 0;
}

bool dt_strs_has(const struct dt_strs *s, const char *text, size_t n)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (strlen(s->v[i]) == n && memcmp(s->v[i], text, n) == 0)
            return true;
    return false;
}

void dt_strs_free(struct dt_strs *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        free(s->v[i]);
    free(s->v);
    *s = (struct dt_strs){ 0 };
}

int64_t dt_u32s_find(const struct dt_u32s *list, uint32_t value)
{
    uint32_t low = 0, high = list->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (list->v[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < list->n && list->v[low] == value ? (int64_t)low : -1;
}

static uint8_t *room(struct dt_put *p, size_t n)
{
    size_t cap = p->cap ? p->cap : 256;
    uint8_t *data;

    if (p->failed || n > SIZE_MAX / 4 || (p->max && p->len + n > p->max)) {
        p->failed = true;
        return NULL;
    }
    if (p->len + n > p->cap) {
        while (cap < p->len + n)
            cap *= 2;
        data = realloc(p->data, cap);
        if (!data) {
            p->failed = true;
            return NULL;
        }
        p->data = data;
        p->cap = cap;
    }
    data = p->data + p->len;
    p->len += n;
    return data;
}

static void put_int(struct dt_put *p, uint64_t v, size_t n)
{
    uint8_t *d = room(p, n);

    for (size_t i = 0; d && i < n; i++)
        d[i] = (uint8_t)(v >> (8 * i));
}

void dt_put_u8(struct dt_put *p, uint8_t v)
{
    put_int(p, v, 1);
}

void dt_put_u16(struct dt_put *p, uint16_t v)
{
    put_int(p, v, 2);
}

void dt_put_u32(struct dt_put *p, uint32_t v)
{
    put_int(p, v, 4);
}

void dt_put_u64(struct dt_put *p, uint64_t v)
{
    put_int(p, v, 8);
}

void dt_put_bytes(struct dt_put *p, const void *data, size_t n)
{
    uint8_t *d = n ? room(p, n) : NULL;

    if (d)
        memcpy(d, data, n);
}

void dt_put_str(struct dt_put *p, const char *s)
{
    size_t n = s ? strlen(s) : 0;

    if (n > UINT32_MAX) {
        p->failed = true;
        return;
    }
    dt_put_u32(p, (uint32_t)n);
    dt_put_bytes(p, s, n);
}

void dt_put_free(struct dt_put *p)
{
    free(p->data);
    *p = (struct dt_put){ .max = p->max };
}

struct dt_get dt_get_init(const void *data, size_t n)
{
    const uint8_t *p = data;

    return (struct dt_get){ .p = p, .end = n ? p + n : p };
}

const uint8_t *dt_get_bytes(struct dt_get *g, size_t n)
{
    const uint8_t *p = g->p;

    if (g->failed || (size_t)(g->end - g->p) < n) {
        g->failed = true;
        return NULL;
    }
    if (n)
        g->p += n;
    return p;
}

static uint64_t get_int(struct dt_get *g, size_t n)
{
    const uint8_t *d = dt_get_bytes(g, n);
    uint64_t v = 0;

    for (size_t i = 0; d && i < n; i++)
        v |= (uint64_t)d[i] << (8 * i);
    return v;
}

uint8_t dt_get_u8(struct dt_get *g)
{
    return (uint8_t)get_int(g, 1);
}

uint16_t dt_get_u16(struct dt_get *g)
{
    return (uint16_t)get_int(g, 2);
}

uint32_t dt_get_u32(struct dt_get *g)
{
    return (uint32_t)get_int(g, 4);
}

uint64_t dt_get_u64(struct dt_get *g)
{
    return get_int(g, 8);
}

char *dt_get_str(struct dt_get *g, size_t max)
{
    uint32_t n = dt_get_u32(g);
    const uint8_t *d = NULL;
    char *s = NULL;

    if (n <= max)
        d = dt_get_bytes(g, n);
    if (d && !(n && memchr(d, 0, n)))
        s = malloc((size_t)n + 1);
    if (!s) {
        g->failed = true;
        return NULL;
    }
    if (n)
        memcpy(s, d, n);
    s[n] = '\0';
    return s;
}

int dt_get_end(const struct dt_get *g)
{
    return g->failed || g->p != g->end ? -1 : 0;
}
