/* The collectives that give every rank of a host a block of its own, between threads that share one
 * mapping, against the expected results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/kernels/reduce.h"
#include "runtime/shm/alltoall.h"

enum { MOST_RANKS = 8, CANARY = 64, BIG = 70000 };

/* The number of elements that rank "from" sends to rank "to". */
static size_t none(uint32_t from, uint32_t to)
{
    (void)from;
    (void)to;
    return 0;
}

static size_t one(uint32_t from, uint32_t to)
{
    (void)from;
    (void)to;
    return 1;
}

static size_t alike(uint32_t from, uint32_t to)
{
    (void)from;
    (void)to;
    return 1027;
}

static size_t big(uint32_t from, uint32_t to)
{
    (void)from;
    (void)to;
    return BIG;
}

static size_t rising(uint32_t from, uint32_t to)
{
    return from * 3 + to * 5;
}

static size_t some_none(uint32_t from, uint32_t to)
{
    return (from + to) % 3 == 0 ? 400 : 0;
}

static size_t one_big(uint32_t from, uint32_t to)
{
    return from == 1 && to == 0 ? 3 * BIG : 1;
}

static size_t to_itself(uint32_t from, uint32_t to)
{
    return from == to ? 50000 : 0;
}

static size_t at_random(uint32_t from, uint32_t to)
{
    return (from * 31 + to) * 2654435761U % 40000;
}

static const struct {
    const char *name;
    size_t (*count)(uint32_t from, uint32_t to);
    bool equal;
} placements[] = {
    { "none", none, true },
    { "one", one, true },
    { "alike", alike, true },
    { "big", big, true },
    { "rising", rising, false },
    { "some none", some_none, false },
    { "one big", one_big, false },
    { "to itself", to_itself, false },
    { "at random", at_random, false },
};

enum { PLACEMENTS = sizeof placements / sizeof *placements };

static struct dt_hostshm map;
static const uint32_t ranks[MOST_RANKS] = { 10, 11, 12, 13, 14, 15, 16, 17 }; /* in the job */

struct seat {
    pthread_t thread;
    uint32_t n;
    uint32_t me;
    struct dt_coll_error coll_error;
    const char *bad; /* what went wrong */
    char what[100];
};

/* A rank's state in one call. Buffers begin at odd addresses. */
struct turn {
    struct dt_shm *s;
    struct dt_call call;
    uint8_t *in;
    uint8_t *out;
    size_t in_bytes;
    size_t out_bytes;
    size_t counts[MOST_RANKS];
    size_t others[MOST_RANKS];
};

/* The data of every block are in here, from different places on. */
enum { PATTERN = 1 << 16 };

static uint16_t pattern[PATTERN + 3 * BIG];

static int make_pattern(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pattern / sizeof *pattern; i++)
        pattern[i] = (uint16_t)(i * 40503U >> 3);
    return 0;
}

static const uint16_t *block(const struct turn *t, uint32_t from, uint32_t to)
{
    return pattern + (from * 8 + to + t->call.number * 64) % PATTERN;
}

/* Allocates a misaligned buffer with canaries after it. */
static uint8_t *allocate(size_t bytes, int fill)
{
    uint8_t *p = malloc(bytes + 1 + CANARY);

    assert_non_null(p);
    memset(p, fill, bytes + 1 + CANARY);
    return p + 1;
}

static void allocate_both(struct turn *t, size_t in, size_t out)
{
    t->in_bytes = in * 2;
    t->out_bytes = out * 2;
    t->in = allocate(t->in_bytes, 0xa5);
    t->out = allocate(t->out_bytes, 0x5a);
}

static bool canaries_live(const struct turn *t)
{
    for (size_t i = 0; i < CANARY; i++) {
        if (t->in[t->in_bytes + i] != 0xa5 || t->out[t->out_bytes + i] != 0x5a)
            return false;
    }
    return t->in[-1] == 0xa5 && t->out[-1] == 0x5a;
}

static void done(struct turn *t)
{
    free(t->in - 1);
    free(t->out - 1);
}

static void fill(const struct turn *t, uint8_t *at, uint32_t from, uint32_t to, size_t count)
{
    memcpy(at, block(t, from, to), 2 * count);
}

static bool is(const struct turn *t, const uint8_t *at, uint32_t from, uint32_t to, size_t count)
{
    return memcmp(at, block(t, from, to), 2 * count) == 0;
}

