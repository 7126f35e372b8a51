#include "runtime/host/trial.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/dtype.h"
#include "runtime/host/clock.h"
#include "runtime/host/meet.h"
#include "runtime/host/reduceopen.h"
#include "runtime/host/rounds.h"

enum {
    FEW_BYTES = 16 * 1024,
    MOST_BYTES = 512 * 1024,
    CALLS = 4,       /* of one way, one after another */
    RUNS = 2,        /* of each way, by turns */
    SETTLING = 2,    /* runs before these */
    MOST_RANKS = 16, /* with more, slices are so small that system calls take longer than copies,
                        and there is a page for every pair's target */
};
enum way { FEW, SLICES, DIRECT };

static const size_t NEVER = SIZE_MAX;

/* Sizes at which a way is tried against slices that are staged, and those from which on, or up to
 * which, the answer holds. In this order. */
static const struct {
    size_t bytes;
    enum way way;
    size_t limit;
} questions[] = {
    { FEW_BYTES, FEW, FEW_BYTES },
    { 64 * 1024, DIRECT, 32 * 1024 },
    { MOST_BYTES, DIRECT, 256 * 1024 },
};
enum { QUESTIONS = sizeof questions / sizeof *questions };

/* The least that calls have taken. */
struct times {
    uint64_t ns[QUESTIONS][2]; /* the way, and slices */
};

static_assert(sizeof(struct times) <= DT_HOSTSHM_INLINE, "travels with the signature");

bool dt_trial_is_due(const struct dt_shm *s, size_t bytes)
{
    return s->direct_fold == 0 && s->n > 1 && s->n <= MOST_RANKS && bytes > s->small;
}

/* Everybody gets what each has put into mine, in all. */
static dt_result_t exchange(struct dt_shm *s, const struct dt_call *call, const struct times *mine,
                            struct times *sum)
{
    dt_result_t r = dt_meet_and_tell(s, call, mine, sizeof *mine);

    *sum = (struct times){ 0 };
    for (uint32_t i = 0; r == DT_OK && i < s->n; i++) {
        struct times theirs;

        memcpy(&theirs, dt_meet_told(s, i, mine), sizeof theirs);
        for (int k = 0; k < QUESTIONS * 2; k++)
            sum->ns[k / 2][k % 2] += theirs.ns[k / 2][k % 2];
    }
    return r;
}

static dt_result_t measure(struct dt_shm *s, struct dt_chunk whole, enum way way, uint64_t *least,
                           dt_result_t (*reduce)(struct dt_shm *s, struct dt_chunk *whole))
{
    dt_result_t r = DT_OK;

    s->small = way == FEW ? whole.bytes : 0;
    s->direct_fold = way == DIRECT ? 1 : NEVER;
    for (int i = 0; i < CALLS && r == DT_OK; i++) {
        uint64_t start = dt_clock_ns(), took;
        struct dt_chunk again = whole;

        r = reduce(s, &again);
        took = dt_clock_ns() - start;
        /* The first bears what others have still to do of the other way's last. */
        if (i > 0 && (*least == 0 || took < *least))
            *least = took;
    }
    return r;
}

/* Where the calls of the trial have their data. own: a copy of the call, for these. */
static struct dt_chunk chunk_in(uint8_t *room, size_t bytes, struct dt_call *own)
{
    own->count = bytes / dt_dtype_size((dt_dtype_t)own->dtype);
    return (struct dt_chunk){ .in = room,
                              .out = room + MOST_BYTES,
                              .bytes = bytes,
                              .divisor = 1,
                              .root = DT_CHUNK_EVERYBODY,
                              .call = own };
}

/* Until copies to the staging are made as they will be from now on (stream.h). */
static dt_result_t settle(struct dt_shm *s, struct dt_call own, uint8_t *room,
                          dt_result_t (*reduce)(struct dt_shm *s, struct dt_chunk *whole))
{
    const struct dt_chunk whole = chunk_in(room, MOST_BYTES, &own);
    dt_result_t r = DT_OK;

    for (int i = 0; i < SETTLING && r == DT_OK; i++)
        r = measure(s, whole, SLICES, &(uint64_t){ 0 }, reduce);
    return r;
}

/* All have found before that they make the same call. */
static dt_result_t try_all(struct dt_shm *s, const struct dt_call *call, uint8_t *room,
                           struct times *times,
                           dt_result_t (*reduce)(struct dt_shm *s, struct dt_chunk *whole))
{
    dt_result_t r;

    memset(room, 0, 2 * (size_t)MOST_BYTES);
    r = settle(s, *call, room, reduce);
    for (int i = 0; i < QUESTIONS * RUNS * 2 && r == DT_OK; i++) {
        int q = i / (RUNS * 2), slices = i % 2;
        struct dt_call own = *call;
        const struct dt_chunk whole = chunk_in(room, questions[q].bytes, &own);

        if (questions[q].way == FEW && s->crowded)
            continue;
        r = measure(s, whole, slices ? SLICES : questions[q].way, &times->ns[q][slices], reduce);
    }
    return r;
}

/* What is not a twentieth faster may be noise, and what was not tried is no faster. What somebody
 * has set himself stays. */
static void choose(struct dt_shm *s, const struct times *sum)
{
    s->small = s->crowded ? s->tuning->shm_small_crowded : s->tuning->shm_small;
    s->direct_fold = NEVER;
    for (int q = QUESTIONS - 1; q >= 0; q--) {
        if (sum->ns[q][0] * 20 >= sum->ns[q][1] * 19)
            continue;
        if (questions[q].way == DIRECT)
            s->direct_fold = questions[q].limit;
        else if (s->small == dt_tuning_builtin.shm_small)
            s->small = questions[q].limit;
    }
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
        r = try_all(s, call, room, &mine, reduce);
    free(room);
    s->way = way;
    if (r == DT_OK && !some_cannot)
        r = exchange(s, call, &mine, &sum);
    if (some_cannot)
        s->direct_fold = NEVER;
    else if (r == DT_OK)
        choose(s, &sum);
    return r;
}
