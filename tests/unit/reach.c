/* Who probes whom, and which address of each host follows from what they found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/job/reach.h"
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

static void everybody_probes_neighbours_and_the_first(void **state)
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

/* Each node has two candidates. What was found is a list of "CALLER>TARGET@ADDRESS", with "!" at
 * the end where it failed. */
static const struct {
    uint32_t nodes;
    const char *found;
    enum dt_reach_outcome outcome;
    const char *chosen; /* a digit for each node, "-" for nowhere */
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
    /* each reaches node 1, but somewhere else */
    { 3, "0>1@0 0>2@0 1>2@0 1>0@0 2>0@0 2>1@0! 2>1@1", DT_REACH_DIVIDED, "0-0" },
    { 3, "0>1@0 0>2@0! 1>2@0 1>0@0 2>0@0 2>1@1", DT_REACH_CUT, NULL },
    /* the first is called by everybody, others by their neighbours */
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

static void one_address_of_each_that_all_reach(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_probes_neighbours_and_the_first),
        cmocka_unit_test(one_address_of_each_that_all_reach),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
