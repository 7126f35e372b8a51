/* The thresholds of host collectives: what a file says, and what a communicator makes of it. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "runtime/tuning.h"

struct refusals {
    unsigned n;
    unsigned line; /* of the last */
    char why[512];
};

static void refuse(void *arg, unsigned line, const char *why)
{
    struct refusals *r = arg;

    r->n++;
    r->line = line;
    snprintf(r->why, sizeof r->why, "%s", why);
}

static struct refusals read_text(struct dt_tuning_table *table, const char *text)
{
    struct refusals r = { 0 };

    *table = (struct dt_tuning_table){ 0 };
    dt_tuning_read(table, text, strlen(text), refuse, &r);
    return r;
}

static void built_in_without_a_file(void **state)
{
    static const struct dt_tuning_table none;
    struct dt_tuning t;

    (void)state;
    dt_tuning_choose(&t, &none, 4, 5);
    assert_memory_equal(&t, &dt_tuning_builtin, sizeof t);
    assert_int_equal(t.shm_small, 16384);
    dt_tuning_choose(&t, &none, 4, 2);
    assert_int_equal(t.net_exchange, 1048576);
}

static void an_entry_for_the_number_comes_first(void **state)
{
    static const struct {
        const char *text;
        uint32_t ranks, hosts;
        uint64_t small, exchange;
    } cases[] = {
        { "shm_small=1K", 2, 2, 1024, 1048576 },
        { " shm_small =  32K # measured\r\n\n# more\nnet_exchange = 5", 2, 2, 32768, 5 },
        { "shm_small[2] = 7\nshm_small = 9\n", 2, 1, 7, 0 },
        { "shm_small[2] = 7\nshm_small = 9\n", 3, 1, 9, 0 },
        { "shm_small [ 2] = 7", 2, 1, 16384, 0 },
        { "shm_small[2] = 7\nshm_small[2] = 0", 2, 1, 0, 0 },
        { "net_exchange[3] = 1M\nnet_exchange[2]=2G", 3, 2, 16384, UINT64_C(2) << 30 },
        { "net_exchange[3] = 1M", 2, 3, 16384, 1048576 },
        { "net_exchange[3] = 1M", 3, 4, 16384, 0 },
        { "", 3, 3, 16384, 8192 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_tuning_table table;
        struct dt_tuning t;

        read_text(&table, cases[i].text);
        dt_tuning_choose(&t, &table, cases[i].ranks, cases[i].hosts);
        assert_int_equal(t.shm_small, cases[i].small);
        assert_int_equal(t.net_exchange, cases[i].exchange);
        assert_int_equal(t.net_direct, dt_tuning_builtin.net_direct);
    }
}

static void wrong_lines_are_refused_and_the_others_hold(void **state)
{
    static const struct {
        const char *line;
        const char *why;
    } cases[] = {
        { "shm_smal = 1", "'shm_smal = 1': no threshold has this name" },
        { "= 1", "'= 1': no threshold has this name" },
        { "SHM_SMALL = 1", "'SHM_SMALL = 1': no threshold has this name" },
        { "shm_small 1", "'shm_small 1': name = value was expected" },
        { "shm_small", "'shm_small': name = value was expected" },
        { "shm_small[0] = 1", "'shm_small[0] = 1': in brackets stands a number of ranks or hosts" },
        { "shm_small[2 = 1", "'shm_small[2 = 1': in brackets stands a number of ranks or hosts" },
        { "net_spins =", "'net_spins =': the value is a number from 0 to 1000000; K, M and G are "
                         "units" },
        { "net_spins = -1", NULL },
        { "net_spins = 1x", NULL },
        { "net_spins = 1 K", NULL },
        { "net_spins = 1M", NULL },
        { "net_gather = 2M", NULL },
        { "shm_small = 99999999999999999999999999", NULL },
        { "shm_small = 999999999999999999G", NULL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_tuning_table table;
        struct refusals r;
        char text[256];

        snprintf(text, sizeof text, "shm_huge = 1\n%s\nshm_yields = 2", cases[i].line);
        r = read_text(&table, text);
        assert_int_equal(r.n, 1);
        assert_int_equal(r.line, 2);
        assert_int_equal(table.n, 2);
        assert_int_equal(table.entries[1].value, 2);
        if (cases[i].why)
            assert_string_equal(r.why, cases[i].why);
    }
}

static void there_is_an_end_to_lines_and_entries(void **state)
{
    struct dt_tuning_table table;
    char text[DT_TUNING_ENTRIES * 20 + 400] = "";
    struct refusals r;

    (void)state;
    memset(text, ' ', 201);
    assert_int_equal(read_text(&table, text).n, 1);
    text[200] = '\0';
    assert_int_equal(read_text(&table, text).n, 0);
    *text = '\0';
    for (int i = 0; i <= DT_TUNING_ENTRIES; i++)
        strcat(text, "shm_small = 1\n");
    r = read_text(&table, text);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.line, DT_TUNING_ENTRIES + 1);
    assert_int_equal(table.n, DT_TUNING_ENTRIES);
    table = (struct dt_tuning_table){ 0 };
    dt_tuning_read(&table, "shm_small\0 = 1\n", 15, refuse, &r);
    assert_int_equal(table.n, 0);
}

/* Of another version of the library. */
static void entries_that_make_no_sense_are_passed_over(void **state)
{
    struct dt_tuning_table table = { 3, { { 9999, 0, 1 }, { 0, 0, UINT64_MAX }, { 1, 0, 5 } } };
    struct dt_tuning t;

    (void)state;
    dt_tuning_choose(&t, &table, 1, 1);
    assert_int_equal(t.shm_small, dt_tuning_builtin.shm_small);
    assert_int_equal(t.shm_small_crowded, 5);
    table.n = UINT64_MAX;
    dt_tuning_choose(&t, &table, 1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_in_without_a_file),
        cmocka_unit_test(an_entry_for_the_number_comes_first),
        cmocka_unit_test(wrong_lines_are_refused_and_the_others_hold),
        cmocka_unit_test(there_is_an_end_to_lines_and_entries),
        cmocka_unit_test(entries_that_make_no_sense_are_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
