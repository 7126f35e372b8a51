/* The memory that an agent shares with those of its ranks that are in one communicator. It is a
 * sealed memory file. The agent hands out DT_WORLD's with WELCOME, and others with MEMORY.
 *
 *     head | one struct dt_hostshm_rank per local rank | members | staging of each local rank
 *          | pipes: two from every local rank to every local rank
 *
 * Local ranks are those of the communicator. Processes that map the same file are on the same host.
 * Every word has one writer, which its comment names. The exceptions are "stop" and "teller" (the
 * first writer wins), the doorbells (every process adds one and wakes) and the counts of sleepers.
 * When the agent stops the job, it stops all files, so a waiting rank needs to look at only one.
 * Steps, flags and "joining" are used only in DT_WORLD's file. A rank can write anything here. The
 * agent reads only steps, flags, calls and why they fail; wrong values can harm only the job
 * itself. */
#ifndef DT_WIRE_HOSTSHM_H
#define DT_WIRE_HOSTSHM_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "runtime/wire/callkind.h"

enum {
    DT_HOSTSHM_LINE = 64,
    /* Distance between words of different writers. Processors also fetch the other line of a pair.
     */
    DT_HOSTSHM_APART = 128,
    DT_HOSTSHM_INLINE = 48, /* bytes of data next to the word that announces them */
    DT_HOSTSHM_WHY = 504,   /* bytes of the text that says why the host was stopped */
    DT_HOSTSHM_PAIRS = 4,   /* sends and receives noted for a rank at once */
    /* A round uses at most a quarter of a rank's staging area (rounds.h). */
    DT_HOSTSHM_ROUNDS = 4,
    DT_HOSTSHM_ROOM = 2 * 1024 * 1024, /* maximum size of a rank's staging area */
    DT_HOSTSHM_CPUS = 1024,            /* the size of cpu_set_t */
};

/* Where the buffers of a call are. Contains the bits of what it implies. */
enum dt_call_device {
    DT_DEVICE_NONE = 0,
    DT_DEVICE_MEMORY = 1,
    DT_DEVICE_ORDERED = 3, /* in device memory; the program has promised the place of the call */
};

/* Identifies a collective call. It must be equal on all ranks, otherwise the calls do not match. */
struct dt_call {
    uint64_t number; /* counts the collectives of this generation */
    /* The number of elements. If each block has a count of its own: dt_counts_hash if all ranks
     * pass the same counts, else 0. */
    uint64_t count;
    uint8_t kind;
    uint8_t dtype;
    uint8_t op;
    uint8_t device; /* enum dt_call_device */
    int32_t root;   /* the root or the peer, or -1 */
    /* DT_CALL_ALL_REDUCE: dt_reduceoptions_mark of the options and of a bucket's buffers.
     * DT_CALL_REDUCE_SCATTER: the number of blocks if count is the sum of all, else 0.
     * DT_CALL_REDUCE_SCATTERV: dt_counts_hash if count is the sum of all, else 0. */
    uint64_t options;
};

enum dt_hostshm_flags {
    DT_HOSTSHM_FINALIZED = 1, /* dt_finalize has succeeded */
    DT_HOSTSHM_PEER_LOST = 2, /* a call has returned DT_ERR_PEER, or waited for too long */
    DT_HOSTSHM_DUMPING = 4,   /* it is writing its dump; SIGTERM is delayed until it has finished */
    DT_HOSTSHM_GPU_LOST = 8,  /* the GPU of another rank has ended all communicators */
};

#define DT_HOSTSHM_NO_STEP INT64_MAX /* no step is watched */

/* Why a host was stopped: DT_ERR_MISMATCH, DT_ERR_PEER, DT_ERR_TIMEOUT. */
enum {
    DT_HOSTSHM_MISMATCH = -3,
    DT_HOSTSHM_PEER_DIED = -4,
    DT_HOSTSHM_TIMED_OUT = -5,
};

enum { DT_HOSTSHM_INSIDE = 0x80 }; /* in a rank's call: it has not returned */

enum { DT_HOSTSHM_ENDED = 0x10000 }; /* in a rank's ending: how it ended is known */

#define DT_HOSTSHM_NO_LIMIT UINT32_MAX /* of a call: no time limit */

