/* The memory that one agent shares with those of its ranks that are in one communicator: a sealed
 * memory file, handed out with WELCOME for the one of all ranks, with MEMORY for others.
 *
 *     head | one struct dt_hostshm_rank per local rank | who is in it | staging of each local rank
 *          | pipes: two from every local rank to every local rank
 *
 * Local ranks are those of the communicator. Whoever has mapped the same file is on the same host.
 * Every word has one writer, named at it, but for "stop" and "teller" (first writer wins), the
 * doorbells (anyone adds one and wakes) and what counts sleepers. The agent stops all files when it
 * stops the job, so that whoever waits need look at one. Steps, flags and "joining" stand in the
 * file of all ranks only. All of it is the job's own: the agent takes from it only steps, flags,
 * calls, and why they fail, which can harm nothing but their own job. */
#ifndef DT_WIRE_HOSTSHM_H
#define DT_WIRE_HOSTSHM_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/wire/callkind.h"

enum {
    DT_HOSTSHM_LINE = 64,
    DT_HOSTSHM_APART = 128, /* what keeps lines apart: processors fetch the other of a pair, too */
    DT_HOSTSHM_PAGE = 4096,
    DT_HOSTSHM_INLINE = 48, /* bytes of data that travel with the word that announces them */
    DT_HOSTSHM_WHY = 504,   /* bytes of the text that tells why nothing goes on */
    DT_HOSTSHM_PAIRS = 4,   /* calls between two ranks that are noted of a rank at once */
    DT_HOSTSHM_ROUNDS = 4, /* no round takes more of a rank's staging than such a part (rounds.h) */
    DT_HOSTSHM_ROOM = 2 * 1024 * 1024, /* the most bytes of a rank's staging */
    DT_HOSTSHM_CPUS = 1024, /* as many as sched_getaffinity(2) knows without being told of more */
};

/* What a collective call is: equal on all ranks, or the call is a mismatch. */
struct dt_call {
    uint64_t number; /* counts the collectives of this generation */
    uint64_t count;  /* of counts that all ranks give alike dt_counts_hash; 0 where ranks' differ */
    uint8_t kind;
    uint8_t dtype;
    uint8_t op;
    uint8_t device;   /* 1: the buffers lie in a device's memory */
    int32_t root;     /* or the peer, or -1 */
    uint64_t options; /* DT_CALL_ALL_REDUCE: dt_reduceoptions_mark, and of its pieces;
                         DT_CALL_REDUCE_SCATTER: 0, or of how many blocks together count is;
                         DT_CALL_REDUCE_SCATTERV: 0, or dt_counts_hash where count is of all */
};

enum dt_hostshm_flags {
    DT_HOSTSHM_FINALIZED = 1, /* dt_finalize has succeeded */
    DT_HOSTSHM_PEER_LOST = 2, /* a call has returned DT_ERR_PEER, or waited for too long */
    DT_HOSTSHM_DUMPING = 4,   /* it writes down its last calls: SIGTERM waits for that */
};

#define DT_HOSTSHM_NO_STEP INT64_MAX /* no step is watched */

/* Reasons to stop a host: DT_ERR_MISMATCH, DT_ERR_PEER, DT_ERR_TIMEOUT. */
enum {
    DT_HOSTSHM_MISMATCH = -3,
    DT_HOSTSHM_PEER_DIED = -4,
    DT_HOSTSHM_TIMED_OUT = -5,
};

enum { DT_HOSTSHM_INSIDE = 0x80 }; /* of a rank's call: it has not returned */

enum { DT_HOSTSHM_ENDED = 0x10000 }; /* of a rank's ending: how it ended is known */

#define DT_HOSTSHM_NO_LIMIT UINT32_MAX /* of a call: it may wait for ever */

/* By place: a rank's collective call, then those between two. */
enum { DT_HOSTSHM_PLACES = 1 + DT_HOSTSHM_PAIRS };

/* By which the other ranks of the host find this rank's memory (host/cma.h); all 0: it shows none.
 */
struct dt_hostshm_card {
    uint64_t pid; /* as the rank itself knows it */
    uint64_t at;  /* where in its memory the word stands */
    uint64_t word[2];
};

