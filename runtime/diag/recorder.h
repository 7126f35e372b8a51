/* The flight recorder: the last calls on every communicator of this process, for whoever asks what
 * came before a failure (dump.h).
 *
 * A communicator has a ring, which only the thread writes that holds its slot, with plain stores:
 * recording takes no lock. To read the time would cost more than all the rest: only a call that
 * lasts is timed. Of brief ones, every fourth reads a coarse clock.
 *
 * Any thread may read all rings at any time; what is overwritten meanwhile it leaves out. A ring
 * outlives its communicator, until another one needs it. */
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
    uint64_t begun; /* nanoseconds of CLOCK_MONOTONIC */
    uint64_t ended; /* likewise; 0: its thread is still inside; begun: it was brief */
    dt_result_t result;
    const char *within; /* the way within the host, and between hosts; NULL: there is none */
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
    struct dt_ring *next; /* of all there are */
    uint64_t closed;      /* 0: a communicator writes it; else when it was closed, by count */
    uint32_t n;
    uint32_t at;                   /* by the writer: its next entry, */
    bool lasts;                    /* likewise: its newest call does */
    uint64_t begun;                /* likewise: of that call */
    uint64_t clock;                /* likewise: when it was read */
    uint64_t comm;                 /* whose it is */
    const struct dt_call *pending; /* by the writer: that is still to be written */
    _Atomic uint64_t reserved;     /* entries that have been, or are being, written */
    _Atomic uint64_t shown;        /* of these, how many can be read */
    struct dt_ring_entry entries[];
};

/* How many calls each ring holds; 0: nothing is recorded. Before the first ring. */
void dt_recorder_start(uint32_t calls);

/* NULL: nothing is recorded, or there is no memory. */
struct dt_ring *dt_ring_open(uint64_t comm);
/* Accepts NULL. */
void dt_ring_close(struct dt_ring *r);

/* Of so many brief calls, one reads the time. */
enum { DT_RING_CLOCKED = 4 };

/* Every store releases: who reads a word of a new entry then finds that it has been reserved. */
#define DT_RING_STORE(word, value) atomic_store_explicit(&(word), value, memory_order_release)

/* A call begins, which stays where it is until it has ended. All these accept NULL. */
static inline void dt_ring_begin(struct dt_ring *r, const struct dt_call *call)
{
    if (!r)
        return;
    r->pending = call;
    r->lasts = false;
}

/* Writes the call to its entry, which then is the newest but is not shown yet. Returns its number.
 */
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

/* Shows that the call goes on, unless that has been done. */
void dt_ring_show(struct dt_ring *r);

/* It takes so long that it is worth timing. */
static inline void dt_ring_lasts(struct dt_ring *r)
{
    if (!r || r->lasts)
        return;
    dt_ring_show(r);
    r->lasts = true;
    r->begun = r->clock = dt_clock_ns();
    DT_RING_STORE(r->entries[r->at].begun, r->clock);
}

/* It has ended, and went these ways. One that has not been shown before is so now, whole. One that
 * fails without having waited is timed by its end: it is the one that everybody looks for, and the
 * clock may have been read long before it. */
static inline void dt_ring_end(struct dt_ring *r, dt_result_t result, const char *within,
                               const char *between)
{
    struct dt_ring_entry *e;
    uint64_t hidden;

    if (!r)
        return;
    e = &r->entries[r->at];
    hidden = r->pending ? dt_ring_write(r, e) : 0;
    if (r->lasts || result != DT_OK)
        r->clock = dt_clock_ns();
    if (!r->lasts && result != DT_OK)
        DT_RING_STORE(e->begun, r->clock);
    DT_RING_STORE(e->result, result);
    DT_RING_STORE(e->within, within);
    DT_RING_STORE(e->between, between);
    DT_RING_STORE(e->ended, r->clock);
    if (hidden)
        DT_RING_STORE(r->shown, hidden);
    r->at = r->at + 1 == r->n ? 0 : r->at + 1;
}

/* When the newest call began, which lasts; where nothing is recorded, it begins now. */
static inline uint64_t dt_ring_begun(const struct dt_ring *r)
{
    return r ? r->begun : dt_clock_read(CLOCK_MONOTONIC_COARSE);
}

/* For how long the newest call has lasted; 0: not known, or it is brief. By the writer. */
double dt_ring_seconds(const struct dt_ring *r);

/* All that is recorded, in the order in which it began. Returns how many, and in *records what the
 * caller frees; NULL: there are none, or there is no memory. */
size_t dt_recorder_read(struct dt_record **records);

#endif
