/* Which of the waits between two ranks are noted, and what the agent derives from the notes. */
#include "tests/unit/unit.h"

#include <ctype.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/agent/ranklink/callwatch.h"
#include "runtime/base/clock.h"
#include "runtime/comm/pairnotes.h"

enum { NEVER = DT_HOSTSHM_NO_LIMIT }; /* unsigned, unlike the others */
enum { MS = 1000 * 1000, MOST = 12 };

struct fixture {
    struct dt_hostshm_rank rank;
    struct dt_pairnotes notes;
    uint64_t base_ns;
    struct dt_pairnote waits[MOST];
    bool waiting[MOST];
};

static uint64_t now(void)
{
    return dt_clock_read(CLOCK_MONOTONIC_COARSE);
}

static int begin(void **state)
{
    struct fixture *f = aligned_alloc(DT_HOSTSHM_LINE, sizeof *f);

    if (!f)
        return -1;
    memset(f, 0, sizeof *f);
    f->base_ns = now();
    *state = f;
    return 0;
}

static int end(void **state)
{
    free(*state);
    return 0;
}

/* Wait i is for rank i and has lasted this long: no longer than any machine has run. */
static void enter(struct fixture *f, int i, uint32_t limit_ms, uint64_t age_ms)
{
    f->waits[i] = (struct dt_pairnote){ .pair = dt_hostshm_pair(1, (uint32_t)i, DT_CALL_RECV),
                                        .since_ns = f->base_ns - age_ms * MS,
                                        .limit_ms = limit_ms };
    f->waiting[i] = true;
    dt_pairnotes_enter(&f->notes, &f->rank, &f->waits[i], f->base_ns);
}

static void leave(struct fixture *f, int i)
{
    f->waiting[i] = false;
    dt_pairnotes_leave(&f->notes, &f->rank, &f->waits[i]);
}

static int place_of(const struct fixture *f, int i)
{
    for (int place = 0; place < DT_HOSTSHM_PAIRS; place++) {
        if (f->rank.pairs[place] == (f->waits[i].pair | DT_HOSTSHM_INSIDE))
            return place;
    }
    return -1;
}

/* ---- which are noted ---- */

struct step {
    const char *does; /* the waits that enter, or (in upper case) are over */
    const char *noted;
};

struct course {
    const char *what;
    struct {
        uint32_t limit_ms;
        uint32_t age_ms;
    } waits[8]; /* a, b, ... */
    struct step steps[8];
};

static const struct course courses[] = {
    { "for ever, in the order in which they come",
      { { NEVER, 60 }, { NEVER, 50 }, { NEVER, 40 }, { NEVER, 30 }, { NEVER, 20 }, { NEVER, 10 } },
      { { "abcd", "abcd" }, { "ef", "abcd" }, { "B", "acde" }, { "F", "acde" }, { "A", "cde" } } },
    { "one that is due takes the place of the one that has waited least, which gets it back",
      { { NEVER, 40 }, { NEVER, 30 }, { NEVER, 20 }, { NEVER, 10 }, { 1000, 0 }, { NEVER, 5 } },
      { { "abcd", "abcd" }, { "f", "abcd" }, { "e", "abce" }, { "E", "abcd" }, { "C", "abdf" } } },
    { "one that has left its place to another is over",
      { { NEVER, 40 }, { NEVER, 30 }, { NEVER, 20 }, { NEVER, 10 }, { 1000, 0 } },
      { { "abcde", "abce" }, { "D", "abce" }, { "E", "abc" } } },
    { "what is due later does not displace",
      { { 1000, 40 }, { 1000, 30 }, { 1000, 20 }, { 1000, 10 }, { 2000, 0 }, { 500, 0 } },
      { { "abcde", "abcd" }, { "f", "abcf" }, { "A", "bcdf" }, { "F", "bcde" } } },
    { "how long it has waited counts",
      { { 900, 800 }, { NEVER, 9 }, { NEVER, 8 }, { NEVER, 7 }, { 300, 0 }, { 200, 0 } },
      { { "bcda", "abcd" }, { "ef", "abef" }, { "A", "bcef" } } },
    { "dtrun's time comes before none, and after a time of their own",
      { { 0, 0 }, { NEVER, 90 }, { NEVER, 80 }, { NEVER, 70 }, { NEVER, 60 }, { 1000000000, 0 } },
      { { "bcdea", "abcd" }, { "f", "abcf" }, { "B", "acdf" }, { "F", "acde" } } },
    { "of those due at once the one that has waited longest",
      { { 1000, 0 }, { 1000, 0 }, { 1000, 0 }, { 1500, 500 }, { 1200, 200 }, { 1000, 0 } },
      { { "abcf", "abcf" }, { "de", "de" }, { "D", "e" } } },
    { "several are displaced, and come back one by one",
      { { NEVER, 4 }, { NEVER, 3 }, { NEVER, 2 }, { NEVER, 1 }, { 10, 0 }, { 20, 0 }, { 30, 0 } },
      { { "abcd", "abcd" },
        { "gfe", "aefg" },
        { "E", "abfg" },
        { "G", "abcf" },
        { "F", "abcd" } } },
};