/* Places for calls: a rank's collective, then its sends and receives. */
enum { DT_HOSTSHM_PLACES = 1 + DT_HOSTSHM_PAIRS };

/* Lets the other ranks of the host find this rank's memory (shm/cma.h). All 0: they may not access
 * it. */
struct dt_hostshm_card {
    uint64_t pid; /* in the rank's own PID namespace */
    uint64_t at;  /* address of the word in its memory */
    uint64_t word[2];
};

/* One cache line: a reader that sees the progress has the rest of the line too. While other ranks
 * poll it, its rank writes to other lines, which must not be fetched with it. */
struct dt_hostshm_post {
    alignas(DT_HOSTSHM_APART) _Atomic uint64_t progress; /* of the rank in the host's rounds */
    uint64_t signature;                                  /* of its call */
    uint8_t data[DT_HOSTSHM_INLINE];
};

struct dt_hostshm_rank {
    /* Written by the agent: dt_step reports when it reaches this step. */
    alignas(DT_HOSTSHM_LINE) _Atomic int64_t watch_step;

    /* Written by the rank, rarely. */
    /* The least limit of the calls that it has begun or may still begin; 0: none. */
    _Atomic uint32_t least_limit_ms;
    _Atomic uint32_t limits_ms[DT_HOSTSHM_PLACES]; /* while INSIDE; 0: dtrun's limit; or NO_LIMIT */
    /* While INSIDE: how long the call had waited before it was noted. */
    _Atomic uint32_t waited_ms[DT_HOSTSHM_PAIRS];
    _Atomic uint32_t turns[DT_HOSTSHM_PAIRS]; /* number of calls noted in each place */

    /* Written by the rank. */
    alignas(DT_HOSTSHM_LINE) _Atomic int64_t step; /* the last dt_step, or -1 */
    _Atomic uint32_t flags;
    _Atomic uint64_t
        call; /* the newest: number << 8 | DT_HOSTSHM_INSIDE while in it | kind; or 0 */
    _Atomic uint64_t signature; /* signature of that call, if it is between hosts; else 0 */
    /* Sends and receives in which threads wait now; if there are more, those that are due first.
     * Each place has its newest call or an earlier one. number << 32 (0: unknown) | peer << 8 |
     * DT_HOSTSHM_INSIDE | kind */
    _Atomic uint64_t pairs[DT_HOSTSHM_PAIRS];

    struct dt_hostshm_post posts[2]; /* by the round's parity */
    struct dt_call calls[2];         /* by the round's parity */

    /* The CPUs that it may run on; set at the start. */
    alignas(DT_HOSTSHM_LINE) uint64_t cpus[DT_HOSTSHM_CPUS / 64];

    alignas(DT_HOSTSHM_LINE) _Atomic uint32_t doorbell; /* this rank's futex */

    /* Written by the rank. */
    _Atomic uint32_t waits_for;     /* 1 + the local rank that it sleeps for, or 0 */
    _Atomic uint32_t pipe_sleepers; /* its threads that sleep at a pipe */
    _Atomic uint32_t joining;       /* its threads that are making communicators */
    struct dt_hostshm_card card;    /* before it first meets the others */
    _Atomic uint32_t cpu;           /* 1 + the CPU where it last waited, or 0 */
    /* Communicators other than DT_WORLD that failed for good, and that the program has neither
     * freed nor aborted. */
    _Atomic uint32_t failed;
};

struct dt_hostshm_head {
    alignas(DT_HOSTSHM_APART) uint32_t magic;
    uint32_t protocol; /* DT_RANK_PROTOCOL */
    uint32_t generation;
    uint32_t local_size;
    uint64_t room; /* bytes of a rank's staging */
    uint64_t bytes;

    /* 0, or why the host was stopped: a dt_result_t (negated, low half) and the rank that caused it
     * (high half). */
    alignas(DT_HOSTSHM_LINE) _Atomic uint64_t stop;
    /* Written by the agent before it sets "stop" for the first death: the rank (high half) and how
     * it ended (DT_HOSTSHM_ENDED and a status as of waitpid(2)). Only in DT_WORLD's memory. */
    _Atomic uint64_t ending;
    /* Written by the agent when it stops the ranks: when one that cannot end by itself has to
     * leave, on CLOCK_BOOTTIME; 0: they are not being stopped. Only in DT_WORLD's memory. */
    _Atomic uint64_t leave_by_ns;

