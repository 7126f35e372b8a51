#include <stdio.h>
#include <string.h>

#include "launcher/base/strbuf.h"
#include "launcher/hosts/hostarg.h"
#include "launcher/hosts/hostfile.h"
#include "launcher/place/plan.h"
#include "launcher/watch/words.h"
#include "tests/unit/unit.h"

struct placing {
    const char *hosts; /* of a hostfile */
    int np;
    bool no_oversubscribe;
    /* "host first+size ..." or "host 0,2,4", and "!" when oversubscribed; or part of the error */
    const char *want;
    bool fails;
};

static const struct dt_placement by_slot = { 0 }, by_node = { .map_by = DT_MAP_BY_NODE };

static const struct placing placings[] = {
    { "a:4\nb:4\n", 0, false, "a 0+4 b 4+4", false },
    { "a:4\nb:4\n", 8, false, "a 0+4 b 4+4", false },
    { "a:4\nb:4\n", 5, false, "a 0+4 b 4+1", false },
    { "a:4\nb:4\n", 4, false, "a 0+4", false },
    { "a:4\nb:4\n", 1, false, "a 0+1", false },
    { "a:3\nb:1\nc:2\n", 6, false, "a 0+3 b 3+1 c 4+2", false },
    { "a:4\nb:4\n", 16, false, "a 0+8 b 8+8 !", false },
    { "a:4\nb:4\n", 9, false, "a 0+5 b 5+4 !", false },
    { "a:4\nb:4\n", 10, false, "a 0+5 b 5+5 !", false },
    /* after 3 and 1 the next rank goes to a (tie), then to b (4/3 against 1/1) ... */
    { "a:3\nb:1\n", 5, false, "a 0+4 b 4+1 !", false },
    { "a:3\nb:1\n", 6, false, "a 0+4 b 4+2 !", false },
    { "a:3\nb:1\n", 7, false, "a 0+5 b 5+2 !", false },
    { "a:3\nb:1\n", 8, false, "a 0+6 b 6+2 !", false },
    { "a:1\nb:3\n", 6, false, "a 0+2 b 2+4 !", false },
    { "a:4 max_slots=4\nb:4\n", 16, false, "a 0+4 b 4+12 !", false },
    { "a:4 max_slots=5\nb:4 max_slots=6\n", 11, false, "a 0+5 b 5+6 !", false },
    { "a:4 max_slots=5\nb:4 max_slots=6\n", 12, false,
      "12 ranks are too many: with max_slots the hosts take 11", true },
    { "a:4 max_slots=4\n", 4, false, "a 0+4", false },
    { "a:4\nb:4\n", 8, true, "a 0+4 b 4+4", false },
    { "a:4\nb:4\n", 16, true, "16 ranks do not fit on 8 slots", true },
    { "a\n", 2, true, "2 ranks do not fit on 1 slot, and", true },
    { "a:1000000\n", 0, false, "a 0+1000000", false },
    { "a:1000000\nb\n", 0, false, "the hosts have more than 1000000 slots", true },
};

static const struct placing dealings[] = {
    { "a:4\nb:4\n", 8, false, "a 0,2,4,6 b 1,3,5,7", false },
    { "a:4\nb:4\n", 3, false, "a 0,2 b 1+1", false },
    { "a:4\nb:4\n", 1, false, "a 0+1", false },
    { "a:3\nb:1\nc:2\n", 0, false, "a 0,3,5 b 1+1 c 2,4", false },
    { "a:3\nb:1\nc:2\n", 4, false, "a 0,3 b 1+1 c 2+1", false },
    { "a:1\nb:3\n", 4, true, "a 0+1 b 1+3", false },
    /* slots first, then the host with the fewest ranks per slot; numbered in turn */
    { "a:3\nb:1\n", 5, false, "a 0,2-4 b 1+1 !", false },
    { "a:3\nb:1\n", 8, false, "a 0,2,4-7 b 1,3 !", false },
    { "a:2 max_slots=2\nb:1\n", 5, false, "a 0,2 b 1,3-4 !", false },
    { "a:2 max_slots=2\nb:1 max_slots=2\n", 5, false, "with max_slots the hosts take 4", true },
    { "a:4\nb:4\n", 9, true, "9 ranks do not fit on 8 slots", true },
    { "a:999999\nb:1\n", 0, false, "a 0,2-999999 b 1+1", false },
};