static size_t sum(const size_t *counts, uint32_t n)
{
    size_t all = 0;

    for (uint32_t i = 0; i < n; i++)
        all += counts[i];
    return all;
}

/* ---- the collectives ---- */

typedef size_t (*counter)(uint32_t from, uint32_t to);

static bool all_gathers(struct turn *t, counter count, bool in_place)
{
    uint32_t n = t->s->n, me = t->s->me;
    const struct dt_blocks blocks = { .counts = t->counts };
    bool good;

    for (uint32_t i = 0; i < n; i++)
        t->counts[i] = count(i, 0);
    allocate_both(t, t->counts[me], sum(t->counts, n));
    uint8_t *in = in_place ? t->out + 2 * sum(t->counts, me) : t->in;

    fill(t, in, me, 0, t->counts[me]);
    t->call.kind = DT_CALL_ALL_GATHERV;
    t->call.count = dt_counts_hash(t->counts, n);
    good = dt_shm_all_gather(t->s, &t->call, in, t->out, &blocks) == DT_OK;
    for (uint32_t i = 0; good && i < n; i++)
        good = is(t, t->out + 2 * sum(t->counts, i), i, 0, t->counts[i]);
    good = good && is(t, in, me, 0, t->counts[me]) && canaries_live(t);
    done(t);
    return good;
}

/* In place only if both directions have the same counts. */
static bool all_to_alls(struct turn *t, counter count, bool in_place)
{
    uint32_t n = t->s->n, me = t->s->me;
    const struct dt_blocks given = { .counts = t->counts };
    const struct dt_blocks taken = { .counts = in_place ? t->counts : t->others };
    bool good;

    for (uint32_t i = 0; i < n; i++) {
        t->counts[i] = in_place ? count(me < i ? me : i, me < i ? i : me) : count(me, i);
        t->others[i] = in_place ? t->counts[i] : count(i, me);
    }
    allocate_both(t, sum(t->counts, n), sum(t->others, n));
    uint8_t *in = in_place ? t->out : t->in;

    for (uint32_t i = 0; i < n; i++)
        fill(t, in + 2 * sum(t->counts, i), me, i, t->counts[i]);
    t->call.kind = DT_CALL_ALL_TO_ALLV;
    good = dt_shm_all_to_all(t->s, &t->call, in, &given, t->out, &taken, NULL) == DT_OK;
    for (uint32_t i = 0; good && i < n; i++)
        good = is(t, t->out + 2 * sum(t->others, i), i, me, t->others[i]) &&
               (in_place || is(t, in + 2 * sum(t->counts, i), me, i, t->counts[i]));
    good = good && canaries_live(t);
    done(t);
    return good;
}

static bool gathers(struct turn *t, counter count, bool in_place, uint32_t root)
{
    uint32_t n = t->s->n, me = t->s->me;
    const struct dt_blocks blocks = { .counts = t->counts };
    size_t mine = count(me, root);
    bool good;

    for (uint32_t i = 0; i < n; i++)
        t->counts[i] = count(i, root);
    allocate_both(t, mine, me == root ? sum(t->counts, n) : 0);
    uint8_t *in = in_place && me == root ? t->out + 2 * sum(t->counts, me) : t->in;

    fill(t, in, me, root, mine);
    t->call.kind = DT_CALL_GATHERV;
    t->call.root = (int32_t)root;
    good = dt_shm_rooted(t->s, &t->call,
                         &(struct dt_rooted){ true, root, me == root ? t->out : NULL,
                                              me == root ? &blocks : NULL, in, mine },
                         NULL) == DT_OK;
    for (uint32_t i = 0; good && me == root && i < n; i++)
        good = is(t, t->out + 2 * sum(t->counts, i), i, root, t->counts[i]);
    good = good && is(t, in, me, root, mine) && canaries_live(t);
    done(t);
    return good;
}