/* One cache line: whoever sees the progress has the rest of the line with it. While others look at
 * it, its rank writes other lines: they are not to come along. */
struct dt_hostshm_post {
    alignas(DT_HOSTSHM_APART) _Atomic uint64_t progress; /* of the rank in the host's rounds */
    uint64_t signature;                                  /* of its call */
    uint8_t data[DT_HOSTSHM_INLINE];
};

struct dt_hostshm_rank {
    /* written by the agent */
    alignas(DT_HOSTSHM_LINE) _Atomic int64_t watch_step; /* dt_step reports at it */

    /* written by the rank, but seldom */
    _Atomic uint32_t least_limit_ms; /* of calls that it has begun, or may yet; 0: none has one */
    _Atomic uint32_t limits_ms[DT_HOSTSHM_PLACES]; /* while INSIDE: 0: dtrun's; or NO_LIMIT */
    _Atomic uint32_t waited_ms[DT_HOSTSHM_PAIRS];  /* likewise: before it was noted there */
    _Atomic uint32_t turns[DT_HOSTSHM_PAIRS];      /* calls that have been noted there */

    /* written by the rank */
    alignas(DT_HOSTSHM_LINE) _Atomic int64_t step; /* last dt_step, or -1 */
    _Atomic uint32_t flags;
    _Atomic uint64_t call; /* newest: number << 8 | DT_HOSTSHM_INSIDE while in it | kind; or 0 */
    _Atomic uint64_t signature; /* of that call, where it goes between hosts; or 0 */
    /* Between two, by threads that wait at once, those of them that are due soonest: the newest in
     * each place, or one before. number << 32 (0: not known) | peer << 8 | DT_HOSTSHM_INSIDE | kind
     */
    _Atomic uint64_t pairs[DT_HOSTSHM_PAIRS];

    struct dt_hostshm_post posts[2]; /* by parity of the round */
    struct dt_call calls[2];         /* likewise */

    /* that it may run on, from start */
    alignas(DT_HOSTSHM_LINE) uint64_t cpus[DT_HOSTSHM_CPUS / 64];

    alignas(DT_HOSTSHM_LINE) _Atomic uint32_t doorbell; /* futex of this rank */
    _Atomic uint32_t waits_for;  /* by the rank: 1 + the local rank it sleeps for, or 0 */
    _Atomic uint32_t passing;    /* by the rank: threads of it that sleep at a pipe */
    _Atomic uint32_t joining;    /* by the rank: threads of it that make communicators */
    struct dt_hostshm_card card; /* by the rank, before it first meets the others */
    _Atomic uint32_t cpu;        /* by the rank: 1 + where it last waited, or 0 */
    _Atomic uint32_t failed; /* by the rank: communicators but DT_WORLD that failed for good, and
                                that the program has neither freed nor aborted */
};

struct dt_hostshm_head {
    alignas(DT_HOSTSHM_APART) uint32_t magic;
    uint32_t protocol; /* DT_RANK_PROTOCOL */
    uint32_t generation;
    uint32_t local_size;
    uint64_t room; /* bytes of a rank's staging */
    uint64_t bytes;

    /* 0, or why nothing goes on: a dt_result_t (negated, low half) and the rank to blame (high
     * half). */
    alignas(DT_HOSTSHM_LINE) _Atomic uint64_t stop;
    /* By the agent, before it sets "stop" for a rank's death: the rank (high half) and how it ended
     * (DT_HOSTSHM_ENDED and a status as of waitpid(2)); of the first one. Of the job's memory. */
    _Atomic uint64_t ending;

    alignas(DT_HOSTSHM_LINE) _Atomic uint32_t sleepers; /* ranks that sleep or are about to */
    _Atomic uint32_t fences; /* not 0: some rank cannot use membarrier(2), see rounds.c */
    _Atomic uint32_t teller; /* not 0: somebody writes, or has written, what follows */

    /* by who has set "teller", before it sets "stop" to the same value: the text belongs to that */
    alignas(DT_HOSTSHM_LINE) _Atomic uint64_t why_stop;
    char why[DT_HOSTSHM_WHY];
};

