/* Which rank waits for which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/watch/wait_graph.h"
#include "runtime/wire/hostshm.h"

enum { RANKS = 8 };

#define S 1000000000ull

/* Reads the state of a rank, in which rank i has been since second 10 + i. It is one word:
 *
 *     5      it has left the collective with number 5; "(" before any of these: it is inside
 *     >2.5   likewise the fifth send to rank 2, and "<2.5" the fifth receive from it
 *     (5g    it waits for its GPU after collective 5, "(5k" for NCCL to launch a kernel
 *     (5b    it starts NCCL after collective 5
 *
 * with one of these at the end: "s" stopped, "e" ended, "l3" has a limit of 3 s, "n" no limit. */
static const char *read_rank(const char *text, struct dt_waiter *waiter, struct dt_msg_called *c)
{
    bool in = *text == '(';
    uint64_t inside = in ? DT_HOSTSHM_INSIDE : 0u;
    char direction = *(text += in), *end;
    bool pair = direction == '>' || direction == '<';
    uint64_t number = strtoull(text + pair, &end, 10);

    if (pair) {
        c->place = 1;
        c->call = inside | number << 8 | (direction == '>' ? DT_CALL_SEND : DT_CALL_RECV);
        c->call |= strtoull(end + 1, &end, 10) << 32;
    } else {
        c->call = number << 8 | inside | (number ? DT_CALL_BARRIER : 0u);
    }
    if (*end == 'g' || *end == 'k' || *end == 'b') {
        c->call = number << 8 | inside;
        c->call |= *end == 'g'   ? DT_CALL_GPU_COPY
                   : *end == 'k' ? DT_CALL_GPU_LAUNCH
                                 : DT_CALL_GPU_START;
        end++;
    }
    if (*end == 'l')
        c->limit_ms = (uint32_t)strtoul(end + 1, &end, 10) * 1000;
    else if (*end == 'n')
        c->limit_ms = DT_HOSTSHM_NO_LIMIT;
    waiter->stopped |= *end == 's';
    waiter->ended |= *end == 'e';
    end += strcspn(end, " ");
    return end + (*end == ' ');
}

/* Reports a group, whose ranks are these of the job (NULL: all), at second 40. */
static void note(struct dt_wait_graph *w, uint64_t comm, uint32_t *members, const char *text)
{
    static uint32_t all[RANKS] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    struct dt_msg_called ranks[RANKS] = { { 0 } };
    const struct dt_u32s here = { all, RANKS };
    uint32_t n = 0;

    while (*text) {
        ranks[n].rank = n;
        ranks[n].waited_ms = (30 - n) * 1000;
        text = read_rank(text, &w->ranks[members ? members[n] : n], &ranks[n]);
        n++;
    }
    dt_wait_graph_note(w, &(struct dt_msg_comm){ comm, { members, members ? n : 0 }, { ranks, n } },
                       &here, 40 * S);
}

static uint32_t count(const char *text)
{
    uint32_t n = *text != '\0';

    for (; *text; text++)
        n += *text == ' ';
    return n;
}

static void add_list(char *text, struct dt_u32s *list)
{
    if (list->n == 0)
        strcat(text, "nobody");
    for (uint32_t i = 0; i < list->n; i++)
        sprintf(text + strlen(text), "%s%u", i ? "," : "", list->v[i]);
    free(list->v);
}

/* Writes "RANK: TOGETHER for AWAITED, ENDS": the rank whose wait is due first, the ranks in its
 * call, those that it waits for, and those at the ends of the chains; then " deadlock" if there is
 * one. */
static const char *describe_first_due(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                                      char text[128])
{
    int slot = dt_wait_graph_first_due(w, g, 100 * 1000);
    struct dt_u32s together, awaited, ends;
    bool deadlock;

    if (slot < 0)
        return "none";
    dt_wait_graph_in_same_call(w, g, (uint32_t)slot, &together);
    dt_wait_graph_awaited(w, g, (uint32_t)slot, &awaited);
    deadlock = dt_wait_graph_chain_ends(w, g, (uint32_t)slot, &ends);
    snprintf(text, 128, "%u: ", (uint32_t)slot % g->n);
    add_list(text, &together);
    strcat(text, " for ");
    add_list(text, &awaited);
    strcat(text, ", ");
    add_list(text, &ends);
    if (deadlock)
        strcat(text, " deadlock");
    return text;
}