    alignas(DT_HOSTSHM_LINE) _Atomic uint32_t sleepers; /* ranks that sleep or are about to sleep */
    _Atomic uint32_t fences;  /* not 0: some rank cannot use membarrier(2), see rounds.c */
    _Atomic uint32_t reasons; /* number of reasons that processes have begun to write */
};

/* Written by the process that wants to stop the host for this reason, before it tries to set the
 * head's "stop" to the same value. */
struct dt_hostshm_reason {
    alignas(DT_HOSTSHM_LINE) _Atomic uint64_t stop;
    char text[DT_HOSTSHM_WHY];
};

/* Where a rank writes in another rank's memory (shm/cma.h). The kernel reads it as a struct iovec
 * when the write begins, so the other rank can withdraw its permission until then. */
struct dt_hostshm_target {
    _Atomic uint64_t at;    /* written by the writing rank */
    _Atomic uint64_t bytes; /* written by both: the other rank stores 0 */
};

/* A ring of bytes from one rank to another. Counts only grow. */
struct dt_hostshm_pipe {
    alignas(DT_HOSTSHM_APART) _Atomic uint64_t written; /* bytes, counted by the writing rank */
    struct dt_hostshm_target target; /* of data that bypass the pipe, from the same rank */
    alignas(DT_HOSTSHM_APART) _Atomic uint64_t read; /* bytes, counted by the reading rank */
    alignas(DT_HOSTSHM_APART) uint8_t data[];
};

static_assert(sizeof(struct dt_call) == 32, "two calls share a cache line");
static_assert(offsetof(struct dt_hostshm_post, data) + DT_HOSTSHM_INLINE == DT_HOSTSHM_LINE,
              "progress and data are seen together");
static_assert(sizeof(struct dt_hostshm_rank) == 10 * DT_HOSTSHM_LINE, "layout is the protocol's");
static_assert(sizeof(struct dt_hostshm_head) == 4 * DT_HOSTSHM_LINE, "layout is the protocol's");
static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "shared between processes");

struct dt_hostshm { /* a mapping; head is NULL if there is none */
    struct dt_hostshm_head *head;
    struct dt_hostshm_rank *ranks;
    struct dt_hostshm_reason *reasons; /* one for each local rank, and one for the agent */
    /* By rank: 1 + the job's rank; 0: not written yet. All ranks write the same values. */
    _Atomic uint32_t *members;
    uint32_t local_size; /* a copy: others could change the head */
    uint32_t size;       /* of the communicator; 0: DT_WORLD's memory */
    uint8_t *staging;
    size_t room;
    uint8_t *pipes;
    size_t pipe; /* bytes of one pipe: whole pages; unused pages cost nothing */
    size_t bytes;
};

/* Bytes of each rank's staging area, on a host with this number of local ranks. */
size_t dt_hostshm_room(uint32_t local_size);

/* Creates and maps the file. Returns its descriptor, which the caller closes, or -1 with errno.
 * size: ranks of the communicator on all hosts; 0: DT_WORLD's file. */
int dt_hostshm_create(struct dt_hostshm *h, uint32_t generation, uint32_t local_size,
                      uint32_t size);
/* The same for a job of one rank without an agent; it is not shared. */
int dt_hostshm_create_private(struct dt_hostshm *h);
/* Maps a received file. Returns 0, or -1 with errno (EPROTO: it is not sealed, or its header is
 * wrong). */
int dt_hostshm_map(struct dt_hostshm *h, int fd, uint32_t generation, uint32_t local_size,
                   uint32_t size);
void dt_hostshm_unmap(struct dt_hostshm *h);

/* A local rank's staging area: h->room bytes, page-aligned, with at least four cache lines for
 * every local rank. */
static inline uint8_t *dt_hostshm_staging(const struct dt_hostshm *h, uint32_t local_rank)
{
    return h->staging + local_rank * h->room;
}

/* set: 0 or 1; each has a pipe from every local rank to every local rank. */
static inline struct dt_hostshm_pipe *dt_hostshm_pipe(const struct dt_hostshm *h, uint32_t set,
                                                      uint32_t from, uint32_t to)
{
    size_t n = h->local_size;

    return (struct dt_hostshm_pipe *)(h->pipes + ((set * n + from) * n + to) * h->pipe);
}