/* Where a rank writes to in the memory of another (host/cma.h). The kernel reads it, as a struct
 * iovec, when the write begins: so the other one can take back what it has allowed until then. */
struct dt_hostshm_target {
    _Atomic uint64_t at;    /* by the rank that writes */
    _Atomic uint64_t bytes; /* by both: the other one stores 0 */
};

/* Bytes on their way from one rank to another, in a ring. Counts never go back. */
struct dt_hostshm_pipe {
    alignas(DT_HOSTSHM_APART) _Atomic uint64_t written; /* bytes, by the rank that they come from */
    struct dt_hostshm_target target; /* of what goes beside the pipe, from the same rank */
    alignas(DT_HOSTSHM_APART) _Atomic uint64_t read; /* bytes, by the rank that they go to */
    alignas(DT_HOSTSHM_APART) uint8_t data[];
};

static_assert(sizeof(struct dt_call) == 32, "two calls share a cache line");
static_assert(offsetof(struct dt_hostshm_post, data) + DT_HOSTSHM_INLINE == DT_HOSTSHM_LINE,
              "progress and data are seen together");
static_assert(sizeof(struct dt_hostshm_rank) == 10 * DT_HOSTSHM_LINE, "layout is the protocol's");
static_assert(sizeof(struct dt_hostshm_head) == 12 * DT_HOSTSHM_LINE, "layout is the protocol's");
static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "shared between processes");

struct dt_hostshm { /* a mapping; head is NULL while there is none */
    struct dt_hostshm_head *head;
    struct dt_hostshm_rank *ranks;
    _Atomic uint32_t *members; /* by rank: 1 + the job's rank; all write the same; 0: not yet */
    uint32_t local_size;       /* what stands in the head others can change */
    uint32_t size;             /* of them; 0: it is the memory of all ranks of the job */
    uint8_t *staging;
    size_t room;
    uint8_t *pipes;
    size_t pipe; /* bytes of one: whole pages, of which those never used cost nothing */
    size_t bytes;
};

/* Bytes of each rank's staging on a host with so many of them. */
size_t dt_hostshm_room(uint32_t local_size);

/* Makes and maps the file. Returns its descriptor, which the caller closes, or -1 with errno. size:
 * ranks of the communicator on all hosts, or 0 for the one of all. */
int dt_hostshm_create(struct dt_hostshm *h, uint32_t generation, uint32_t local_size,
                      uint32_t size);
/* The same for a job of one rank that has no agent, and shares it with nobody. */
int dt_hostshm_create_private(struct dt_hostshm *h);
/* Maps a received file. Returns 0, or -1 with errno (EPROTO: it is not sealed, or not what was
 * named). */
int dt_hostshm_map(struct dt_hostshm *h, int fd, uint32_t generation, uint32_t local_size,
                   uint32_t size);
void dt_hostshm_unmap(struct dt_hostshm *h);

/* A local rank's staging: h->room bytes, four cache lines or more for every local rank; aligned to
 * a page. */
static inline uint8_t *dt_hostshm_staging(const struct dt_hostshm *h, uint32_t local_rank)
{
    return h->staging + local_rank * h->room;
}

/* set: 0 or 1, of which each has a pipe from every local rank to every local rank. */
static inline struct dt_hostshm_pipe *dt_hostshm_pipe(const struct dt_hostshm *h, uint32_t set,
                                                      uint32_t from, uint32_t to)
{
    size_t n = h->local_size;

    return (struct dt_hostshm_pipe *)(h->pipes + ((set * n + from) * n + to) * h->pipe);
}

/* Ends every wait on this host, now and later. code: a negative dt_result_t. The first call wins;
 * later ones wake who may sleep on because the first caller has died, or stands still. */
void dt_hostshm_stop(const struct dt_hostshm *h, int code, uint32_t culprit);
/* The same, with a text for those who want to know more. */
void dt_hostshm_stop_because(const struct dt_hostshm *h, int code, uint32_t culprit,
                             const char *why);

/* An ending: code as of exit(3), or below 0 and a signal; 0: neither is known. */
static inline uint32_t dt_hostshm_ending_of(int code, int signo)
{
    if (code < 0 && signo <= 0)
        return 0;
    return DT_HOSTSHM_ENDED | (uint32_t)(code < 0 ? signo & 0x7f : (code & 0xff) << 8);
}