static const struct per_node {
    const char *hosts;
    int np;
    int per_node;
    enum dt_map_by map_by;
    bool no_oversubscribe;
    const char *want;
    bool fails;
} per_nodes[] = {
    { "a:4\nb:4\n", 0, 4, DT_MAP_BY_SLOT, false, "a 0+4 b 4+4", false },
    { "a:4\nb:4\n", 0, 1, DT_MAP_BY_SLOT, false, "a 0+1 b 1+1", false },
    { "a:4\nb:4\n", 0, 3, DT_MAP_BY_NODE, false, "a 0,2,4 b 1,3,5", false },
    { "a:4\nb:4\nc:4\n", 4, 2, DT_MAP_BY_NODE, false, "a 0,2 b 1,3", false },
    { "a:4\nb:1\nc:2\n", 0, 1, DT_MAP_BY_SLOT, true, "a 0+1 b 1+1 c 2+1", false },
    { "a:4\nb:4\nc:4\n", 4, 2, DT_MAP_BY_SLOT, false, "a 0+2 b 2+2", false },
    { "a:4\nb:4\n", 8, 4, DT_MAP_BY_SLOT, true, "a 0+4 b 4+4", false },
    { "a:8\nb:2\n", 0, 4, DT_MAP_BY_SLOT, false, "a 0+4 b 4+4 !", false },
    { "a:4\nb:2\n", 4, 4, DT_MAP_BY_SLOT, true, "a 0+4", false },
    { "a:4 max_slots=4\nb:2 max_slots=4\n", 0, 4, DT_MAP_BY_SLOT, false, "a 0+4 b 4+4 !", false },
    { "a:8\nb:2\n", 0, 4, DT_MAP_BY_SLOT, true,
      "4 ranks do not fit on the 2 slots of b, and --no-over", true },
    { "a:8\nb:2 max_slots=3\n", 0, 4, DT_MAP_BY_SLOT, false,
      "4 ranks are too many for b, whose max_slots is 3", true },
    { "a:4\nb:4\n", 9, 4, DT_MAP_BY_SLOT, false, "9 ranks are too many: 4 on each of 2 hosts are 8",
      true },
    { "a:4\nb:4\n", 6, 4, DT_MAP_BY_SLOT, false, "6 ranks cannot be placed with 4 on each host",
      true },
    { "a:4\nb:4\n", 2, 4, DT_MAP_BY_SLOT, false, "2 ranks cannot be placed with 4 on each host",
      true },
    { "a\n", 0, 1000000, DT_MAP_BY_SLOT, false, "a 0+1000000 !", false },
    { "a\nb\n", 0, 1000000, DT_MAP_BY_SLOT, false,
      "1000000 ranks on each of 2 hosts are more than 1000000", true },
};

static const struct serving {
    const char *hosts;
    int np;
    int servers;
    const char *want; /* "host ranks | auxiliaries"; or part of the error */
    bool fails;
} servings[] = {
    { "a:2\nb:2\n", 4, 0, "a 0-1 | b 2-3 |", false },
    { "a:2\nb:2\n", 4, 1, "a 0-1 | 4-5 b 2-3 |", false },
    { "a:2\nb:2\n", 4, DT_SERVERS_AS_RANKS, "a 0-1 | 4-5,7 b 2-3 | 6,8", false },
    { "a:2\nb:2\n", 2, DT_SERVERS_AS_RANKS, "a 0-1 | 2-4", false },
    { "a\nb\nc\n", 0, 5, "a 0 | 3-4,7 b 1 | 5,8 c 2 | 6", false },
    { "a:3 max_slots=3\n", 3, 2, "a 0-2 | 3-5", false },
    { "a\n", 1, 999999, "1 ranks, 999999 servers and a scheduler are more than 1000000", true },
    { "a:500000\n", 0, DT_SERVERS_AS_RANKS, "are more than 1000000 processes", true },
};

