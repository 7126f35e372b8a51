/* PMI_process_mapping: what dtrun writes, and where MPI finds each rank in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/place/mpimap.h"
#include "tests/unit/unit.h"

static const struct {
    const char *nodes; /* of each rank, a digit each */
    const char *want;
} cases[] = {
    { "0", "(vector,(0,1,1))" },
    { "000", "(vector,(0,1,3))" },
    { "0011", "(vector,(0,2,2))" },
    { "0101", "(vector,(0,2,1))" },
    { "012012012", "(vector,(0,3,1))" },
    { "01201201", "(vector,(0,3,1))" },
    { "0001", "(vector,(0,1,3),(1,1,1))" },
    { "00112", "(vector,(0,2,2),(2,1,1))" },
    { "010", "(vector,(0,2,1))" },
    { "01011", "(vector,(0,2,1),(0,1,1),(1,1,2))" },
    { "1100", "(vector,(1,1,2),(0,1,2))" },
};

static uint32_t node_of[4096], expanded[4096];

static uint32_t read_nodes(const char *text)
{
    uint32_t n = 0;

    for (; text[n]; n++)
        node_of[n] = (uint32_t)(text[n] - '0');
    return n;
}

/* Reads it as MPICH does: triple after triple, again from the first, until all ranks have a
 * node. */
static void assert_reads_back(const char *text, uint32_t np)
{
    const char *at = text + strlen("(vector,");
    uint32_t rank = 0;

    while (rank < np) {
        unsigned first, nodes, ranks;

        if (*at != '(')
            at = text + strlen("(vector,");
        assert_int_equal(sscanf(at, "(%u,%u,%u)", &first, &nodes, &ranks), 3);
        for (unsigned node = 0; node < nodes; node++) {
            for (unsigned i = 0; i < ranks && rank < np; i++)
                assert_int_equal(node_of[rank++], first + node);
        }
        at = strchr(at, ')') + 1;
        at += *at == ',';
    }
}

/* Makes the map and returns its text, which has been read back in both forms. */
static char *text_of(uint32_t np)
{
    struct dt_u32s map;
    char *text;

    dt_mpimap_make(&map, node_of, np);
    assert_true(dt_mpimap_expand(&map, 100, expanded, np));
    assert_memory_equal(expanded, node_of, np * sizeof *node_of);
    text = dt_mpimap_text(&map);
    if (*text)
        assert_reads_back(text, np);
    free(map.v);
    return text;
}

static void maps_are_written_short(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = text_of(read_nodes(cases[i].nodes));

        assert_string_equal(text, cases[i].want);
        free(text);
    }
}

static void invalid_maps_are_refused(void **state)
{
    static const struct {
        uint32_t n, words[6];
    } maps[] = { { 0, { 0 } },
                 { 2, { 0, 1 } },
                 { 3, { 0, 0, 1 } },
                 { 3, { 0, 1, 0 } },
                 { 3, { 2, 1, 1 } },
                 { 3, { 1, 2, 1 } },
                 { 3, { 1, UINT32_MAX, 1 } },
                 { 6, { 0, 1, 1, 0, 3, 1 } } };

    (void)state;
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        const struct dt_u32s map = { (uint32_t *)(uintptr_t)maps[i].words, maps[i].n };

        assert_false(dt_mpimap_expand(&map, 2, expanded, 4));
    }
}

/* All placements of up to 7 ranks on 3 nodes. */
static void every_map_reads_back(void **state)
{
    (void)state;
    for (uint32_t np = 1, count = 3; np <= 7; np++, count *= 3) {
        for (uint32_t placement = 0; placement < count; placement++) {
            for (uint32_t rank = 0, rest = placement; rank < np; rank++, rest /= 3)
                node_of[rank] = rest % 3;
            free(text_of(np));
        }
    }
}

static void a_map_that_is_too_long_is_left_out(void **state)
{
    char *text;

    (void)state;
    for (uint32_t rank = 0; rank < 4096; rank++)
        node_of[rank] = (rank / 3 * 7 + rank % 2) % 100;
    text = text_of(4096);
    assert_string_equal(text, "");
    free(text);
    for (uint32_t rank = 0; rank < 4096; rank++)
        node_of[rank] = rank % 99;
    text = text_of(4096);
    assert_string_equal(text, "(vector,(0,99,1))");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_are_written_short),
        cmocka_unit_test(every_map_reads_back),
        cmocka_unit_test(a_map_that_is_too_long_is_left_out),
        cmocka_unit_test(invalid_maps_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
