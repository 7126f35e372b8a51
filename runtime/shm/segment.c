#include "runtime/shm/segment.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/wire/page.h"
#include "runtime/wire/sealed.h"

struct segment {
    struct dt_segment_kind kind;
    uint8_t *base;
    size_t total;
    uint8_t *block; /* this rank's, until it is freed */
    uint8_t *end;
    struct segment *next; /* in the list of segments whose block this rank has freed */
};

static struct {
    pthread_mutex_t mutex;
    _Atomic size_t blocks; /* blocks that can be named to others */
    void *by_address;      /* trees of tsearch(3) */
    void *by_number;
    struct segment *freed;
    unsigned holds;
} dti_segments = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* ---- the file: a word for each rank, then their blocks ---- */

static size_t head_bytes(uint32_t n)
{
    return dt_page_round_up(n * sizeof(_Atomic uint32_t));
}

static _Atomic uint32_t *freed_word(const struct segment *s, uint32_t rank)
{
    return (_Atomic uint32_t *)s->base + rank;
}

size_t dt_segment_total(uint32_t n, size_t bytes)
{
    size_t total;

    if (bytes > PTRDIFF_MAX - dt_page_bytes() ||
        __builtin_mul_overflow(n, dt_page_round_up(bytes), &total) ||
        __builtin_add_overflow(total, head_bytes(n), &total) || total > PTRDIFF_MAX)
        return 0;
    return total;
}

/* ---- finding ---- */

/* Blocks do not overlap. So if two of these overlap, they are the same, or one is the range that is
 * looked for. */
static int compare_addresses(const void *a, const void *b)
{
    const struct segment *x = a, *y = b;

    return x->end <= y->block ? -1 : x->block >= y->end;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = ((const struct segment *)a)->kind.number;
    uint64_t y = ((const struct segment *)b)->kind.number;

    return x < y ? -1 : x > y;
}

static struct segment *find_in_tree(void *const *tree, const struct segment *key,
                                    int (*compare)(const void *, const void *))
{
    struct segment *const *found = tfind(key, tree, compare);

    return found ? *found : NULL;
}

static struct segment *segment_at_address(const void *p, size_t bytes)
{
    uint8_t *begin = (uint8_t *)(uintptr_t)p;
    const struct segment key = { .block = begin, .end = begin + (bytes ? bytes : 1) };
    struct segment *s = find_in_tree(&dti_segments.by_address, &key, compare_addresses);

    return s && begin >= s->block && key.end <= s->end ? s : NULL;
}

struct dt_place dt_segment_place(uint64_t comm, const void *p, size_t bytes)
{
    struct dt_place place = { 0 };
    struct segment *s;

    if (atomic_load_explicit(&dti_segments.blocks, memory_order_relaxed) == 0)
        return place;
    pthread_mutex_lock(&dti_segments.mutex);
    s = segment_at_address(p, bytes);
    if (s && s->kind.n > 1 && (s->kind.comm == 0 || s->kind.comm == comm))
        place = (struct dt_place){ s->kind.number, (size_t)((const uint8_t *)p - s->base) };
    pthread_mutex_unlock(&dti_segments.mutex);
    return place;
}

uint8_t *dt_segment_find(struct dt_place place)
{
    const struct segment key = { .kind.number = place.segment };
    const struct segment *s;

    pthread_mutex_lock(&dti_segments.mutex);
    s = find_in_tree(&dti_segments.by_number, &key, compare_numbers);
    pthread_mutex_unlock(&dti_segments.mutex);
    return s ? s->base + place.at : NULL;
}

void dt_segment_hold(void)
{
    pthread_mutex_lock(&dti_segments.mutex);
    dti_segments.holds++;
    pthread_mutex_unlock(&dti_segments.mutex);
}

void dt_segment_release(void)
{
    pthread_mutex_lock(&dti_segments.mutex);
    dti_segments.holds--;
    pthread_mutex_unlock(&dti_segments.mutex);
}

/* ---- making ---- */