static void describe_ranks(struct dt_strbuf *b, const struct dt_u32s *ranks)
{
    if (ranks->v[ranks->n - 1] - ranks->v[0] == ranks->n - 1)
        dt_strbuf_printf(b, "%u+%u", ranks->v[0], ranks->n);
    else
        dt_words_list(b, ranks);
}

static const char *describe_plan(struct dt_strbuf *b, const struct dt_plan *plan,
                                 const struct dt_hostlist *hosts)
{
    dt_strbuf_consume(b, b->len);
    for (size_t i = 0; i < plan->nnodes; i++) {
        const struct dt_plan_node *n = &plan->nodes[i];

        assert_int_equal(n->node_rank, i);
        dt_strbuf_printf(b, "%s%s ", i ? " " : "", hosts->v[n->host].name);
        describe_ranks(b, &n->ranks);
    }
    if (plan->oversubscribed)
        dt_strbuf_puts(b, " !");
    return dt_strbuf_text(b);
}

static void check_placings(const struct placing *p, size_t n, enum dt_map_by map_by)
{
    struct dt_strbuf b = { 0 };

    for (; n--; p++) {
        struct dt_hostlist hosts = { 0 };
        const struct dt_placement how = { .map_by = map_by,
                                          .no_oversubscribe = p->no_oversubscribe };
        struct dt_plan plan;
        struct dt_error err = { 0 };
        int rc;

        assert_int_equal(dt_hostfile_parse(&hosts, "f", p->hosts, strlen(p->hosts), NULL), 0);
        rc = dt_plan_make(&plan, &hosts, p->np, &how, &err);
        if ((rc < 0) != p->fails)
            fail_msg("%s with %d ranks: rc %d, %s", p->hosts, p->np, rc, err.text);
        if (!p->fails)
            assert_string_equal(describe_plan(&b, &plan, &hosts), p->want);
        else if (!strstr(err.text, p->want) || err.exit_code != 2)
            fail_msg("%s with %d ranks: said: %s", p->hosts, p->np, err.text);
        dt_plan_free(&plan);
        dt_hostlist_free(&hosts);
    }
    dt_strbuf_free(&b);
}

static void describe_servers(struct dt_strbuf *b, const struct dt_plan *plan,
                             const struct dt_hostlist *hosts)
{
    for (size_t i = 0; i < plan->nnodes; i++) {
        const struct dt_plan_node *n = &plan->nodes[i];

        dt_strbuf_printf(b, "%s%s ", i ? " " : "", hosts->v[n->host].name);
        dt_words_list(b, &n->ranks);
        dt_strbuf_puts(b, n->auxiliaries.n ? " | " : " |");
        dt_words_list(b, &n->auxiliaries);
        for (uint32_t k = 0; k < n->auxiliaries.n; k++)
            assert_ptr_equal(dt_plan_node_of(plan, (int)n->auxiliaries.v[k]), n);
    }
    assert_null(dt_plan_node_of(plan, plan->nprocs));
}

