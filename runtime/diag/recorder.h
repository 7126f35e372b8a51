/* The flight recorder: the last calls on every communicator of this process, to show what preceded
 * a failure (dump.h).
 *
 * Each communicator has a ring. Only the thread that holds its slot writes it, with plain stores,
 * so recording takes no lock. Reading the clock would cost more than everything else, so only long
 * calls are timed: those that wait, leave the host or move much data (dt_ring_mark_long). Of the
 * others, the brief calls, every fourth reads a coarse clock.
 *
 * Any thread may read all rings at any time. It skips entries that are overwritten meanwhile. A
 * ring outlives its communicator until another one reuses it. */
#ifndef DT_DIAG_RECORDER_H
#define DT_DIAG_RECORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/dtrun.h"
#include "runtime/wire/hostshm.h"

struct dt_record {
    struct dt_call call;
    uint64_t comm;
    uint64_t begun; /* CLOCK_MONOTONIC, in nanoseconds */
    /* Likewise; 0: the thread is still inside; equal to begun: the call was brief. */
    uint64_t ended;
    dt_result_t result;
    const char *within; /* the algorithm within the host, and between hosts; NULL: none */
    const char *between;
};

enum { DT_RING_CALL = sizeof(struct dt_call) / sizeof(uint64_t) };

struct dt_ring_entry {
    _Atomic uint64_t call[DT_RING_CALL];
    _Atomic uint64_t comm;
    _Atomic uint64_t begun;
    _Atomic uint64_t ended;
    _Atomic int result;
    _Atomic(const char *) within;
    _Atomic(const char *) between;
};

struct dt_ring {
    struct dt_ring *next; /* in the list of all rings */
    /* 0: a communicator uses it; else its number in the order in which rings were closed. */
    uint64_t closed;
    uint32_t n;    /* entries */
    uint64_t comm; /* the communicator's id */

    /* Only the writer uses these. */
    uint32_t at;                   /* the next entry */
    bool is_long;                  /* the newest call is a long one */
    uint64_t begun;                /* when the newest call began */
    uint64_t clock;                /* the time last read */
    const struct dt_call *pending; /* the newest call, until it is written to its entry */

    _Atomic uint64_t reserved; /* entries that have been written or are being written */
    _Atomic uint64_t shown;    /* entries that can be read */
    struct dt_ring_entry entries[];
};

/* Sets how many calls each ring holds; 0: nothing is recorded. Before the first ring is opened. */
void dt_recorder_start(uint32_t calls);

/* NULL: nothing is recorded, or out of memory. */
struct dt_ring *dt_ring_open(uint64_t comm);
/* Accepts NULL. */
void dt_ring_close(struct dt_ring *r);

/* One of this many brief calls reads the coarse clock. */
enum { DT_RING_CLOCKED = 4 };

/* Every store is a release: a thread that reads a word of a new entry then also sees that the entry
 * was reserved. */
#define DT_RING_STORE(word, value) atomic_store_explicit(&(word), value, memory_order_release)

/* A call begins. *call stays valid until dt_ring_end. All of these functions accept NULL. */
static inline void dt_ring_begin(struct dt_ring *r, const struct dt_call *call)
{
    if (!r)
        return;
    r->pending = call;
    r->is_long = false;
}

/* Writes the call to the newest entry, which readers do not see yet. Returns the entry's number. */
static inline uint64_t dt_ring_write(struct dt_ring *r, struct dt_ring_entry *e)
{
    uint64_t n = atomic_load_explicit(&r->reserved, memory_order_relaxed) + 1;
    uint64_t words[DT_RING_CALL];

    memcpy(words, r->pending, sizeof words);
    r->pending = NULL;
    atomic_store_explicit(&r->reserved, n, memory_order_relaxed);
    for (int i = 0; i < DT_RING_CALL; i++)
        DT_RING_STORE(e->call[i], words[i]);
    DT_RING_STORE(e->comm, r->comm);
    if (n % DT_RING_CLOCKED == 1)
        r->clock = dt_clock_read(CLOCK_MONOTONIC_COARSE);
    r->begun = r->clock;
    DT_RING_STORE(e->begun, r->begun);
    return n;
}

/* Makes a call that is still under way visible to readers, once. */
void dt_ring_show(struct dt_ring *r);

/* Marks the newest call as a long one: shows it, and times it from now on. */
static inline void dt_ring_mark_long(struct dt_ring *r)
{
    if (!r || r->is_long)
        return;
    dt_ring_show(r);
    r->is_long = true;
    r->begun = r->clock = dt_clock_ns();
    DT_RING_STORE(r->entries[r->at].begun, r->clock);
}

/* Ends the newest call, with its algorithms, and makes it visible if it was not. A brief call
 * that fails is timed here: it is the most interesting one, and the coarse time may be old. */
static inline void dt_ring_end(struct dt_ring *r, dt_result_t result, const char *within,
                               const char *between)
{
    struct dt_ring_entry *e;
    uint64_t hidden;

    if (!r)
        return;
    e = &r->entries[r->at];
    hidden = r->pending ? dt_ring_write(r, e) : 0;
    if (r->is_long || result != DT_OK)
        r->clock = dt_clock_ns();
    if (!r->is_long && result != DT_OK)
        DT_RING_STORE(e->begun, r->clock);
    DT_RING_STORE(e->result, result);
    DT_RING_STORE(e->within, within);
    DT_RING_STORE(e->between, between);
    DT_RING_STORE(e->ended, r->clock);
    if (hidden)
        DT_RING_STORE(r->shown, hidden);
    r->at = r->at + 1 == r->n ? 0 : r->at + 1;
}

/* When the newest call began, if it is a long one. If nothing is recorded, the current time. */
static inline uint64_t dt_ring_begun(const struct dt_ring *r)
{
    return r ? r->begun : dt_clock_read(CLOCK_MONOTONIC_COARSE);
}

/* How long the newest call has lasted; 0: unknown, or it is brief. For the writer. */
double dt_ring_seconds(const struct dt_ring *r);

/* Reads all recorded calls, in the order in which they began. Returns their number and stores an
 * array in *records, which the caller frees; NULL: out of memory. */
size_t dt_recorder_read(struct dt_record **records);

#endif