static bool scatters(struct turn *t, counter count, bool in_place, uint32_t root)
{
    uint32_t n = t->s->n, me = t->s->me;
    const struct dt_blocks blocks = { .counts = t->counts };
    size_t mine = count(root, me);
    bool good;

    for (uint32_t i = 0; i < n; i++)
        t->counts[i] = count(root, i);
    allocate_both(t, me == root ? sum(t->counts, n) : 0, mine);
    uint8_t *out = in_place && me == root ? t->in + 2 * sum(t->counts, me) : t->out;

    for (uint32_t i = 0; me == root && i < n; i++)
        fill(t, t->in + 2 * sum(t->counts, i), root, i, t->counts[i]);
    t->call.kind = DT_CALL_SCATTERV;
    t->call.root = (int32_t)root;
    good = dt_shm_rooted(t->s, &t->call,
                         &(struct dt_rooted){ false, root, me == root ? t->in : NULL,
                                              me == root ? &blocks : NULL, out, mine },
                         NULL) == DT_OK &&
           is(t, out, root, me, mine) && canaries_live(t);
    for (uint32_t i = 0; good && me == root && i < n; i++)
        good = is(t, t->in + 2 * sum(t->counts, i), root, i, t->counts[i]);
    done(t);
    return good;
}

static bool folds_are_right(const struct turn *t, const uint8_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t want = 0;

        for (uint32_t from = 0; from < t->s->n; from++)
            want = (uint16_t)(want + block(t, from, t->s->me)[i]);
        if (memcmp(out + 2 * i, &want, 2) != 0)
            return false;
    }
    return true;
}

enum where { APART, OWN_BLOCK, BEGINNING };

static bool reduce_scatters(struct turn *t, counter count, enum where where)
{
    uint32_t n = t->s->n, me = t->s->me;
    const struct dt_blocks blocks = { .counts = t->counts };
    bool good;

    for (uint32_t i = 0; i < n; i++)
        t->counts[i] = count(i, 0);
    allocate_both(t, sum(t->counts, n), t->counts[me]);
    uint8_t *out = where == APART       ? t->out
                   : where == BEGINNING ? t->in
                                        : t->in + 2 * sum(t->counts, me);

    for (uint32_t i = 0; i < n; i++)
        fill(t, t->in + 2 * sum(t->counts, i), me, i, t->counts[i]);
    t->call.kind = DT_CALL_REDUCE_SCATTER;
    t->call.count = dt_counts_hash(t->counts, n);
    good = dt_shm_reduce_scatter(t->s, &t->call, t->in, out, &blocks, 1) == DT_OK &&
           folds_are_right(t, out, t->counts[me]) && canaries_live(t);
    for (uint32_t i = 0; good && where == APART && i < n; i++)
        good = is(t, t->in + 2 * sum(t->counts, i), me, i, t->counts[i]);
    done(t);
    return good;
}

static struct turn next_turn(struct dt_shm *s, uint64_t *number)
{
    return (struct turn){ .s = s, .call = { .number = ++*number, .dtype = DT_U16, .root = -1 } };
}

/* Makes every collective with one placement of counts. Returns the name of the one that failed, or
 * NULL. */
static const char *every_call(struct dt_shm *s, uint64_t *number, unsigned placement)
{
    counter count = placements[placement].count;
    struct turn t;

    for (int in_place = 0; in_place < 2; in_place++) {
        t = next_turn(s, number);
        if (!all_gathers(&t, count, in_place))
            return "all-gather";
        t = next_turn(s, number);
        if (!all_to_alls(&t, count, in_place))
            return "all-to-all";
        t = next_turn(s, number);
        if (!reduce_scatters(&t, count, in_place ? OWN_BLOCK : APART))
            return "reduce-scatter";
        for (uint32_t root = 0; root < s->n; root++) {
            t = next_turn(s, number);
            if (!gathers(&t, count, in_place, root))
                return "gather";
            t = next_turn(s, number);
            if (!scatters(&t, count, in_place, root))
                return "scatter";
        }
    }
    t = next_turn(s, number);
    if (placements[placement].equal && !reduce_scatters(&t, count, BEGINNING))
        return "reduce-scatter to the beginning";
    return NULL;
}

static struct dt_shm take_seat(struct seat *seat)
{
    const uint64_t cpus[DT_HOSTSHM_CPUS / 64] = { 3 };
    const struct dt_call first = { .kind = DT_CALL_INIT };
    struct dt_shm s = {
        .map = map, .me = seat->me, .n = seat->n, .ranks = ranks, .coll_error = &seat->coll_error
    };

    dt_shm_start(&s, cpus);
    if (dt_shm_begin(&s, &first) != DT_OK)
        seat->bad = "first meeting";
    dt_shm_choose_wait(&s);
    return s;
}

