/* Which hosts probe which, and which address of each host follows from the results. */
#include <stdio.h>
#include <string.h>

#include "launcher/session/reach.h"
#include "tests/unit/unit.h"

static const struct {
    uint32_t nodes;
    const char *want; /* the targets of node 0, 1, ... */
} rings[] = {
    { 2, "1 | 0" },
    { 3, "1 2 | 2 0 | 0 1" },
    { 4, "1 3 | 2 0 | 3 1 0 | 0 2" },
    { 5, "1 4 | 2 0 | 3 1 0 | 4 2 0 | 0 3" },
};

static void every_host_probes_its_neighbours_and_the_first(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++) {
        char got[128] = "";

        for (uint32_t node = 0; node < rings[i].nodes; node++) {
            uint32_t targets[DT_REACH_TARGETS];
            uint32_t n = dt_reach_targets(node, rings[i].nodes, targets);

            for (uint32_t k = 0; k < n; k++)
                snprintf(got + strlen(got), sizeof got - strlen(got), "%s%u",
                         k      ? " "
                         : node ? " | "
                                : "",
                         targets[k]);
        }
        assert_string_equal(got, rings[i].want);
    }
}

/* Each node has two candidates. Results are a list of "CALLER>TARGET@ADDRESS", with "!" at the end
 * of a failure. */
static const struct {
    uint32_t nodes;
    const char *found;
    enum dt_reach_outcome outcome;
    const char *chosen; /* a digit for each node, "-" for none */
} cases[] = {
    { 1, "", DT_REACH_CHOSEN, "0" },
    { 2, "0>1@0 1>0@0", DT_REACH_CHOSEN, "00" },
    { 2, "0>1@0! 0>1@1 1>0@0", DT_REACH_CHOSEN, "01" },
    { 2, "0>1@0 0>1@1 1>0@1 1>0@0", DT_REACH_CHOSEN, "00" },
    { 2, "0>1@0! 0>1@1! 1>0@0", DT_REACH_CUT, NULL },
    { 2, "1>0@0", DT_REACH_CUT, NULL },
    { 2, "0>1@0 1>0@0!", DT_REACH_CUT, NULL },
    { 2, "0>1@7 1>0@0", DT_REACH_CUT, NULL }, /* no such address */
    { 3, "0>1@0 0>2@0 1>2@0 1>0@0 2>0@0 2>1@0", DT_REACH_CHOSEN, "000" },
    /* the second address is the only one that both callers reach */
    { 3, "0>1@0 0>1@1 0>2@0 1>2@0 1>0@0 2>0@0 2>1@0! 2>1@1", DT_REACH_CHOSEN, "010" },
    /* both reach node 1, but at different addresses */
    { 3, "0>1@0 0>2@0 1>2@0 1>0@0 2>0@0 2>1@0! 2>1@1", DT_REACH_DIVIDED, "0-0" },
    { 3, "0>1@0 0>2@0! 1>2@0 1>0@0 2>0@0 2>1@1", DT_REACH_CUT, NULL },
    /* every host calls the first one, and neighbours call the others */
    { 4, "0>1@0 0>3@0 1>2@0 1>0@1 2>3@0 2>1@0 2>0@1 3>0@1 3>2@0", DT_REACH_CHOSEN, "1000" },
    { 4, "0>1@0 0>3@0 1>2@0 1>0@1 2>3@0 2>1@0 2>0@0 3>0@1 3>2@0", DT_REACH_DIVIDED, "-000" },
    { 4, "0>1@0 0>3@0 1>2@0 1>0@1 2>3@0 2>1@0 2>0@1! 3>0@1 3>2@0", DT_REACH_CUT, NULL },
    { 4, "0>1@0 0>3@0 1>2@0 1>0@1 2>3@0! 2>1@0 2>0@1 3>0@1 3>2@0", DT_REACH_CUT, NULL },
};

static void found(struct dt_reach_node *nodes, const char *text)
{
    for (; *text; text += strcspn(text, " "), text += strspn(text, " ")) {
        struct dt_msg_list *list = &nodes[text[0] - '0'].results;
        struct dt_msg_reached *v = list->v;
        bool failed = text[strcspn(text, " ") - 1] == '!';

        v[list->n++] = (struct dt_msg_reached){
            .node = (uint32_t)(text[2] - '0'),
            .addr = (uint32_t)(text[4] - '0'),
            .state = failed ? DT_REACH_CONNECT : DT_REACH_OK,
        };
    }
}

