#include "runtime/diag/recorder.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t mutex; /* protects the list, and which rings are closed */
    struct dt_ring *rings;
    uint32_t calls;
    uint64_t closed; /* number of rings closed so far */
    uint64_t reused; /* number of them that have been opened again */
} dti_recorder = { .mutex = PTHREAD_MUTEX_INITIALIZER };

void dt_recorder_start(uint32_t calls)
{
    dti_recorder.calls = calls;
}

/* ---- rings ---- */

/* The ring that was closed first is reused first: the others hold more recent calls. */
static struct dt_ring *find_reusable_ring(void)
{
    struct dt_ring *best = NULL;

    if (dti_recorder.reused == dti_recorder.closed)
        return NULL;
    for (struct dt_ring *r = dti_recorder.rings; r; r = r->next) {
        if (r->closed && (!best || r->closed < best->closed))
            best = r;
    }
    return best;
}

static struct dt_ring *make_ring(void)
{
    uint32_t n = dti_recorder.calls;
    struct dt_ring *r = calloc(1, sizeof *r + n * sizeof *r->entries);

    if (!r)
        return NULL;
    r->n = n;
    r->next = dti_recorder.rings;
    dti_recorder.rings = r;
    return r;
}

struct dt_ring *dt_ring_open(uint64_t comm)
{
    struct dt_ring *r;

    if (!dti_recorder.calls)
        return NULL;
    pthread_mutex_lock(&dti_recorder.mutex);
    r = find_reusable_ring();
    if (r)
        dti_recorder.reused++;
    else
        r = make_ring();
    if (r) {
        r->closed = 0;
        r->comm = comm;
    }
    pthread_mutex_unlock(&dti_recorder.mutex);
    return r;
}

void dt_ring_close(struct dt_ring *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&dti_recorder.mutex);
    r->closed = ++dti_recorder.closed;
    pthread_mutex_unlock(&dti_recorder.mutex);
}

/* ---- writing ---- */

void dt_ring_show(struct dt_ring *r)
{
    struct dt_ring_entry *e;
    uint64_t n;

    if (!r || !r->pending)
        return;
    e = &r->entries[r->at];
    n = dt_ring_write(r, e);
    DT_RING_STORE(e->ended, 0);
    DT_RING_STORE(r->shown, n);
}

double dt_ring_seconds(const struct dt_ring *r)
{
    return r && r->is_long ? (double)(dt_clock_ns() - r->begun) / 1e9 : 0;
}

/* ---- reading ---- */

#define LOAD(word) atomic_load_explicit(&(word), memory_order_acquire)

static struct dt_record read_entry(struct dt_ring_entry *e)
{
    struct dt_record out = { .comm = LOAD(e->comm), .begun = LOAD(e->begun) };
    uint64_t words[DT_RING_CALL] = { 0 };

    for (int i = 0; i < DT_RING_CALL; i++)
        words[i] = LOAD(e->call[i]);
    memcpy(&out.call, words, sizeof words);
    out.ended = LOAD(e->ended);
    if (out.ended) {
        out.result = (dt_result_t)LOAD(e->result);
        out.within = LOAD(e->within);
        out.between = LOAD(e->between);
    }
    return out;
}

/* A brief call's time comes from a coarse clock, and may be before the end of the previous call. */
static void begin_after(struct dt_record *r, uint64_t before)
{
    if (r->ended == r->begun)
        r->ended = before;
    r->begun = before;
}

/* Entries are numbered from 1. An entry that is being overwritten meanwhile is left out. out has
 * room for a whole ring. */
static size_t read_ring(struct dt_ring *r, struct dt_record *out)
{
    uint64_t last = LOAD(r->shown);
    uint64_t first = last > r->n ? last - r->n + 1 : 1;
    size_t n = 0;

    for (uint64_t i = first; i <= last; i++) {
        out[n] = read_entry(&r->entries[(i - 1) % r->n]);
        if (n && out[n].begun < out[n - 1].ended)
            begin_after(&out[n], out[n - 1].ended);
        n += atomic_load_explicit(&r->reserved, memory_order_relaxed) < i + r->n;
    }
    return n;
}

static int by_begin(const void *a, const void *b)
{
    const struct dt_record *x = a, *y = b;

    return (x->begun > y->begun) - (x->begun < y->begun);
}

size_t dt_recorder_read(struct dt_record **records)
{
    size_t room = 0, n = 0;

    pthread_mutex_lock(&dti_recorder.mutex);
    for (struct dt_ring *r = dti_recorder.rings; r; r = r->next)
        room += r->n;
    *records = calloc(room ? room : 1, sizeof **records);
    for (struct dt_ring *r = dti_recorder.rings; r && *records; r = r->next)
        n += read_ring(r, *records + n);
    pthread_mutex_unlock(&dti_recorder.mutex);
    if (n)
        qsort(*records, n, sizeof **records, by_begin);
    return n;
}