/* A kernel that does not know this advice (EINVAL) allocates the pages on first use. */
static bool populate_pages(void *p, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    return madvise(p, bytes, MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
#else
    (void)p;
    (void)bytes;
    return true;
#endif
}

/* Maps the file and fills in s, but does not enter it into the trees. */
static bool map_segment(struct segment *s, int fd)
{
    const struct dt_segment_kind *k = &s->kind;
    int flags = MAP_SHARED | (k->n == 1 ? MAP_ANONYMOUS : 0);
    size_t bytes = dt_page_round_up(k->bytes);

    s->total = dt_segment_total(k->n, k->bytes);
    errno = ENOMEM;
    if (s->total == 0 || (k->n > 1 && !dt_sealed_check(fd, s->total)))
        return false;
    s->base = mmap(NULL, s->total, PROT_READ | PROT_WRITE, flags, k->n == 1 ? -1 : fd, 0);
    if (s->base == MAP_FAILED)
        return false;
    s->block = s->base + head_bytes(k->n) + k->me * bytes;
    s->end = s->block + bytes;
    if (populate_pages(s->block, bytes))
        return true;
    munmap(s->base, s->total);
    return false;
}

static bool insert_segment(struct segment *s)
{
    bool entered;

    pthread_mutex_lock(&dti_segments.mutex);
    entered = tsearch(s, &dti_segments.by_address, compare_addresses) != NULL;
    if (entered && s->kind.n > 1 && !tsearch(s, &dti_segments.by_number, compare_numbers)) {
        tdelete(s, &dti_segments.by_address, compare_addresses);
        entered = false;
    }
    dti_segments.blocks += entered && s->kind.n > 1;
    pthread_mutex_unlock(&dti_segments.mutex);
    return entered;
}

void *dt_segment_open(const struct dt_segment_kind *kind, int fd)
{
    struct segment *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->kind = *kind;
    if (map_segment(s, fd)) {
        if (insert_segment(s))
            return s->block;
        munmap(s->base, s->total);
        errno = ENOMEM;
    }
    free(s);
    return NULL;
}

void dt_segment_populate(const void *block)
{
    struct segment *s;

    pthread_mutex_lock(&dti_segments.mutex);
    s = segment_at_address(block, 1);
    pthread_mutex_unlock(&dti_segments.mutex);
    if (s && s->kind.n > 1)
        populate_pages(s->base, s->total);
}

/* ---- freeing: the static functions are called with the mutex held ---- */

static void remove_segment(struct segment *s)
{
    if (s->kind.n > 1)
        tdelete(s, &dti_segments.by_number, compare_numbers);
    munmap(s->base, s->total);
    free(s);
}

static bool all_freed(const struct segment *s)
{
    for (uint32_t i = 0; i < s->kind.n; i++) {
        if (!atomic_load(freed_word(s, i)))
            return false;
    }
    return true;
}

static void sweep_locked(void)
{
    struct segment **at = &dti_segments.freed;

    while (*at && dti_segments.holds == 0) {
        struct segment *s = *at;

        if (!all_freed(s)) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        remove_segment(s);
    }
}

/* Removes it from the tree of addresses. NULL: dt_segment_open did not return this address. */
static struct segment *remove_by_address(const void *block)
{
    struct segment *s = segment_at_address(block, 1);

    if (!s || s->block != block)
        return NULL;
    tdelete(s, &dti_segments.by_address, compare_addresses);
    dti_segments.blocks -= s->kind.n > 1;
    return s;
}

/* Frees the pages at once, and makes the addresses inaccessible. A program that still uses them
 * then faults, instead of corrupting memory that is mapped there later. */
static void release_pages(struct segment *s)
{
    size_t bytes = (size_t)(s->end - s->block);

    madvise(s->block, bytes, MADV_REMOVE);
    mprotect(s->block, bytes, PROT_NONE);
    atomic_store(freed_word(s, s->kind.me), 1);
    s->next = dti_segments.freed;
    dti_segments.freed = s;
}

bool dt_segment_free(void *block)
{
    struct segment *s;

    pthread_mutex_lock(&dti_segments.mutex);
    s = remove_by_address(block);
    if (s)
        release_pages(s);
    sweep_locked();
    pthread_mutex_unlock(&dti_segments.mutex);
    return s != NULL;
}

void dt_segment_discard(void *block)
{
    struct segment *s;

    pthread_mutex_lock(&dti_segments.mutex);
    s = remove_by_address(block);
    if (s)
        remove_segment(s);
    pthread_mutex_unlock(&dti_segments.mutex);
}

void dt_segment_sweep(void)
{
    pthread_mutex_lock(&dti_segments.mutex);
    sweep_locked();
    pthread_mutex_unlock(&dti_segments.mutex);
}