/* Here "a>b" is a broken path. All others work. */
static const struct {
    uint32_t nodes;
    const char *broken;
    const char *out; /* the nodes that are left out */
} breaks[] = {
    { 2, "0>1", "1" },
    { 2, "1>0", "1" },
    { 2, "0>1 1>0", "1" },
    { 3, "1>2 2>1", "2" },
    { 3, "0>1 1>0", "1" },
    { 3, "0>1 0>2 1>0 2>0", "0" },
    { 3, "1>0 1>2", "1" },
    { 4, "3>0", "3" },
    { 4, "1>2 2>3", "2" },
    { 5, "1>0 2>0 3>0 4>0", "0" },
    { 6, "1>2 2>1 4>5", "25" },
    { 4, "0>1 0>3 1>2 1>0 2>3 2>1 2>0 3>0 3>2", "02" }, /* no host tried the path from 1 to 3 */
};

static void hosts_with_the_most_broken_paths_are_left_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
        struct dt_reach_node nodes[6] = { 0 };
        struct dt_msg_reached results[6][DT_REACH_TARGETS];
        uint32_t targets[DT_REACH_TARGETS];
        bool out[6] = { false };
        char got[7] = "";

        for (uint32_t k = 0; k < breaks[i].nodes; k++) {
            nodes[k].candidates.n = 1;
            nodes[k].results.v = results[k];
            for (uint32_t t = dt_reach_targets(k, breaks[i].nodes, targets); t-- > 0;) {
                char way[4] = { (char)('0' + k), '>', (char)('0' + targets[t]), '\0' };

                results[k][nodes[k].results.n++] = (struct dt_msg_reached){
                    .node = targets[t],
                    .state = strstr(breaks[i].broken, way) ? DT_REACH_CONNECT : DT_REACH_OK,
                };
            }
        }
        assert_int_equal(dt_reach_choose(nodes, breaks[i].nodes), DT_REACH_CUT);
        dt_reach_leave_out(nodes, breaks[i].nodes, out);
        for (uint32_t k = 0; k < breaks[i].nodes; k++)
            if (out[k])
                strcat(got, (char[]){ (char)('0' + k), '\0' });
        if (strcmp(got, breaks[i].out) != 0)
            fail_msg("%s: %s is left out", breaks[i].broken, got);
    }
}

/* All reach node 1, but at different addresses. */
static void a_host_whose_callers_disagree_is_left_out(void **state)
{
    struct dt_msg_reached results[3][4];
    struct dt_reach_node nodes[3] = { 0 };
    bool out[3] = { false };

    (void)state;
    for (uint32_t k = 0; k < 3; k++) {
        nodes[k].candidates.n = 2;
        nodes[k].results.v = results[k];
    }
    found(nodes, "0>1@0 0>2@0 1>2@0 1>0@0 2>0@0 2>1@0! 2>1@1");
    assert_int_equal(dt_reach_choose(nodes, 3), DT_REACH_DIVIDED);
    dt_reach_leave_out(nodes, 3, out);
    assert_true(!out[0] && out[1] && !out[2]);
}

static void an_address_that_all_reach_is_chosen(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_reach_node nodes[4] = { 0 };
        struct dt_msg_reached results[4][16];
        char chosen[5] = "";
        enum dt_reach_outcome outcome;

        for (uint32_t k = 0; k < cases[i].nodes; k++) {
            nodes[k].candidates.n = 2;
            nodes[k].results.v = results[k];
        }
        found(nodes, cases[i].found);
        outcome = dt_reach_choose(nodes, cases[i].nodes);
        for (uint32_t k = 0; k < cases[i].nodes; k++)
            chosen[k] = nodes[k].chosen == DT_REACH_NOWHERE ? '-' : (char)('0' + nodes[k].chosen);
        if (outcome != cases[i].outcome || (cases[i].chosen && strcmp(chosen, cases[i].chosen)))
            fail_msg("%s: outcome %d, chosen %s", cases[i].found, (int)outcome, chosen);
    }
}

/* No node takes part in two measurements of a round. */
static void each_node_measures_in_one_round(void **state)
{
    (void)state;
    assert_int_equal(dt_reach_rounds(0), 0);
    assert_int_equal(dt_reach_rounds(1), 0);
    for (size_t n = 2; n < 20; n++) {
        size_t rounds = dt_reach_rounds(n);

        assert_int_equal(rounds, n % 2 ? 3 : 2);
        for (size_t i = 0; i < n; i++)
            assert_true(dt_reach_round_of(i, n) < rounds);
        for (size_t round = 0; round < rounds; round++) {
            int parts[20] = { 0 };

            for (size_t i = 0; i < n; i++) {
                bool measures = dt_reach_round_of(i, n) == round;

                parts[i] += measures;
                parts[(i + 1) % n] += measures;
                assert_in_range(parts[i], 0, 1);
                assert_in_range(parts[(i + 1) % n], 0, 1);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_node_measures_in_one_round),
        cmocka_unit_test(every_host_probes_its_neighbours_and_the_first),
        cmocka_unit_test(an_address_that_all_reach_is_chosen),
        cmocka_unit_test(hosts_with_the_most_broken_paths_are_left_out),
        cmocka_unit_test(a_host_whose_callers_disagree_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