static void servers_are_dealt_to_the_hosts_of_ranks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof servings / sizeof *servings; i++) {
        const struct serving *s = &servings[i];
        const struct dt_placement how = { .servers = s->servers };
        struct dt_hostlist hosts = { 0 };
        struct dt_plan plan, copy;
        struct dt_error err = { 0 };
        struct dt_strbuf b = { 0 };

        assert_int_equal(dt_hostfile_parse(&hosts, "f", s->hosts, strlen(s->hosts), NULL), 0);
        assert_int_equal(dt_plan_make(&plan, &hosts, s->np, &how, &err), s->fails ? -1 : 0);
        if (s->fails) {
            assert_non_null(strstr(err.text, s->want));
        } else {
            dt_plan_copy(&copy, &plan);
            describe_servers(&b, &copy, &hosts);
            assert_string_equal(dt_strbuf_text(&b), s->want);
            assert_int_equal(dt_plan_servers(&copy),
                             s->servers == DT_SERVERS_AS_RANKS ? plan.np : s->servers);
            dt_plan_free(&copy);
        }
        dt_strbuf_free(&b);
        dt_plan_free(&plan);
        dt_hostlist_free(&hosts);
    }
}

static void ranks_are_placed_in_blocks(void **state)
{
    (void)state;
    check_placings(placings, sizeof placings / sizeof *placings, DT_MAP_BY_SLOT);
}

static void ranks_are_dealt_to_the_hosts_in_turn(void **state)
{
    (void)state;
    check_placings(dealings, sizeof dealings / sizeof *dealings, DT_MAP_BY_NODE);
}

static void ranks_are_placed_per_node(void **state)
{
    struct dt_strbuf b = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof per_nodes / sizeof *per_nodes; i++) {
        const struct per_node *p = &per_nodes[i];
        struct dt_hostlist hosts = { 0 };
        const struct dt_placement how = { .map_by = p->map_by,
                                          .per_node = p->per_node,
                                          .no_oversubscribe = p->no_oversubscribe };
        struct dt_plan plan;
        struct dt_error err = { 0 };
        int rc;

        assert_int_equal(dt_hostfile_parse(&hosts, "f", p->hosts, strlen(p->hosts), NULL), 0);
        rc = dt_plan_make(&plan, &hosts, p->np, &how, &err);
        if ((rc < 0) != p->fails)
            fail_msg("%s with %d of %d: rc %d, %s", p->hosts, p->per_node, p->np, rc, err.text);
        if (!p->fails)
            assert_string_equal(describe_plan(&b, &plan, &hosts), p->want);
        else if (!strstr(err.text, p->want) || err.exit_code != 2)
            fail_msg("%s with %d of %d: said: %s", p->hosts, p->per_node, p->np, err.text);
        dt_plan_free(&plan);
        dt_hostlist_free(&hosts);
    }
    dt_strbuf_free(&b);
}

/* The rule in its simplest form: each further rank goes to the host with the fewest ranks per
 * slot. */
static void place_slowly(const int *slots, const int *max, int n, int np, int *ranks)
{
    int left = np;

    for (int i = 0; i < n; i++) {
        ranks[i] = left < slots[i] ? left : slots[i];
        left -= ranks[i];
    }
    for (; left; left--) {
        int best = -1;

        for (int i = 0; i < n; i++)
            if (!(max[i] && ranks[i] >= max[i]) &&
                (best < 0 || (long)ranks[i] * slots[best] < (long)ranks[best] * slots[i]))
                best = i;
        assert_true(best >= 0);
        ranks[best]++;
    }
}

/* Every rank has one place, and no node gets its next rank before all others that still take ranks
 * got theirs. */
static void check_turns(const struct dt_plan *plan)
{
    int placed = 0;

    for (uint32_t round = 0; placed < plan->np; round++) {
        for (size_t k = 0; k < plan->nnodes; k++) {
            const struct dt_plan_node *node = &plan->nodes[k];

            if (node->ranks.n <= round)
                continue;
            assert_int_equal(node->ranks.v[round], placed);
            assert_ptr_equal(dt_plan_node_of(plan, placed), node);
            assert_int_equal(dt_plan_local_rank(node, placed), round);
            placed++;
        }
    }
}