/* Waits that rank equally may be noted in any order. */
static void check_noted(const struct fixture *f, const struct course *c, const struct step *s)
{
    int n = 0;

    for (const char *p = s->noted; *p; p++) {
        if (place_of(f, *p - 'a') < 0)
            fail_msg("%s: after %s %c is not noted", c->what, s->does, *p);
    }
    for (int place = 0; place < DT_HOSTSHM_PAIRS; place++)
        n += (f->rank.pairs[place] & DT_HOSTSHM_INSIDE) != 0;
    for (int i = 0; i < MOST; i++)
        n -= f->waiting[i];
    if (n != -(int)f->notes.n)
        fail_msg("%s: after %s %u wait for a place", c->what, s->does, f->notes.n);
}

static void those_due_soonest_are_noted(void **state)
{
    struct fixture *f = *state;

    for (size_t k = 0; k < sizeof courses / sizeof *courses; k++) {
        const struct course *c = &courses[k];

        for (const struct step *s = c->steps; s->does; s++) {
            for (const char *p = s->does; *p; p++) {
                int i = tolower(*p) - 'a';

                if (isupper(*p))
                    leave(f, i);
                else
                    enter(f, i, c->waits[i].limit_ms, c->waits[i].age_ms);
            }
            check_noted(f, c, s);
        }
        for (int i = 0; i < MOST; i++) {
            if (f->waiting[i])
                leave(f, i);
        }
        check_noted(f, c, &(struct step){ "all have left", "" });
    }
}

/* A model: all waits in their order, the first few of which are noted. */
struct key {
    uint64_t due;
    uint64_t since;
    int i;
};

static int by_due(const void *a, const void *b)
{
    const struct key *x = a, *y = b;

    if (x->due != y->due)
        return x->due < y->due ? -1 : 1;
    return x->since < y->since ? -1 : x->since > y->since;
}

static void check_against_model(const struct fixture *f)
{
    struct key keys[MOST];
    int n = 0;

    for (int i = 0; i < MOST; i++) {
        const struct dt_pairnote *w = &f->waits[i];
        uint64_t due = w->limit_ms == NEVER ? UINT64_MAX
                       : w->limit_ms == 0   ? UINT64_MAX - 1
                                            : w->since_ns + (uint64_t)w->limit_ms * MS;

        if (f->waiting[i])
            keys[n++] = (struct key){ due, w->since_ns, i };
    }
    qsort(keys, (size_t)n, sizeof *keys, by_due);
    for (int k = 0; k < n; k++) {
        int place = place_of(f, keys[k].i);

        assert_int_equal(place >= 0, k < DT_HOSTSHM_PAIRS);
        if (place >= 0)
            assert_int_equal(f->rank.limits_ms[1 + place], f->waits[keys[k].i].limit_ms);
    }
    assert_int_equal(f->notes.n, n > DT_HOSTSHM_PAIRS ? n - DT_HOSTSHM_PAIRS : 0);
}

