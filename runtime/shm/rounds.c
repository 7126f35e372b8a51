#include "runtime/shm/rounds.h"

#include <linux/membarrier.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/copy.h"
#include "runtime/base/min.h"

enum {
    /* The flight recorder counts a call as long after this many polls, or this many yields: ranks
     * on one CPU yield a few times in every call. Both come before the first sleep. */
    LONG_POLLS = 1000,
    LONG_YIELDS = 4,
    POLLS_FOR_YIELD = 64,    /* polls that take about as long as two context switches */
    FIXED_MAX = 4 * 1024,    /* the most bytes in a fixed place, unless ranks share CPUs */
    LINES_MAX = 2 * 1024,    /* bytes of cache lines that can be requested at once */
    COPY_CHUNK = 256 * 1024, /* bytes copied between two checks for a stop */
    SPINS = 2000,            /* polls before yielding: some tens of microseconds */
    YIELDS = 200,            /* yields after that, before a sleep */
    YIELDS_PACKED = 50,      /* the same if each CPU has several ranks */
    OUTLAST_YIELDS = 200,    /* polls of dt_shm_outlast, each with a yield */
    OUTLAST_RESTS = 1000,    /* later polls, each with a rest of a millisecond */
};

static int membarrier(int command)
{
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

/* ---- settings ---- */

/* Up to this size, each rank reduces all of a message: the call then needs one synchronisation
 * instead of two, which saves more if ranks share CPUs. */
static uint64_t small_limit(const struct dt_shm *s)
{
    return s->tuning->shm_small * (s->crowded ? DT_TUNING_CROWDED : 1);
}

void dt_shm_start(struct dt_shm *s, const uint64_t cpus[DT_HOSTSHM_CPUS / 64])
{
    memcpy(s->map.ranks[s->me].cpus, cpus, sizeof s->map.ranks[s->me].cpus);
    if (!s->tuning)
        s->tuning = &dt_tuning_builtin;
    s->crowded = true;
    s->packed = false;
    s->cpu = 0;
    s->spins = 0;
    s->yields = YIELDS_PACKED;
    s->small = small_limit(s);
    s->round = 0;
    s->fixed_max = FIXED_MAX;
    s->next = 0;
    s->settled = 0;
    if (membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) != 0)
        atomic_store(&s->map.head->fences, 1);
}

/* Each rank may be bound to a CPU of its own, so the union of their CPUs counts. */
static uint32_t count_cpus(const struct dt_shm *s)
{
    uint32_t cpus = 0;

    for (int word = 0; word < DT_HOSTSHM_CPUS / 64; word++) {
        uint64_t some = 0;

        for (uint32_t i = 0; i < s->n; i++)
            some |= s->map.ranks[i].cpus[word];
        cpus += (uint32_t)__builtin_popcountll(some);
    }
    return cpus;
}

/* The size of each of the two places for small messages. It does not depend on s->fixed_max, which
 * dt_shm_choose_wait may change while data are still read from a place. */
static size_t place_bytes(const struct dt_shm *s)
{
    size_t most = dt_round_most(s) / 8;

    return most > FIXED_MAX ? most : FIXED_MAX;
}

void dt_shm_choose_wait(struct dt_shm *s)
{
    uint32_t cpus = count_cpus(s);

    s->crowded = s->n > cpus;
    s->packed = s->n >= 2 * cpus;
    s->spins = s->crowded ? 0 : SPINS;
    s->yields = s->packed ? YIELDS_PACKED : YIELDS;
    s->fixed_max = s->crowded ? place_bytes(s) : FIXED_MAX;
    s->small = small_limit(s);
}

/* ---- falling asleep ----
 *
 * A rank that publishes stores its progress, then checks whether a rank sleeps. A rank that falls
 * asleep announces that, then checks the progress once more. One of them sees the other if each
 * store precedes the check that follows it, which requires a full fence on both sides. Ranks
 * publish in every call and fall asleep rarely. So a rank that falls asleep makes all other ranks
 * execute a fence (membarrier(2)), and publishing needs none. If some rank cannot do that, all use
 * fences. */

/* Before all ranks have met, it is not known whether all can do without fences. */
static bool needs_fences(const struct dt_shm *s)
{
    return s->round < 2 || atomic_load_explicit(&s->map.head->fences, memory_order_relaxed);
}

/* Returns how long this rank may sleep. NULL: until it is woken. If membarrier is not permitted any
 * more (seccomp), all ranks use fences from now on. But a rank that has just published may not know
 * it yet, and then wakes nobody. */
