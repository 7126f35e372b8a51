#include "runtime/host/trial.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/host/clock.h"
#include "runtime/host/least.h"
#include "runtime/host/meet.h"
#include "runtime/host/reduceopen.h"
#include "runtime/host/rounds.h"

enum {
    SIZES = 2,
    MOST_BYTES = 512 * 1024,
    TIMES = 8,
    MOST_RANKS = 16, /* with more, slices are so small that system calls take longer than copies,
                        and there is a page for every pair's target */
};
enum way { STAGED, DIRECT, WAYS };

static const size_t NEVER = SIZE_MAX;

/* Bytes that are tried, and those from which on the answer holds. */
static const struct {
    size_t bytes;
    size_t from;
} sizes[SIZES] = { { 64 * 1024, 32 * 1024 }, { MOST_BYTES, 256 * 1024 } };

/* The least that calls have taken. */
struct times {
    uint64_t ns[SIZES][WAYS];
};

static_assert(sizeof(struct times) <= DT_HOSTSHM_INLINE, "travels with the signature");

bool dt_trial_is_due(const struct dt_shm *s, size_t bytes)
{
    return s->direct_fold == 0 && s->n > 1 && s->n <= MOST_RANKS && bytes >= sizes[0].from;
}

/* Everybody gets what each has put into mine, in all. */
static dt_result_t exchange(struct dt_shm *s, const struct dt_call *call, const struct times *mine,
                            struct times *sum)
{
    dt_result_t r = dt_round_begin(s, 0);

    if (r != DT_OK)
        return r;
    dt_meet_post(s, call, mine, sizeof *mine);
    r = dt_meet(s, true);
    *sum = (struct times){ 0 };
    for (uint32_t i = 0; r == DT_OK && i < s->n; i++) {
        struct times theirs;

        memcpy(&theirs, dt_round_post(s, i)->data, sizeof theirs);
        for (int k = 0; k < SIZES * WAYS; k++)
            sum->ns[k / WAYS][k % WAYS] += theirs.ns[k / WAYS][k % WAYS];
    }
    return r;
}

static dt_result_t measure(struct dt_shm *s, struct dt_chunk whole, enum way way, uint64_t *least,
                           dt_result_t (*reduce)(struct dt_shm *s, struct dt_chunk *whole))
{
    uint64_t start = dt_clock_ns(), took;
    dt_result_t r;

    s->direct_fold = way == DIRECT ? 1 : NEVER;
    r = reduce(s, &whole);
    took = dt_clock_ns() - start;
    *least = *least && *least < took ? *least : took;
    return r;
}

static dt_result_t try_both(struct dt_shm *s, const struct dt_call *call, uint8_t *room,
                            struct times *times,
                            dt_result_t (*reduce)(struct dt_shm *s, struct dt_chunk *whole))
{
    dt_result_t r = DT_OK;

    memset(room, 0, 2 * (size_t)MOST_BYTES);
    for (int i = 0; i < SIZES * TIMES * WAYS && r == DT_OK; i++) {
        int size = i / (TIMES * WAYS);
        enum way way = (enum way)(i % WAYS);
        const struct dt_chunk whole = { .in = room,
                                        .out = room + MOST_BYTES,
                                        .bytes = sizes[size].bytes,
                                        .divisor = 1,
                                        .root = DT_CHUNK_EVERYBODY,
                                        .call = call };

        r = measure(s, whole, way, &times->ns[size][way], reduce);
    }
    return r;
}

/* What is not a twentieth faster may be noise, and costs others who use these processors more. */
static size_t choose(const struct times *sum)
{
    for (int i = 0; i < SIZES; i++) {
        if (sum->ns[i][DIRECT] * 20 < sum->ns[i][STAGED] * 19)
            return sizes[i].from;
    }
    return NEVER;
}

/* All try, or none does. */
dt_result_t dt_trial_make(struct dt_shm *s, const struct dt_call *call,
                          dt_result_t (*reduce)(struct dt_shm *s, struct dt_chunk *whole))
{
    uint8_t *room = dt_reduceopen_reaches_all(s) ? malloc(2 * (size_t)MOST_BYTES) : NULL;
    struct times mine = { .ns = { { room == NULL } } }, sum = { 0 };
    const char *way = s->way;
    dt_result_t r = exchange(s, call, &mine, &sum);
    bool some_cannot = sum.ns[0][0] > 0;

    mine = (struct times){ 0 };
    if (r == DT_OK && !some_cannot)
        r = try_both(s, call, room, &mine, reduce);
    free(room);
    s->way = way;
    if (r == DT_OK && !some_cannot)
        r = exchange(s, call, &mine, &sum);
    if (r == DT_OK)
        s->direct_fold = some_cannot ? NEVER : choose(&sum);
    return r;
}