/* Ends every wait on this host, now and later. code: a negative dt_result_t. The first call wins.
 * Later calls wake ranks that would sleep on if the first caller died or was suspended. */
void dt_hostshm_stop(const struct dt_hostshm *h, int code, uint32_t culprit);
/* The same, with a text about the reason. */
void dt_hostshm_stop_because(const struct dt_hostshm *h, int code, uint32_t culprit,
                             const char *why);

/* Encodes an ending: code as of exit(3), or below 0 with a signal; signal 0: neither is known. */
static inline uint32_t dt_hostshm_ending_of(int code, int signo)
{
    if (code < 0 && signo <= 0)
        return 0;
    return DT_HOSTSHM_ENDED | (uint32_t)(code < 0 ? signo & 0x7f : (code & 0xff) << 8);
}

/* Stores how that rank of the job ended, if it is the first one. */
void dt_hostshm_note_ending(const struct dt_hostshm *h, uint32_t rank, uint32_t ending);
/* How that rank of the job ended; 0: unknown. */
uint32_t dt_hostshm_ending(const struct dt_hostshm *h, uint32_t rank);
/* Writes " (killed by signal 9)", " (exit status 3)", or "". Returns text. */
enum { DT_HOSTSHM_ENDING = 32 };
const char *dt_hostshm_ending_text(const struct dt_hostshm *h, uint32_t rank,
                                   char text[DT_HOSTSHM_ENDING]);

static inline void dt_hostshm_note_call(struct dt_hostshm_rank *rank, uint64_t number,
                                        unsigned kind)
{
    atomic_store_explicit(&rank->call, number << 8 | kind, memory_order_release);
}

/* This function and the next are called only while the rank is in no call that uses the value. A
 * reader that finds the rank in the same call before and after has read that call's value. */
static inline void dt_hostshm_note_signature(struct dt_hostshm_rank *rank, uint64_t signature)
{
    atomic_store_explicit(&rank->signature, signature, memory_order_release);
}

/* The limit of the collective call. Most calls have the previous one's, which costs no store. */
static inline void dt_hostshm_note_limit(struct dt_hostshm_rank *rank, uint32_t ms)
{
    if (atomic_load_explicit(&rank->limits_ms[0], memory_order_relaxed) != ms)
        atomic_store_explicit(&rank->limits_ms[0], ms, memory_order_release);
}

/* The lower of two limits. 0 stands for dtrun's own limit, which a rank does not know, and counts
 * as the highest. */
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

/* Notes in a free place that a thread is in this call, with its limit and how long it has already
 * waited. Only the thread that has the place may call this and the next function. */
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

/* Whether only the ranks' threads that save in the background use this communicator
 * (checkpoint/background.h). The program's have their maker above bit 32, and DT_WORLD is 0. */
static inline bool dt_hostshm_is_of_saves(uint64_t comm)
{
    return comm != 0 && comm >> 32 == 0;
}

/* "all-reduce", for example; also for calls between two ranks. */
const char *dt_hostshm_call_name(uint64_t call);

/* The text about why the host was stopped, or "". */
const char *dt_hostshm_why(const struct dt_hostshm *h);
/* A copy of it, which is always terminated and which a faulty rank cannot change. Returns text. */
const char *dt_hostshm_copy_why(const struct dt_hostshm *h, char text[DT_HOSTSHM_WHY]);
/* 0 if nothing has stopped the host, else the code. *culprit (may be NULL) is the rank that caused
 * it. */
static inline int dt_hostshm_stopped(const struct dt_hostshm *h, uint32_t *culprit)
{
    uint64_t stop = atomic_load_explicit(&h->head->stop, memory_order_acquire);

    if (culprit)
        *culprit = (uint32_t)(stop >> 32);
    return (int)-(int64_t)(uint32_t)stop;
}

/* Sleeps until another process rings the rank's doorbell, or limit (NULL: none) has passed. Returns
 * at once if the doorbell is not equal to seen, and early at a signal. */
void dt_hostshm_sleep(struct dt_hostshm_rank *rank, uint32_t seen, const struct timespec *limit);
void dt_hostshm_ring(struct dt_hostshm_rank *rank);

#endif