static const struct timespec *fence_all_ranks(const struct dt_shm *s)
{
    static const struct timespec soon = { .tv_nsec = 10 * 1000 * 1000 };

    atomic_thread_fence(memory_order_seq_cst);
    if (membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0)
        return NULL;
    atomic_store(&s->map.head->fences, 1);
    return &soon;
}

/* Orders a published store before the check for sleepers. */
static void order_stores(const struct dt_shm *s)
{
    if (needs_fences(s))
        atomic_thread_fence(memory_order_seq_cst);
    else
        atomic_signal_fence(memory_order_seq_cst);
}

static void wake_sleepers(const struct dt_shm *s)
{
    order_stores(s);
    if (atomic_load_explicit(&s->map.head->sleepers, memory_order_relaxed) == 0)
        return;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t awaited = atomic_load_explicit(&s->map.ranks[i].waits_for, memory_order_relaxed);

        if (awaited == s->me + 1)
            dt_hostshm_ring(&s->map.ranks[i]);
    }
}

void dt_shm_wake_one(const struct dt_shm *s, uint32_t peer)
{
    struct dt_hostshm_rank *rank = &s->map.ranks[peer];

    order_stores(s);
    if (atomic_load_explicit(&rank->pipe_sleepers, memory_order_relaxed))
        dt_hostshm_ring(rank);
}

/* ---- progress ---- */

/* A peer that is one round ahead may not have announced that it left this round, but its other post
 * says that it is in the next. For DT_IN the other post is not read, because the peer is about to
 * write it (prefetch_next_lines). */
static bool has_reached(const struct dt_shm *s, uint32_t peer, uint64_t target)
{
    const struct dt_hostshm_post *posts = s->map.ranks[peer].posts;
    unsigned parity = target >> 2 & 1;

    if (atomic_load_explicit(&posts[parity].progress, memory_order_acquire) >= target)
        return true;
    return (target & 3) != DT_IN &&
           atomic_load_explicit(&posts[!parity].progress, memory_order_acquire) >= target;
}

/* Begins to fetch a cache line for writing. */
static void prefetch_line(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw (%0)" : : "r"(line)); /* gcc generates it only with -mprfchw */
#else
    __builtin_prefetch(line, 1);
#endif
}

/* Moves written lines to a cache closer to the other CPUs, if the processor can. Others ignore the
 * hint. */
static void demote_line(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("cldemote (%0)" : : "r"(line) : "memory");
#else
    (void)line;
#endif
}

void dt_round_demote(const struct dt_shm *s)
{
    const uint8_t *mine = dt_round_staging(s, s->me);

    for (size_t at = 0; !s->crowded && at < s->staged && at < LINES_MAX; at += DT_HOSTSHM_LINE)
        demote_line(mine + at);
}

/* Lines that this rank wrote in the previous round, and that all ranks have read, are written again
 * in the next round. Fetching them for writing now, in the background, avoids a wait then. All
 * ranks are in this round, so none reads those lines any more. */
static void prefetch_next_lines(const struct dt_shm *s)
{
    const uint8_t *next = dt_hostshm_staging(&s->map, s->me) + (~s->round & 1) * place_bytes(s);

    if (s->crowded)
        return;
    prefetch_line(&s->map.ranks[s->me].posts[~s->round & 1]);
    for (size_t at = 0; at < s->staged && at < LINES_MAX; at += DT_HOSTSHM_LINE)
        prefetch_line(next + at);
}

static void sleep_for_peer(struct dt_shm *s, uint32_t peer, uint64_t target)
{
    struct dt_hostshm_rank *me = &s->map.ranks[s->me];
    uint32_t seen = atomic_load(&me->doorbell);
    const struct timespec *limit;

    atomic_store(&me->waits_for, peer + 1);
    atomic_fetch_add(&s->map.head->sleepers, 1);
    limit = fence_all_ranks(s);
    if (!has_reached(s, peer, target) && dt_hostshm_stopped(&s->map, NULL) == 0)
        dt_hostshm_sleep(me, seen, limit);
    atomic_fetch_sub(&s->map.head->sleepers, 1);
    atomic_store_explicit(&me->waits_for, 0, memory_order_relaxed);
}

/* Several threads of a rank may call it, each at a pipe of its own, while another sleeps in a
 * round. */