/* Notes how that rank of the job ended, where it is the first one. */
void dt_hostshm_note_ending(const struct dt_hostshm *h, uint32_t rank, uint32_t ending);
/* How that rank of the job ended; 0: not known. */
uint32_t dt_hostshm_ending(const struct dt_hostshm *h, uint32_t rank);
/* " (killed by signal 9)", " (exit status 3)", or "". Returns text. */
enum { DT_HOSTSHM_ENDING = 32 };
const char *dt_hostshm_ending_text(const struct dt_hostshm *h, uint32_t rank,
                                   char text[DT_HOSTSHM_ENDING]);

static inline void dt_hostshm_note_call(struct dt_hostshm_rank *rank, uint64_t number,
                                        unsigned kind)
{
    atomic_store_explicit(&rank->call, number << 8 | kind, memory_order_release);
}

/* This and the next only while the rank is in no call that has one: whoever finds it in one, before
 * and after, has read that one's. */
static inline void dt_hostshm_note_signature(struct dt_hostshm_rank *rank, uint64_t signature)
{
    atomic_store_explicit(&rank->signature, signature, memory_order_release);
}

/* Of the collective call. Most have that of the one before, and cost no store. */
static inline void dt_hostshm_note_limit(struct dt_hostshm_rank *rank, uint32_t ms)
{
    if (atomic_load_explicit(&rank->limits_ms[0], memory_order_relaxed) != ms)
        atomic_store_explicit(&rank->limits_ms[0], ms, memory_order_release);
}

/* The lesser of two limits; 0: neither ends a call, unless it is dtrun's, which a rank does not
 * know. */
static inline uint32_t dt_hostshm_lesser_limit(uint32_t a, uint32_t b)
{
    a = a == DT_HOSTSHM_NO_LIMIT ? 0 : a;
    b = b == DT_HOSTSHM_NO_LIMIT ? 0 : b;
    if (!a || !b)
        return a ? a : b;
    return a < b ? a : b;
}

static inline uint64_t dt_hostshm_call_number(uint64_t call)
{
    return call >> 8;
}

static inline uint64_t dt_hostshm_pair(uint64_t number, uint32_t peer, unsigned kind)
{
    return number << 32 | (uint64_t)peer << 8 | kind;
}

/* Notes in a place that is left that a thread is inside that call, which may wait for so long, and
 * has for so long. For who alone has that place, as the next. */
void dt_hostshm_enter_pair(struct dt_hostshm_rank *rank, int place, uint64_t pair,
                           uint32_t limit_ms, uint32_t waited_ms);
void dt_hostshm_leave_pair(struct dt_hostshm_rank *rank, int place);

static inline uint32_t dt_hostshm_pair_number(uint64_t pair)
{
    return (uint32_t)(pair >> 32);
}

static inline uint32_t dt_hostshm_pair_peer(uint64_t pair)
{
    return (uint32_t)pair >> 8;
}

/* "all-reduce"; of a pair's call, too. */
const char *dt_hostshm_call_name(uint64_t call);

/* The text that came with what stopped the host, or "". */
const char *dt_hostshm_why(const struct dt_hostshm *h);
/* A copy of it, which a rank that lies cannot change, nor leave without an end. Returns text. */
const char *dt_hostshm_copy_why(const struct dt_hostshm *h, char text[DT_HOSTSHM_WHY]);
/* 0 while nothing stops, else the code; *culprit (may be NULL) is the rank to blame. */
static inline int dt_hostshm_stopped(const struct dt_hostshm *h, uint32_t *culprit)
{
    uint64_t stop = atomic_load_explicit(&h->head->stop, memory_order_acquire);

    if (culprit)
        *culprit = (uint32_t)(stop >> 32);
    return (int)-(int64_t)(uint32_t)stop;
}

/* Sleeps until someone rings the rank's doorbell, unless it no longer has the value seen. Returns
 * early at a signal. */
void dt_hostshm_sleep(struct dt_hostshm_rank *rank, uint32_t seen);
void dt_hostshm_ring(struct dt_hostshm_rank *rank);

#endif
