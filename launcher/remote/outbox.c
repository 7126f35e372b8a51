#include "launcher/remote/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"

/* Moving what waits to the front costs its length; it is done only when that is less than half of
 * the buffer, so that each byte is moved a bounded number of times. */
static void make_room(struct dt_outbox *o, size_t n)
{
    size_t cap = o->cap ? o->cap : 4096;

    if (o->head + o->len + n <= o->cap)
        return;
    if (o->len + n <= o->cap / 2) {
        memmove(o->data, o->data + o->head, o->len);
        o->head = 0;
        return;
    }
    while (cap < o->head + o->len + n)
        cap *= 2;
    o->data = dt_xrealloc(o->data, cap, 1);
    o->cap = cap;
}

void dt_outbox_add(struct dt_outbox *o, const void *data, size_t n)
{
    if (n == 0)
        return;
    make_room(o, n);
    memcpy(o->data + o->head + o->len, data, n);
    o->len += n;
}

const char *dt_outbox_head(const struct dt_outbox *o)
{
    return o->len ? o->data + o->head : "";
}

void dt_outbox_consume(struct dt_outbox *o, size_t n)
{
    o->head += n;
    o->len -= n;
    if (o->len == 0)
        o->head = 0;
}

void dt_outbox_free(struct dt_outbox *o)
{
    free(o->data);
    *o = (struct dt_outbox){ 0 };
}
