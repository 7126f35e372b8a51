#include "launcher/base/bytequeue.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"

/* Moving the waiting bytes to the front costs their length. This happens only if they take less
 * than half of the buffer, so each byte is moved a bounded number of times. */
static void make_room(struct dt_bytequeue *q, size_t n)
{
    size_t cap = q->cap ? q->cap : 4096;

    if (q->head + q->len + n <= q->cap)
        return;
    if (q->len + n <= q->cap / 2) {
        memmove(q->data, q->data + q->head, q->len);
        q->head = 0;
        return;
    }
    while (cap < q->head + q->len + n)
        cap *= 2;
    q->data = dt_xrealloc(q->data, cap, 1);
    q->cap = cap;
}

void dt_bytequeue_add(struct dt_bytequeue *q, const void *data, size_t n)
{
    if (n == 0)
        return;
    make_room(q, n);
    memcpy(q->data + q->head + q->len, data, n);
    q->len += n;
}

const char *dt_bytequeue_head(const struct dt_bytequeue *q)
{
    return q->len ? q->data + q->head : "";
}

void dt_bytequeue_consume(struct dt_bytequeue *q, size_t n)
{
    q->head += n;
    q->len -= n;
    if (q->len == 0)
        q->head = 0;
}

void dt_bytequeue_free(struct dt_bytequeue *q)
{
    free(q->data);
    *q = (struct dt_bytequeue){ 0 };
}