static void extra_ranks_go_where_the_load_is_lowest(void **state)
{
    unsigned seed = 12345;

    (void)state;
    for (int round = 0; round < 300; round++) {
        struct dt_hostlist hosts = { 0 };
        struct dt_plan plan;
        int slots[6], max[6] = { 0 }, ranks[6], n = round % 6 + 1, total = 0;

        for (int i = 0; i < n; i++) {
            char name[16];

            seed = seed * 1103515245 + 12345;
            slots[i] = (int)(seed >> 16) % 5 + 1;
            if (i && (seed >> 21) % 3 == 0)
                max[i] = slots[i] + (int)(seed >> 24) % 3;
            snprintf(name, sizeof name, "h%d", i);
            dt_hostlist_add(&hosts, name);
            hosts.v[i].slots = slots[i];
            hosts.v[i].max_slots = max[i];
            total += slots[i];
        }
        for (int np = 1; np <= 3 * total; np++) {
            uint32_t next = 0;

            place_slowly(slots, max, n, np, ranks);
            assert_int_equal(dt_plan_make(&plan, &hosts, np, &by_slot, NULL), 0);
            for (size_t k = 0; k < plan.nnodes; k++) {
                assert_int_equal(plan.nodes[k].ranks.v[0], next);
                assert_int_equal(plan.nodes[k].ranks.n, ranks[plan.nodes[k].host]);
                next += plan.nodes[k].ranks.n;
            }
            assert_int_equal(next, np);
            dt_plan_free(&plan);
            assert_int_equal(dt_plan_make(&plan, &hosts, np, &by_node, NULL), 0);
            check_turns(&plan);
            for (size_t k = 0; np >= total && k < plan.nnodes; k++)
                assert_int_equal(plan.nodes[k].ranks.n, ranks[plan.nodes[k].host]);
            dt_plan_free(&plan);
        }
        dt_hostlist_free(&hosts);
    }
}

static void node_of_finds_every_rank(void **state)
{
    struct dt_hostlist hosts = { 0 };
    struct dt_plan plan;
    static const size_t want[] = { 0, 0, 0, 1, 2, 2 };

    (void)state;
    assert_int_equal(dt_hostarg_parse(&hosts, "a:3,b:1,c:2", NULL), 0);
    assert_int_equal(dt_plan_make(&plan, &hosts, 0, &by_slot, NULL), 0);
    for (int rank = 0; rank < 6; rank++)
        assert_int_equal(dt_plan_node_of(&plan, rank)->host, want[rank]);
    assert_null(dt_plan_node_of(&plan, -1));
    assert_null(dt_plan_node_of(&plan, 6));
    dt_plan_free(&plan);
    dt_hostlist_free(&hosts);
}

static void a_copy_is_a_plan_of_its_own(void **state)
{
    struct dt_hostlist hosts = { 0 };
    struct dt_plan plan, copy;

    (void)state;
    assert_int_equal(dt_hostarg_parse(&hosts, "a:3,b:1,c:2", NULL), 0);
    assert_int_equal(dt_plan_make(&plan, &hosts, 0, &by_node, NULL), 0);
    dt_plan_copy(&copy, &plan);
    dt_plan_free(&plan);
    assert_int_equal(copy.np, 6);
    check_turns(&copy);
    dt_plan_free(&copy);
    dt_hostlist_free(&hosts);
}

static void no_hosts_is_an_error(void **state)
{
    struct dt_hostlist hosts = { 0 };
    struct dt_plan plan;
    struct dt_error err = { 0 };

    (void)state;
    assert_int_equal(dt_plan_make(&plan, &hosts, 1, &by_slot, &err), -1);
    assert_string_equal(err.text, "there is no host to run on");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_placed_in_blocks),
        cmocka_unit_test(servers_are_dealt_to_the_hosts_of_ranks),
        cmocka_unit_test(ranks_are_dealt_to_the_hosts_in_turn),
        cmocka_unit_test(ranks_are_placed_per_node),
        cmocka_unit_test(extra_ranks_go_where_the_load_is_lowest),
        cmocka_unit_test(node_of_finds_every_rank),
        cmocka_unit_test(a_copy_is_a_plan_of_its_own),
        cmocka_unit_test(no_hosts_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