static void sleep_at_pipe(struct dt_shm *s, bool (*done)(const void *), const void *arg)
{
    struct dt_hostshm_rank *me = &s->map.ranks[s->me];
    uint32_t seen = atomic_load(&me->doorbell);
    const struct timespec *limit;

    atomic_fetch_add(&me->pipe_sleepers, 1);
    limit = fence_all_ranks(s);
    if (!done(arg) && dt_hostshm_stopped(&s->map, NULL) == 0)
        dt_hostshm_sleep(me, seen, limit);
    atomic_fetch_sub(&me->pipe_sleepers, 1);
}

static void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* "yield" does nothing on most processors */
#endif
}

/* Called between two polls. False: it is time to sleep. */
static bool pause_before_sleep(const struct dt_shm *s, uint64_t tries)
{
    dt_ring_show(s->ring);
    if (tries >= s->spins + dt_min(s->yields, LONG_YIELDS) || tries >= LONG_POLLS)
        dt_ring_mark_long(s->ring);
    if (tries < s->spins)
        cpu_relax();
    else if (tries < s->spins + s->yields)
        sched_yield();
    else
        return false;
    return true;
}

bool dt_shm_copy(const struct dt_shm *s, uint8_t *to, const uint8_t *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += COPY_CHUNK) {
        if (dt_hostshm_stopped(&s->map, NULL))
            return false;
        dt_copy(to + at, from + at, dt_min(bytes - at, COPY_CHUNK));
    }
    return true;
}

dt_result_t dt_shm_check(const struct dt_shm *s)
{
    uint32_t culprit;
    int code;

    atomic_thread_fence(memory_order_acquire);
    code = dt_hostshm_stopped(&s->map, &culprit);
    return code ? dt_coll_error(s->coll_error, (dt_result_t)code, culprit) : DT_OK;
}

void dt_shm_fence(const struct dt_shm *s)
{
    (void)fence_all_ranks(s);
}

bool dt_shm_is_dead(const struct dt_shm *s, uint32_t peer)
{
    uint32_t culprit;

    return dt_hostshm_stopped(&s->map, &culprit) == DT_ERR_PEER && culprit == s->ranks[peer];
}

/* Counts polls instead of time: time also passes while a job is paused, when no rank finishes. */
void dt_shm_outlast(bool (*ended)(void *arg), void *arg)
{
    for (unsigned polls = 0; polls < OUTLAST_YIELDS + OUTLAST_RESTS && !ended(arg); polls++) {
        if (polls < OUTLAST_YIELDS)
            sched_yield();
        else
            poll(NULL, 0, 1);
    }
}

static void publish_cpu(struct dt_shm *s)
{
    uint32_t cpu = (uint32_t)sched_getcpu() + 1;

    if (s->cpu == cpu)
        return;
    s->cpu = cpu;
    atomic_store_explicit(&s->map.ranks[s->me].cpu, cpu, memory_order_relaxed);
}

static bool rank_on_this_cpu_is_behind(const struct dt_shm *s, uint64_t target)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (i != s->me &&
            atomic_load_explicit(&s->map.ranks[i].cpu, memory_order_relaxed) == s->cpu &&
            !has_reached(s, i, target))
            return true;
    }
    return false;
}

/* If ranks share every CPU, a yield helps if a rank that is behind can then run on this CPU. If all
 * ranks on this CPU have arrived, it only costs two context switches, and the ranks on other CPUs
 * are about to arrive. Returns whether peer has arrived. */
static bool poll_instead_of_yield(struct dt_shm *s, uint32_t peer, uint64_t target)
{
    if (!s->packed)
        return false;
    publish_cpu(s);
    if (rank_on_this_cpu_is_behind(s, target))
        return false;
    for (int i = 0; i < POLLS_FOR_YIELD; i++) {
        if (has_reached(s, peer, target))
            return true;
        cpu_relax();
    }
    return false;
}

static dt_result_t await_peer(struct dt_shm *s, uint32_t peer, uint64_t target)
{
    for (uint64_t tries = 0; !has_reached(s, peer, target); tries++) {
        dt_result_t r = dt_shm_check(s);

        if (r != DT_OK)
            return r;
        if (tries == 0 && poll_instead_of_yield(s, peer, target))
            break;
        if (!pause_before_sleep(s, tries))
            sleep_for_peer(s, peer, target);
    }
    return DT_OK;
}

dt_result_t dt_shm_wait(struct dt_shm *s, bool (*done)(const void *arg), const void *arg)
{
    for (uint64_t tries = 0; !done(arg); tries++) {
        dt_result_t r = dt_shm_check(s);

        if (r != DT_OK)
            return r;
        if (!pause_before_sleep(s, tries))
            sleep_at_pipe(s, done, arg);
    }
    return DT_OK;
}