static void *calls_everything(void *arg)
{
    struct seat *seat = arg;
    struct dt_shm s = take_seat(seat);
    uint64_t number = 0;

    for (unsigned i = 0; i < PLACEMENTS && !seat->bad; i++) {
        seat->bad = every_call(&s, &number, i);
        if (seat->bad)
            snprintf(seat->what, sizeof seat->what, "%u ranks, counts: %s", seat->n,
                     placements[i].name);
    }
    if (seat->bad)
        dt_hostshm_stop(&map, DT_ERR_INTERNAL, seat->me);
    return NULL;
}

static void run(struct seat *seats, uint32_t n, void *(*rank)(void *))
{
    int fd = dt_hostshm_create(&map, 1, n, 0);

    assert_true(fd >= 0);
    close(fd);
    for (uint32_t i = 0; i < n; i++) {
        seats[i] = (struct seat){ .n = n, .me = i };
        assert_int_equal(pthread_create(&seats[i].thread, NULL, rank, &seats[i]), 0);
    }
    for (uint32_t i = 0; i < n; i++)
        pthread_join(seats[i].thread, NULL);
    dt_hostshm_unmap(&map);
}

static void every_rank_gets_its_block(void **state)
{
    struct seat seats[MOST_RANKS];

    (void)state;
    for (uint32_t n = 1; n <= MOST_RANKS; n++) {
        run(seats, n, calls_everything);
        for (uint32_t i = 0; i < n; i++) {
            if (seats[i].bad)
                fail_msg("rank %u: %s (%s)", i, seats[i].bad, seats[i].what);
        }
    }
}

/* ---- counts that do not match ---- */

enum { FOUR = 4 };

static const struct odd {
    enum dt_call_kind kind;
    uint32_t giver;
    uint32_t taker;
    size_t given; /* where all others send 5 */
    size_t expected;
} odds[] = {
    { DT_CALL_GATHERV, 2, 1, 4, 5 },     { DT_CALL_GATHERV, 3, 1, 5, 0 },
    { DT_CALL_GATHERV, 1, 1, 5, 6 },     { DT_CALL_GATHERV, 0, 1, BIG * 9, 5 },
    { DT_CALL_GATHERV, 0, 1, 5, BIG },   { DT_CALL_SCATTERV, 1, 0, 0, 5 },
    { DT_CALL_SCATTERV, 1, 2, 5, 900 },  { DT_CALL_SCATTERV, 1, 3, BIG * 9, 5 },
    { DT_CALL_ALL_TO_ALLV, 0, 3, 5, 6 }, { DT_CALL_ALL_TO_ALLV, 3, 0, 0, 5 },
    { DT_CALL_ALL_TO_ALLV, 2, 2, 5, 4 }, { DT_CALL_ALL_TO_ALLV, 1, 2, BIG * 9, 5 },
};

static const struct odd *the_odd;
static uint8_t plenty[FOUR * 10 * BIG * 2];

static size_t odd_given(uint32_t giver, uint32_t taker)
{
    return giver == the_odd->giver && taker == the_odd->taker ? the_odd->given : 5;
}

static size_t odd_expected(uint32_t giver, uint32_t taker)
{
    return giver == the_odd->giver && taker == the_odd->taker ? the_odd->expected : 5;
}

static dt_result_t call_oddly(struct dt_shm *s, uint8_t *out)
{
    const struct dt_call call = { .number = 1, .kind = (uint8_t)the_odd->kind, .dtype = DT_U16 };
    size_t given[FOUR], expected[FOUR];
    const struct dt_blocks in = { .counts = given }, to = { .counts = expected };
    uint32_t me = s->me, root = 1;

    for (uint32_t i = 0; i < FOUR; i++) {
        given[i] = odd_given(me, i);
        expected[i] = odd_expected(i, me);
    }
    if (the_odd->kind == DT_CALL_GATHERV)
        return dt_shm_rooted(
            s, &call, &(struct dt_rooted){ true, root, out, &to, plenty, given[root] }, NULL);
    if (the_odd->kind == DT_CALL_SCATTERV)
        return dt_shm_rooted(
            s, &call, &(struct dt_rooted){ false, root, plenty, &in, out, expected[root] }, NULL);
    return dt_shm_all_to_all(s, &call, plenty, &in, out, &to, NULL);
}