/* No two waits are equally old. */
static void enter_any(struct fixture *f, int i, unsigned *seed)
{
    static const uint32_t limits[] = { NEVER, NEVER, 0, 10, 700, 800, 1000000000 };

    enter(f, i, limits[(unsigned)rand_r(seed) % (sizeof limits / sizeof *limits)],
          (unsigned)rand_r(seed) % 100 * MOST + (unsigned)i);
}

static void the_notes_agree_with_a_model(void **state)
{
    struct fixture *f = *state;
    unsigned seed = 1;

    for (int k = 0; k < 20000; k++) {
        int i = rand_r(&seed) % MOST;

        if (f->waiting[i])
            leave(f, i);
        else
            enter_any(f, i, &seed);
        check_against_model(f);
    }
}

/* ---- as the agent sees it ---- */

struct view {
    struct dt_hostshm shm;
    struct dt_callwatch watch;
    struct dt_msg_comm report;
};

static struct view view_of(struct fixture *f)
{
    return (struct view){ .shm = { .ranks = &f->rank, .local_size = 1 } };
}

static void look(struct view *v, uint64_t now_ns)
{
    uint32_t rank = 0;

    free(v->report.ranks.v);
    dt_callwatch_look(&v->watch, &v->shm, now_ns);
    dt_callwatch_report(&v->watch, &v->shm, 0, &(struct dt_u32s){ &rank, 1 }, now_ns, &v->report);
}

/* The note of wait i. */
static struct dt_msg_called reported_call(const struct view *v, int i)
{
    const struct dt_msg_called *called = v->report.ranks.v;

    for (uint32_t k = 0; k < v->report.ranks.n; k++) {
        if (called[k].place && (called[k].call & DT_HOSTSHM_INSIDE) &&
            dt_hostshm_pair_peer(called[k].call) == (uint32_t)i)
            return called[k];
    }
    return (struct dt_msg_called){ 0 };
}

static void forget(struct view *v)
{
    free(v->report.ranks.v);
    dt_callwatch_reset(&v->watch);
}

static void a_wait_keeps_its_age_when_its_note_moves(void **state)
{
    struct fixture *f = *state;
    struct view v = view_of(f);
    uint64_t start_ns = 1000ull * 1000 * MS; /* the agent's clock may be any */
    uint32_t old_ms;
    uint8_t before;

    look(&v, start_ns);
    for (int i = 0; i < DT_HOSTSHM_PAIRS; i++)
        enter(f, i, i ? 9000 : NEVER, 600 + (uint64_t)i);
    look(&v, start_ns + 5000ull * MS);
    before = reported_call(&v, 0).place;
    old_ms = reported_call(&v, 2).waited_ms;
    assert_true(reported_call(&v, 0).waited_ms >= 600);
    enter(f, 5, 1000, 0);
    look(&v, start_ns + 5100ull * MS);
    assert_int_equal(reported_call(&v, 0).place, 0);
    assert_int_equal(reported_call(&v, 5).place, before);
    assert_int_equal(reported_call(&v, 5).limit_ms, 1000);
    assert_int_equal(reported_call(&v, 5).waited_ms, f->rank.waited_ms[before - 1]);
    leave(f, 1);
    look(&v, start_ns + 5200ull * MS);
    assert_int_not_equal(reported_call(&v, 0).place, before);
    assert_true(reported_call(&v, 0).waited_ms >= 600 && reported_call(&v, 0).limit_ms == NEVER);
    assert_int_equal(reported_call(&v, 2).waited_ms, old_ms + 200); /* it has kept its place */
    forget(&v);
}

/* Otherwise a rank could be ended for a wait during which it was stopped. */
static void nothing_is_older_than_the_first_look(void **state)
{
    struct fixture *f = *state;
    struct view v = view_of(f);
    uint64_t start_ns = 1000ull * 1000 * MS;

    enter(f, 0, 0, 900);
    look(&v, start_ns);
    assert_int_equal(reported_call(&v, 0).waited_ms, 0);
    look(&v, start_ns + 300ull * MS);
    assert_int_equal(reported_call(&v, 0).waited_ms, 300);
    enter(f, 1, 0, 900);
    look(&v, start_ns + 400ull * MS);
    assert_int_equal(reported_call(&v, 1).waited_ms, 400);
    dt_callwatch_reset(&v.watch);
    look(&v, start_ns + 500ull * MS);
    assert_int_equal(reported_call(&v, 0).waited_ms, 0);
    forget(&v);
}