static dt_result_t await_all_peers(struct dt_shm *s, uint64_t target)
{
    for (uint32_t i = 1; i < s->n && s->settled < target; i++) {
        uint32_t peer = s->me + i < s->n ? s->me + i : s->me + i - s->n;
        dt_result_t r = await_peer(s, peer, target);

        if (r != DT_OK)
            return r;
    }
    if (s->settled < target)
        s->settled = target;
    return DT_OK;
}

static uint64_t progress_in(uint64_t round, enum dt_phase phase)
{
    return 4 * round + phase;
}

static uint64_t progress_of(const struct dt_shm *s, enum dt_phase phase)
{
    return progress_in(s->round, phase);
}

/* Allocates the pages now, so that no page fault happens while other ranks wait. A kernel that does
 * not know this advice allocates them on first use. */
static void populate_pages(const struct dt_shm *s)
{
#ifdef MADV_POPULATE_WRITE
    madvise(dt_hostshm_staging(&s->map, s->me), s->map.room, MADV_POPULATE_WRITE);
#else
    (void)s;
#endif
}

static size_t reserve_in_ring(struct dt_shm *s, size_t bytes)
{
    size_t at;

    if (s->next == 0 && s->n > 1) /* a rank that is alone on its host stages nothing */
        populate_pages(s);
    if (s->next == 0 || bytes > s->map.room - s->next)
        s->next = 2 * place_bytes(s);
    at = s->next;
    s->next += (bytes + DT_HOSTSHM_APART - 1) / DT_HOSTSHM_APART * DT_HOSTSHM_APART;
    return at;
}

void dt_round_join(struct dt_shm *s, size_t bytes)
{
    s->round++;
    s->staged = bytes <= s->fixed_max ? bytes : 0;
    s->at = bytes <= s->fixed_max ? (s->round & 1) * place_bytes(s) : reserve_in_ring(s, bytes);
}

dt_result_t dt_round_begin(struct dt_shm *s, size_t bytes)
{
    dt_round_join(s, bytes);
    return s->round < 2 ? DT_OK : await_all_peers(s, progress_in(s->round - 2, DT_LEFT));
}

void dt_round_publish(struct dt_shm *s, enum dt_phase phase)
{
    struct dt_hostshm_post *mine = dt_round_post(s, s->me);

    atomic_store_explicit(&mine->progress, progress_of(s, phase), memory_order_release);
    if (!s->crowded)
        demote_line(mine);
    wake_sleepers(s);
}

bool dt_round_has_published(const struct dt_shm *s, enum dt_phase phase)
{
    return has_reached(s, s->me, progress_of(s, phase));
}

bool dt_round_some_left(const struct dt_shm *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (atomic_load_explicit(&dt_round_post(s, i)->progress, memory_order_acquire) ==
            progress_of(s, DT_LEFT))
            return true;
    }
    return false;
}

struct outlast_goal {
    const struct dt_shm *s;
    uint64_t target;
};

static bool all_alive_reached(void *arg)
{
    const struct outlast_goal *g = arg;

    for (uint32_t i = 0; i < g->s->n; i++) {
        if (i != g->s->me && !has_reached(g->s, i, g->target) && !dt_shm_is_dead(g->s, i))
            return false;
    }
    return true;
}

void dt_round_outlast(const struct dt_shm *s, enum dt_phase phase)
{
    struct outlast_goal goal = { s, progress_of(s, phase) };

    dt_shm_outlast(all_alive_reached, &goal);
}

dt_result_t dt_round_await(struct dt_shm *s, uint32_t peer, enum dt_phase phase)
{
    return await_peer(s, peer, progress_of(s, phase));
}

dt_result_t dt_round_await_all(struct dt_shm *s, enum dt_phase phase)
{
    dt_result_t r = await_all_peers(s, progress_of(s, phase));

    prefetch_next_lines(s);
    return r;
}

static bool all_reached(const struct dt_shm *s, uint64_t target)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (i != s->me && !has_reached(s, i, target))
            return false;
    }
    return true;
}

bool dt_round_is_free(const struct dt_shm *s)
{
    uint64_t target = progress_in(s->round - 1, DT_LEFT);

    return s->round < 1 || s->settled >= target || all_reached(s, target);
}

bool dt_round_all_published(const struct dt_shm *s, enum dt_phase phase)
{
    return all_reached(s, progress_of(s, phase));
}