static void *does_not_fit(void *arg)
{
    struct seat *seat = arg;
    struct dt_shm s = take_seat(seat);
    const struct dt_coll_error *t = &seat->coll_error;
    uint8_t *out = calloc(1, sizeof plenty);

    if (call_oddly(&s, out) != DT_ERR_MISMATCH)
        seat->bad = "no mismatch";
    else if (t->giver != ranks[the_odd->giver] || t->taker != ranks[the_odd->taker])
        seat->bad = "another pair";
    else if (t->given != the_odd->given || t->expected != the_odd->expected)
        seat->bad = "other counts";
    else if (t->rank == ranks[seat->me] && the_odd->giver != the_odd->taker)
        seat->bad = "blames itself";
    for (size_t i = 0; !seat->bad && i < sizeof plenty; i++)
        seat->bad = out[i] ? "took something" : NULL;
    free(out);
    return NULL;
}

static void counts_that_do_not_match_are_an_error_on_all_ranks(void **state)
{
    struct seat seats[FOUR];

    (void)state;
    memset(plenty, 1, sizeof plenty);
    for (size_t i = 0; i < sizeof odds / sizeof *odds; i++) {
        the_odd = &odds[i];
        run(seats, FOUR, does_not_fit);
        for (uint32_t k = 0; k < FOUR; k++) {
            if (seats[k].bad)
                fail_msg("case %zu, rank %u: %s", i, k, seats[k].bad);
        }
    }
}

/* Two errors that would cancel out if all pairs had the same weight. */
static void *swaps(void *arg)
{
    struct seat *seat = arg;
    struct dt_shm s = take_seat(seat);
    const struct dt_call call = { .number = 1, .kind = DT_CALL_ALL_TO_ALLV, .dtype = DT_U16 };
    size_t given[2] = { 3, 3 }, expected[2] = { 3, 3 };
    const struct dt_blocks in = { .counts = given }, to = { .counts = expected };
    uint16_t out[8] = { 0 };

    expected[!seat->me] = seat->me ? 2 : 4;
    if (dt_shm_all_to_all(&s, &call, plenty, &in, out, &to, NULL) != DT_ERR_MISMATCH ||
        seat->coll_error.giver != ranks[1] || seat->coll_error.expected != 4)
        seat->bad = "not seen";
    return NULL;
}

static void errors_do_not_cancel_out(void **state)
{
    struct seat seats[2];

    (void)state;
    run(seats, 2, swaps);
    assert_null(seats[0].bad);
    assert_null(seats[1].bad);
}

/* One rank makes another call than the others. */
static void *calls_another(void *arg)
{
    struct seat *seat = arg;
    struct dt_shm s = take_seat(seat);
    const struct dt_blocks blocks = { .each = 1000 };
    struct dt_call call = { .number = 1, .kind = DT_CALL_ALL_GATHER, .dtype = DT_U16, .root = -1 };
    uint8_t *out = calloc(1, sizeof plenty);
    dt_result_t r;

    if (seat->me == 2) {
        call.kind = DT_CALL_SCATTER;
        r = dt_shm_rooted(&s, &call, &(struct dt_rooted){ false, 2, plenty, &blocks, out, 1000 },
                          NULL);
    } else {
        r = dt_shm_all_gather(&s, &call, plenty, out, &blocks);
    }
    if (r != DT_ERR_MISMATCH || seat->coll_error.given != seat->coll_error.expected)
        seat->bad = "no mismatch";
    else if ((seat->me == 2) == (seat->coll_error.rank == ranks[2]))
        seat->bad = "blames another";
    free(out);
    return NULL;
}

static void another_call_is_an_error_on_all_ranks(void **state)
{
    struct seat seats[FOUR];

    (void)state;
    run(seats, FOUR, calls_another);
    for (uint32_t i = 0; i < FOUR; i++)
        assert_null(seats[i].bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_gets_its_block),
        cmocka_unit_test(counts_that_do_not_match_are_an_error_on_all_ranks),
        cmocka_unit_test(errors_do_not_cancel_out),
        cmocka_unit_test(another_call_is_an_error_on_all_ranks),
    };

    dt_reduce_use(NULL); /* before there are threads */
    alarm(300);          /* a watchdog */
    return cmocka_run_group_tests(tests, make_pattern, NULL);
}