/* ---- threads ---- */

enum { THREADS = 8, ROUNDS = 300, PASSES = 20 };

struct crowd {
    struct fixture *f;
    pthread_barrier_t turn;
    _Atomic bool over;
    uint32_t mixed; /* notes that mix the data of two waits */
};

struct member {
    struct crowd *crowd;
    int i;
};

/* Derives the limit from the number, so that a reader sees whether they belong together. */
static uint32_t limit_of(uint32_t number)
{
    return number % 3 == 0 ? NEVER : 1 + number % 7919;
}

static void pass(struct fixture *f, int i, uint32_t number, unsigned *seed)
{
    struct dt_pairnote note = { .pair = dt_hostshm_pair(number, (uint32_t)i, DT_CALL_SEND),
                                .limit_ms = limit_of(number) };

    if (rand_r(seed) % 4 == 0)
        note.since_ns = f->base_ns - (unsigned)rand_r(seed) % 1000 * MS;
    dt_pairnotes_enter(&f->notes, &f->rank, &note, now());
    dt_pairnotes_leave(&f->notes, &f->rank, &note);
}

/* All threads are stopped here. */
static void look_at_once(struct crowd *c, bool leads)
{
    pthread_barrier_wait(&c->turn);
    if (leads)
        check_against_model(c->f);
    pthread_barrier_wait(&c->turn);
}

static void *come_and_go(void *arg)
{
    struct member *m = arg;
    struct crowd *c = m->crowd;
    unsigned seed = (unsigned)m->i;
    uint32_t number = (uint32_t)m->i << 20;

    for (int round = 0; round < ROUNDS; round++) {
        for (int k = 0; k < PASSES; k++)
            pass(c->f, m->i, ++number, &seed);
        enter_any(c->f, m->i, &seed);
        look_at_once(c, m->i == 0);
        if (rand_r(&seed) % 2)
            leave(c->f, m->i);
        look_at_once(c, m->i == 0);
        if (c->f->waiting[m->i])
            leave(c->f, m->i);
    }
    return NULL;
}

static void *watch(void *arg)
{
    struct crowd *c = arg;
    struct view v = view_of(c->f);

    for (uint64_t now_ns = 1; !c->over; now_ns++) {
        look(&v, now_ns);
        for (uint32_t k = 0; k < v.report.ranks.n; k++) {
            const struct dt_msg_called *called = (const struct dt_msg_called *)v.report.ranks.v + k;

            if ((called->call & 0xff) == (DT_HOSTSHM_INSIDE | DT_CALL_SEND) &&
                called->limit_ms != NEVER)
                c->mixed += called->limit_ms != limit_of(dt_hostshm_pair_number(called->call));
        }
    }
    forget(&v);
    return NULL;
}

static void concurrent_threads_keep_the_notes_consistent(void **state)
{
    struct crowd c = { .f = *state };
    struct member members[THREADS];
    pthread_t threads[THREADS], agent;

    assert_int_equal(pthread_barrier_init(&c.turn, NULL, THREADS), 0);
    assert_int_equal(pthread_create(&agent, NULL, watch, &c), 0);
    for (int i = 0; i < THREADS; i++) {
        members[i] = (struct member){ &c, i };
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &members[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    c.over = true;
    pthread_join(agent, NULL);
    pthread_barrier_destroy(&c.turn);
    assert_int_equal(c.mixed, 0);
    check_against_model(c.f);
    assert_null(c.f->notes.first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(those_due_soonest_are_noted, begin, end),
        cmocka_unit_test_setup_teardown(the_notes_agree_with_a_model, begin, end),
        cmocka_unit_test_setup_teardown(a_wait_keeps_its_age_when_its_note_moves, begin, end),
        cmocka_unit_test_setup_teardown(nothing_is_older_than_the_first_look, begin, end),
        cmocka_unit_test_setup_teardown(concurrent_threads_keep_the_notes_consistent, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
