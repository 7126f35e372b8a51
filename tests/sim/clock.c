#include "tests/sim/clock.h"

#include <stdlib.h>

#include "launcher/base/mem.h"

static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns;
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->number < b->number;
}

static void insert(struct sim_queue *q, struct sim_event e)
{
    size_t i = q->n;

    if (q->n == q->cap) {
        q->cap = q->cap ? 2 * q->cap : 256;
        q->heap = dt_xrealloc(q->heap, q->cap, sizeof *q->heap);
    }
    q->n++;
    for (; i > 0 && is_before(&e, &q->heap[(i - 1) / 2]); i = (i - 1) / 2)
        q->heap[i] = q->heap[(i - 1) / 2];
    q->heap[i] = e;
}

void sim_queue_put(struct sim_queue *q, struct sim_event e)
{
    e.due_ns = e.at_ns;
    e.number = q->put++;
    insert(q, e);
}

void sim_queue_put_off(struct sim_queue *q, const struct sim_event *e, uint64_t until_ns)
{
    struct sim_event later = *e;

    later.at_ns = until_ns;
    insert(q, later);
}

bool sim_queue_take(struct sim_queue *q, struct sim_event *e)
{
    struct sim_event last;
    size_t i = 0;

    if (q->n == 0)
        return false;
    *e = q->heap[0];
    last = q->heap[--q->n];
    for (size_t child = 1; child < q->n; child = 2 * i + 1) {
        if (child + 1 < q->n && is_before(&q->heap[child + 1], &q->heap[child]))
            child++;
        if (!is_before(&q->heap[child], &last))
            break;
        q->heap[i] = q->heap[child];
        i = child;
    }
    q->heap[i] = last;
    return true;
}

void sim_event_free(struct sim_event *e)
{
    if (!e->msg)
        return;
    dt_msg_free(e->type, e->msg);
    free(e->msg);
    e->msg = NULL;
}

void sim_queue_free(struct sim_queue *q)
{
    for (size_t i = 0; i < q->n; i++)
        sim_event_free(&q->heap[i]);
    free(q->heap);
    *q = (struct sim_queue){ 0 };
}

/* splitmix64 */
static uint64_t next(struct sim_chance *c)
{
    uint64_t z = c->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

struct sim_chance sim_chance_of(uint64_t seed, uint64_t stream)
{
    struct sim_chance c = { seed * UINT64_C(0xd1342543de82ef95) + stream };

    next(&c);
    return c;
}

uint64_t sim_below(struct sim_chance *c, uint64_t n)
{
    return next(c) % n;
}

uint64_t sim_between(struct sim_chance *c, uint64_t from, uint64_t to)
{
    return from + sim_below(c, to - from + 1);
}

bool sim_percent(struct sim_chance *c, unsigned percent)
{
    return sim_below(c, 100) < percent;
}