static void ranks_that_others_wait_for_are_found(void **state)
{
    static const struct {
        const char *ranks;
        const char *waits;
    } cases[] = {
        { "3 3 3", "none" },
        { "0 0", "none" },
        { "(4 (4 3", "0: 0,1 for 2, 2" },
        { "3 (4 (4", "1: 1,2 for 0, 0" },
        { "(1 0 0", "0: 0 for 1,2, 1,2" },        /* they have not called dt_init */
        { "(4 (4 3s", "0: 0,1 for 2, 2" },        /* stopped between calls */
        { "(4 (4 (4s", "0: 0,1 for 2, 2" },       /* stopped inside the call */
        { "(4s (4 (4", "1: 1,2 for 0, 0" },       /* a stopped rank does not wait */
        { "(4 (4 (4", "0: 0,1,2 for nobody, 0" }, /* all have joined */
        { "4 (4 (4", "1: 1,2 for nobody, 1" },    /* one is through */
        { "(5 (4 (4 3", "0: 0 for 3, 3" },        /* a root that is ahead */
        { "(5 (4s (4 (4s", "0: 0 for 1,3, 1,3" },
        { "(4 2 3e", "0: 0 for 1, 1" }, /* nothing is expected from an ended rank */
        { "(4e 3", "none" },
        { "(4n (4l50 3", "1: 0,1 for 2, 2" },   /* the one with a limit is due first */
        { "(4l50 (4l20 3", "1: 0,1 for 2, 2" }, /* and so is the one with the shorter limit */
        { "(4n 3", "0: 0 for 1, 1" },
        /* for the GPU */
        { "(4 (4 (3g", "0: 0,1 for 2, 2" }, /* which is no call of all ranks */
        { "(4 (4 (3gs", "0: 0,1 for 2, 2" },
        { "(3g (4 (4", "0: 0 for nobody, 0" },
        { "(4 (4gl20 (4", "1: 1 for nobody, 1" },
        { "(3g (3g 3", "0: 0 for nobody, 0" },
        { "(4 (4 (3k", "0: 0,1 for 2, 2" },
        { "(3k (3k (3k", "0: 0,1,2 for nobody, 0" }, /* NCCL's ranks wait for each other */
        { "(3k (3g (3k", "0: 0,2 for nobody, 0" },
        { "(3k (2k (3k", "0: 0,2 for nobody, 0" },
        { "(3bn (4 (4", "1: 1,2 for 0, 0" }, /* NCCL has started elsewhere */
        { "(3bn (3bn (3bn", "0: 0,1,2 for nobody, 0" },
        { "(3bn (3bn 2", "0: 0,1 for 2, 2" },
        /* between two */
        { "(>1.2 0", "0: 0 for 1, 1" },
        { "0 (<0.1", "1: 1 for 0, 0" },
        { "(>1.2 (<0.2", "0: 0,1 for nobody, 0" },
        { "(>1.2 (<0.2s", "0: 0 for 1, 1" },
        { "(>1.2 <0.2", "0: 0 for nobody, 0" }, /* the receiver is through */
        { "(>1.2 <0.1", "0: 0 for 1, 1" },
        { "(>1.2 0e", "0: 0 for nobody, 0" },
        { "(>1.1 (>2.1 0", "0: 0 for 1, 2" },                   /* a chain */
        { "(>1.1 (>0.1", "0: 0 for 1, nobody deadlock" },       /* both send: a deadlock */
        { "(>1.1 (>2.1 (>0.1", "0: 0 for 1, nobody deadlock" }, /* a ring of them */
        { "(>1.1 (4 (4 3", "0: 0 for 1, 3 deadlock" },          /* a collective waits for all */
        { "(4 (4 (<0.1", "0: 0,1 for 2, nobody deadlock" },
        { "(4 (<2.1 3", "0: 0 for 1,2, 2" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_wait_graph w;
        char text[128];

        dt_wait_graph_init(&w, count(cases[i].ranks), 1);
        note(&w, 0, NULL, cases[i].ranks);
        assert_string_equal(describe_first_due(&w, w.groups, text), cases[i].waits);
        dt_wait_graph_free(&w);
    }
}

/* Communicator 0.1 has the ranks 3, 1 and 2 of four. */
static void waits_go_across_communicators(void **state)
{
    static const struct {
        const char *all;
        const char *three;
        const char *waits; /* in the second */
    } cases[] = {
        { "3 3 3 3", "(2 1 1", "0: 3 for 1,2, 1,2" },
        { "3 3 3 3s", "1 (2 (2", "1: 1,2 for 3, 3" },
        { "3 (4 3 3", "(2 1 (2", "0: 2,3 for 1, 0 deadlock" }, /* each waits for the other */
        { "3 (4 (4 3", "(2 1 1", "0: 3 for 1,2, 0 deadlock" },
        { "3 (4 (4 (4", "(2 1 2", "0: 3 for 1, 0" }, /* they wait for a rank that is not in it */
        { "(4 (4 3 3", "(2 1 (2", "0: 2,3 for 1, nobody deadlock" },
        { "3 (<0.1 3 3", "(2 1 (2", "0: 2,3 for 1, 0" },
        { "3 3 3 3", "(2 (2 (2", "0: 1,2,3 for nobody, 3" },
        { "(4 3 (4 3", "(2 1 1", "0: 3 for 1,2, 1 deadlock" },
        { "3 3 3 3", "(>1.1 2 2", "0: 3 for 1, 1" }, /* its rank 1 is the job's rank 1 */
        { "3 3 3 3", "(>2.1 2 2", "0: 3 for 2, 2" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t members[] = { 3, 1, 2 };
        struct dt_wait_graph w;
        char text[128];

        dt_wait_graph_init(&w, 4, 1);
        note(&w, 0, NULL, cases[i].all);
        note(&w, 1ull << 32 | 1, members, cases[i].three);
        assert_string_equal(describe_first_due(&w, &w.groups[1], text), cases[i].waits);
        dt_wait_graph_free(&w);
    }
}

static struct dt_msg_comm group(uint64_t comm, const struct dt_u32s *members,
                                struct dt_msg_called *ranks, uint32_t n)
{
    return (struct dt_msg_comm){ comm, *members, { ranks, n } };
}

/* The first half of the ranks waits for the second in the barrier of a communicator. Each rank of
 * the second receives from the next one, and the last waits for none. */
static void waits_of_80000_ranks_are_followed(void **state)
{
    enum { MANY = 80000, EACH = 8 };
    struct dt_msg_called *calls = calloc(MANY, sizeof *calls);
    uint32_t *all = calloc(MANY, sizeof *all);
    struct dt_wait_graph w;
    struct dt_u32s ends;

    (void)state;
    dt_wait_graph_init(&w, MANY, 1);
    for (uint32_t i = 0; i < MANY; i++) {
        all[i] = i;
        calls[i] = (struct dt_msg_called){ .rank = i };
        if (i < MANY / 2)
            calls[i].call = 4 << 8 | DT_HOSTSHM_INSIDE | DT_CALL_BARRIER;
        else if (i < MANY - 1)
            calls[i].call = dt_hostshm_pair(1, i + 1, DT_CALL_RECV | DT_HOSTSHM_INSIDE);
        calls[i].place = i >= MANY / 2;
    }
    for (uint32_t i = 0; i < MANY; i += EACH) {
        const struct dt_u32s members = { all, MANY }, here = { &all[i], EACH };
        struct dt_msg_comm comm = group(1ull << 32, &members, &calls[i], EACH);

        dt_wait_graph_note(&w, &comm, &here, 40 * S);
    }
    assert_false(dt_wait_graph_chain_ends(&w, &w.groups[1], 0, &ends));
    assert_int_equal(ends.n, 1);
    assert_int_equal(ends.v[0], MANY - 1);
    free(ends.v);
    free(all);
    free(calls);
    dt_wait_graph_free(&w);
}

/* Rank 0 waits for the thread of rank 1 that saves, while rank 1 waits on DT_WORLD as well. */
static void a_thread_that_saves_waits_for_no_other_communicator(void **state)
{
    static const char *const on_world[] = { "3 (4 3", "3 3 3", "(4 (4 3", "3 (>0.1 3" };
    uint32_t all[] = { 0, 1, 2 };

    (void)state;
    for (size_t i = 0; i < sizeof on_world / sizeof *on_world; i++) {
        struct dt_wait_graph w;
        char text[128];

        dt_wait_graph_init(&w, 3, 1);
        note(&w, 0, NULL, on_world[i]);
        note(&w, 1, all, "(8 7 (8");
        assert_string_equal(describe_first_due(&w, &w.groups[1], text), "0: 0,2 for 1, 1");
        dt_wait_graph_free(&w);
    }
}

/* Ranks 0 and 2 wait on DT_WORLD for rank 1, whose thread that saves waits, too. */
static void a_thread_that_saves_delays_no_other_communicator(void **state)
{
    static const char *const saving[] = { "8 (8 7", "7 (8 8", "7 (8 7" };
    uint32_t all[] = { 0, 1, 2 };

    (void)state;
    for (size_t i = 0; i < sizeof saving / sizeof *saving; i++) {
        struct dt_wait_graph w;
        char text[128];

        dt_wait_graph_init(&w, 3, 1);
        note(&w, 0, NULL, "(4 3 (4");
        note(&w, 1, all, saving[i]);
        assert_string_equal(describe_first_due(&w, w.groups, text), "0: 0,2 for 1, 1");
        dt_wait_graph_free(&w);
    }
}

static void a_wait_counts_while_all_ranks_are_known(void **state)
{
    uint32_t all[] = { 1, 2 };
    const struct dt_u32s members = { all, 2 }, one = { &all[0], 1 }, other = { &all[1], 1 };
    struct dt_msg_called in = { 0, 0, 4 << 8 | DT_HOSTSHM_INSIDE, 0, 0, 5000 };
    struct dt_msg_called out = { 1, 0, 3 << 8, 0, 0, 9000 };
    struct dt_msg_comm here = group(7, &members, &in, 1), there = group(7, &members, &out, 1);
    struct dt_msg_comm nowhere = { .comm = 7 };
    struct dt_wait_graph w;

    (void)state;
    dt_wait_graph_init(&w, 3, 1);
    dt_wait_graph_note(&w, &nowhere, &other, 15 * S);
    assert_int_equal(w.n, 1);
    dt_wait_graph_note(&w, &here, &one, 15 * S);
    assert_int_equal(w.n, 2);
    assert_int_equal(dt_wait_graph_first_due(&w, &w.groups[1], 0), 0);
    assert_int_equal(dt_wait_graph_waited_ms(&w, &w.groups[1], 0), 0); /* rank 2 is unknown */
    dt_wait_graph_note(&w, &there, &other, 16 * S);
    assert_int_equal(dt_wait_graph_waited_ms(&w, &w.groups[1], 0), 5000);
    in.waited_ms = 15000;
    dt_wait_graph_note(&w, &here, &one, 25 * S);
    assert_int_equal(dt_wait_graph_waited_ms(&w, &w.groups[1], 0),
                     6000);                           /* rank 2 may have joined by now */
    dt_wait_graph_note(&w, &nowhere, &other, 25 * S); /* it has no such communicator (any more) */
    assert_int_equal(dt_wait_graph_waited_ms(&w, &w.groups[1], 0), 15000);
    assert_int_equal(w.groups[1].waits[1].call, 0);
    dt_wait_graph_tidy(&w);
    assert_int_equal(w.n, 2);
    dt_wait_graph_note(&w, &nowhere, &one, 26 * S);
    dt_wait_graph_tidy(&w);
    assert_int_equal(w.n, 1);
    dt_wait_graph_free(&w);
}

static void reports_about_unknown_ranks_are_ignored(void **state)
{
    uint32_t ranks[] = { 1, 3 };
    const struct dt_u32s members = { ranks, 2 };
    struct dt_msg_called beyond = { 3, 0, 4 << 8 | DT_HOSTSHM_INSIDE, 0, 0, 5000 };
    struct dt_msg_comm foreign = group(7, &members, &beyond, 1), world = { .comm = 0 };
    struct dt_wait_graph w;

    (void)state;
    dt_wait_graph_init(&w, 3, 1);
    dt_wait_graph_note(&w, &foreign, &members, 15 * S);
    assert_int_equal(w.n, 1);
    world.ranks = (struct dt_msg_list){ &beyond, 1 };
    dt_wait_graph_note(&w, &world, &members, 15 * S);
    assert_int_equal(dt_wait_graph_first_due(&w, w.groups, 0), -1);
    dt_wait_graph_free(&w);
}

/* Rank 0 waits at the same time in a collective, for rank 1, and in the background for rank 2. */
static void a_rank_may_wait_in_several_calls(void **state)
{
    uint32_t all[] = { 0, 1, 2 };
    const struct dt_u32s here = { all, 3 };
    struct dt_msg_called ranks[] = {
        { 0, 0, 4 << 8 | DT_HOSTSHM_INSIDE, 0, 0, 1000 },
        { 0, 1, dt_hostshm_pair(3, 1, DT_CALL_RECV | DT_HOSTSHM_INSIDE), 0, 0, 2000 },
        { 0, 4, dt_hostshm_pair(0, 2, DT_CALL_RECV | DT_HOSTSHM_INSIDE), 0, 0, 3000 },
        { 1, 0, 3 << 8, 0, 0, 9000 },
        { 1, 2, dt_hostshm_pair(2, 0, DT_CALL_SEND), 0, 0, 9000 },
        { 2, 0, 4 << 8 | DT_HOSTSHM_INSIDE, 0, 0, 500 },
        { 2, 3, dt_hostshm_pair(7, 0, DT_CALL_SEND), 0, 0, 9000 },
    };
    struct dt_msg_comm world = { .comm = 0, .ranks = { ranks, 7 } };
    struct dt_wait_graph w;
    char text[128];

    (void)state;
    dt_wait_graph_init(&w, 3, 1);
    dt_wait_graph_note(&w, &world, &here, 10 * S);
    assert_string_equal(describe_first_due(&w, w.groups, text),
                        "0: 0 for nobody, 0"); /* rank 2 has sent everything */
    ranks[2].call = 0;
    dt_wait_graph_note(&w, &world, &here, 10 * S);
    assert_string_equal(describe_first_due(&w, w.groups, text), "0: 0 for 1, 1");
    ranks[1].call = 0;
    dt_wait_graph_note(&w, &world, &here, 10 * S);
    assert_string_equal(describe_first_due(&w, w.groups, text), "0: 0,2 for 1, 1");
    dt_wait_graph_free(&w);
}

static void calls_that_do_not_match_are_distinguished(void **state)
{
    uint32_t all[] = { 0, 1, 2, 3, 4, 5 };
    const struct dt_u32s here = { all, 6 };
    struct dt_msg_called ranks[6];
    struct dt_msg_comm world = { .comm = 0, .ranks = { ranks, 6 } };
    struct dt_u32s alike, unlike;
    struct dt_wait_graph w;

    (void)state;
    for (uint32_t i = 0; i < 6; i++)
        ranks[i] = (struct dt_msg_called){ .rank = i,
                                           .call = 4 << 8 | DT_HOSTSHM_INSIDE | DT_CALL_BARRIER,
                                           .signature = 77 };
    ranks[1].signature = 78;
    ranks[2].call += 1 << 8; /* in the next call, or outside this one: that has another */
    ranks[2].signature = 79;
    ranks[3].call &= ~(uint64_t)DT_HOSTSHM_INSIDE;
    ranks[3].signature = 80;
    ranks[4].signature = 0;
    dt_wait_graph_init(&w, 6, 1);
    dt_wait_graph_note(&w, &world, &here, S);
    dt_wait_graph_matching(&w, w.groups, 0, &alike);
    assert_int_equal(alike.n, 2);
    assert_int_equal(alike.v[1], 5);
    dt_wait_graph_mismatching(&w, w.groups, 0, &unlike);
    assert_int_equal(unlike.n, 1);
    assert_int_equal(unlike.v[0], 1);
    free(alike.v);
    free(unlike.v);
    dt_wait_graph_mismatching(&w, w.groups, 4, &unlike);
    assert_int_equal(unlike.n, 0);
    free(unlike.v);
    dt_wait_graph_free(&w);
}

/* A PONG was under way when the ranks of the last generation were ended, or all were stopped. It
 * would make rank 1, which is another process now, wait for an hour. */
static void old_reports_blame_no_rank(void **state)
{
    static const struct {
        uint32_t generation;
        uint64_t ping_ns;
        bool current;
    } pongs[] = {
        { 2, 50 * S, true },  { 2, 60 * S, true },  { 2, 50 * S - 1, false }, { 1, 60 * S, false },
        { 1, 49 * S, false }, { 3, 60 * S, false }, { 0, 60 * S, false },
    };
    uint32_t members[] = { 1, 2 };
    struct dt_wait_graph w;

    (void)state;
    dt_wait_graph_init(&w, 3, 1);
    note(&w, 0, NULL, "3 (4 (4");
    note(&w, 7, members, "(2 1");
    w.limits[0] = 100;
    dt_wait_graph_forget(&w, 2, 50 * S);
    assert_int_equal(w.n, 1);
    assert_int_equal(w.np, 3);
    assert_int_equal(dt_wait_graph_first_due(&w, w.groups, 0), -1);
    assert_int_equal(dt_wait_graph_least_limit(&w), 0);
    for (size_t i = 0; i < sizeof pongs / sizeof *pongs; i++)
        assert_int_equal(dt_wait_graph_is_current(&w, pongs[i].generation, pongs[i].ping_ns),
                         pongs[i].current);
    dt_wait_graph_free(&w);
}

static void the_shortest_limit_of_all_hosts_counts(void **state)
{
    struct dt_wait_graph w;

    (void)state;
    dt_wait_graph_init(&w, 3, 3);
    assert_int_equal(dt_wait_graph_least_limit(&w), 0);
    w.limits[1] = 5000;
    assert_int_equal(dt_wait_graph_least_limit(&w), 5000);
    w.limits[2] = 200;
    assert_int_equal(dt_wait_graph_least_limit(&w), 200);
    w.limits[2] = 0;
    assert_int_equal(dt_wait_graph_least_limit(&w), 5000);
    dt_wait_graph_free(&w);
}

static void the_longest_waits_are_requested_first(void **state)
{
    uint32_t members[] = { 1, 2 };
    struct dt_msg_list asked;
    struct dt_wait_graph w;

    (void)state;
    dt_wait_graph_init(&w, 3, 1);
    note(&w, 0, NULL, "(3 (3 3");
    note(&w, 7, members, "1 (2");
    note(&w, 8, members, "(2 1");
    note(&w, 9, members, "1 (>1.1");
    dt_wait_graph_list_oldest(&w, 10, &asked);
    assert_int_equal(asked.n, 3);
    assert_int_equal(((struct dt_msg_asked *)asked.v)[0].comm, 8);
    free(asked.v);
    dt_wait_graph_list_oldest(&w, 1, &asked);
    assert_int_equal(asked.n, 1);
    assert_int_equal(((struct dt_msg_asked *)asked.v)[0].comm, 8);
    free(asked.v);
    dt_wait_graph_free(&w);
}

/* Not even like one without a number, which no rank makes. */
static void a_send_or_receive_matches_no_collective(void **state)
{
    uint32_t all[] = { 0, 1 };
    const struct dt_u32s here = { all, 2 };
    struct dt_msg_called ranks[] = {
        { 0, 0, DT_HOSTSHM_INSIDE | DT_CALL_BARRIER, 0, 0, 1000 },
        { 1, 1, dt_hostshm_pair(3, 0, DT_CALL_RECV | DT_HOSTSHM_INSIDE), 0, 0, 2000 },
    };
    struct dt_msg_comm world = { .comm = 0, .ranks = { ranks, 2 } };
    struct dt_wait_graph w;
    struct dt_u32s alike;
    int pair;

    (void)state;
    dt_wait_graph_init(&w, 2, 1);
    dt_wait_graph_note(&w, &world, &here, 10 * S);
    pair = dt_wait_graph_first_due(&w, w.groups, 0);
    assert_int_equal(pair, 3);
    dt_wait_graph_matching(&w, w.groups, (uint32_t)pair, &alike);
    assert_int_equal(alike.n, 0);
    free(alike.v);
    dt_wait_graph_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_reports_blame_no_rank),
        cmocka_unit_test(the_shortest_limit_of_all_hosts_counts),
        cmocka_unit_test(the_longest_waits_are_requested_first),
        cmocka_unit_test(ranks_that_others_wait_for_are_found),
        cmocka_unit_test(waits_go_across_communicators),
        cmocka_unit_test(waits_of_80000_ranks_are_followed),
        cmocka_unit_test(a_thread_that_saves_waits_for_no_other_communicator),
        cmocka_unit_test(a_thread_that_saves_delays_no_other_communicator),
        cmocka_unit_test(a_wait_counts_while_all_ranks_are_known),
        cmocka_unit_test(reports_about_unknown_ranks_are_ignored),
        cmocka_unit_test(a_rank_may_wait_in_several_calls),
        cmocka_unit_test(calls_that_do_not_match_are_distinguished),
        cmocka_unit_test(a_send_or_receive_matches_no_collective),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
