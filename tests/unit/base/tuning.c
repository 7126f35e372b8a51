/* The thresholds of host collectives: what a file sets, and what a communicator derives from it. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/api/context.h"
#include "runtime/base/tuningfile.h"
#include "runtime/dtrun_tune.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

struct refusals {
    unsigned n;
    unsigned line; /* of the last message */
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

static void built_in_thresholds_hold_without_a_file(void **state)
{
    static const struct dt_tuning_table none;
    struct dt_tuning t;

    (void)state;
    dt_tuning_choose(&t, &none, 4, 5);
    assert_memory_equal(&t, &dt_tuning_builtin, sizeof t);
    assert_int_equal(t.shm_small, 4096);
    dt_tuning_choose(&t, &none, 4, 2);
    assert_int_equal(t.net_exchange, 1048576);
    assert_int_equal(t.net_leader, 256 * 1024);
    dt_tuning_choose(&t, &none, 4, 3);
    assert_int_equal(t.net_exchange, 32768);
    assert_int_equal(t.net_leader, 2 * 1024 * 1024);
}

static void an_entry_sets_the_number_of_streams(void **state)
{
    static const struct {
        const char *text;
        uint64_t want;
    } cases[] = {
        { "", 1 },
        { "net_streams = 4", 4 },
        { "net_streams[2] = 3", 3 },
        { "net_streams[3] = 4", 1 },
        { "net_streams = 17", 1 }, /* refused */
    };
    struct dt_tuning_table table;
    struct dt_tuning t;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_text(&table, cases[i].text);
        dt_tuning_choose(&t, &table, 1, 2);
        assert_int_equal(t.net_streams, cases[i].want);
    }
}

static void an_entry_for_this_number_of_ranks_wins(void **state)
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
        { "shm_small [ 2] = 7", 2, 1, 4096, 0 },
        { "shm_small[2] = 7\nshm_small[2] = 0", 2, 1, 0, 0 },
        { "net_exchange[3] = 1M\nnet_exchange[2]=2G", 3, 2, 4096, UINT64_C(2) << 30 },
        { "net_exchange[3] = 1M", 2, 3, 4096, 1048576 },
        { "net_exchange[3] = 1M", 3, 4, 4096, 0 },
        { "", 3, 3, 4096, 32768 },
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

static void wrong_lines_are_refused_and_the_others_count(void **state)
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
        { "shm_small[0] = 1",
          "'shm_small[0] = 1': the brackets must hold a number of ranks or hosts" },
        { "shm_small[2 = 1",
          "'shm_small[2 = 1': the brackets must hold a number of ranks or hosts" },
        { "shm_yields = 1", "'shm_yields = 1': no threshold has this name" }, /* it existed once */
        { "net_streams =", "'net_streams =': the value is a number from 0 to 16; K, M and G are "
                           "units" },
        { "net_leader = -1", NULL },
        { "net_leader = 1x", NULL },
        { "net_leader = 1 K", NULL },
        { "net_streams = 1K", NULL },
        { "net_direct = 1025G", NULL },
        { "shm_small = 99999999999999999999999999", NULL },
        { "shm_small = 999999999999999999G", NULL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_tuning_table table;
        struct refusals r;
        char text[256];

        snprintf(text, sizeof text, "shm_huge = 1\n%s\nshm_direct = 2", cases[i].line);
        r = read_text(&table, text);
        assert_int_equal(r.n, 1);
        assert_int_equal(r.line, 2);
        assert_int_equal(table.n, 2);
        assert_int_equal(table.entries[1].value, 2);
        if (cases[i].why)
            assert_string_equal(r.why, cases[i].why);
    }
}

static void lines_and_entries_are_bounded(void **state)
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

/* Entries of another version of the library. */
static void entries_that_make_no_sense_are_skipped(void **state)
{
    struct dt_tuning_table table = {
        .n = 3,
        .entries = { { 9999, 0, 1 }, { 0, 0, UINT64_MAX }, { 1, 0, 5 } },
    };
    struct dt_tuning t;

    (void)state;
    dt_tuning_choose(&t, &table, 1, 1);
    assert_int_equal(t.shm_small, dt_tuning_builtin.shm_small);
    assert_int_equal(t.shm_direct, 5);
    table.n = UINT64_MAX;
    dt_tuning_choose(&t, &table, 1, 1);
}

static uint64_t direct_reduce_of(const struct dt_tuning_table *table, uint32_t ranks)
{
    struct dt_tuning t;

    dt_tuning_choose(&t, table, ranks, 1);
    return t.shm_direct_reduce;
}

static void two_ranks_copy_directly_where_sharing_is_slow(void **state)
{
    struct dt_tuning_table table;

    (void)state;
    read_text(&table, "");
    assert_int_equal(direct_reduce_of(&table, 2), dt_tuning_builtin.shm_direct_reduce);
    table.slow_sharing = 1;
    assert_int_equal(direct_reduce_of(&table, 2), 16384);
    assert_int_equal(direct_reduce_of(&table, 3), dt_tuning_builtin.shm_direct_reduce);
    read_text(&table, "shm_direct_reduce = 7M");
    table.slow_sharing = 1;
    assert_int_equal(direct_reduce_of(&table, 2), 7 << 20);
}

static bool is_of_intel(void)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[1024];
    bool found = false;

    assert_non_null(f);
    while (!found && fgets(line, sizeof line, f))
        found = strstr(line, "GenuineIntel") != NULL;
    fclose(f);
    return found;
}

static void fail_for(void *arg, const char *text)
{
    (void)arg;
    fail_msg("%s", text);
}

static void sharing_is_slow_on_processors_of_intel(void **state)
{
    struct dt_tuning_table table = { 0 };

    (void)state;
    dt_tuningfile_read(&table, fail_for, NULL);
    assert_int_equal(table.slow_sharing != 0, is_of_intel());
}

/* ---- in a job ---- */

static char directory[] = "/tmp/dtrun-tuning-XXXXXX";

static char *path_of(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(path_of(name), "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* Every host has its own thresholds. Those of rank 0 hold, in calls that would hang or give wrong
 * sums if ranks used different ones. */
static int rank_among_others(int rank, void *arg)
{
    enum { COUNT = 10000 };
    static int64_t sums[COUNT];
    struct dt_comm *c;

    (void)arg;
    setenv("DTRUN_TUNING", path_of(rank == 0 ? "first" : rank % 2 ? "second" : "absent"), 1);
    NEED(dt_init() == DT_OK);
    NEED(dt_context_enter("test", DT_WORLD, &c) == DT_OK);
    NEED(c->tuning.shm_small == (c->local_size == 2 ? 100 : 3));
    NEED(c->tuning.net_exchange == (c->nodes == 3 ? 200 : 7));
    NEED(c->tuning.net_direct == dt_tuning_builtin.net_direct);
    dt_context_leave(c);
    for (size_t count = 1; count < COUNT; count = count * 3 + 1) {
        for (size_t i = 0; i < count; i++)
            sums[i] = (int64_t)i + rank;
        NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, sums, count, DT_I64, DT_SUM) == DT_OK);
        for (size_t i = 0; i < count; i++)
            NEED(sums[i] == (int64_t)i * dt_size() + dt_size() * (dt_size() - 1) / 2);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void the_file_of_rank_0_holds_for_all(void **state)
{
    static const char *const placements[] = { "2", "3", "2 1", "2 1 2", "1 3 2 1" };

    (void)state;
    write_file("first", "shm_small = 3\nshm_small[2] = 100\n"
                        "net_exchange = 7\nnet_exchange[3] = 200\n");
    write_file("second", "shm_small = 1M\nnet_exchange = 1M\nnet_direct = 1\n");
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++)
        testjob_must_pass(placements[i], rank_among_others, NULL);
}

static int rank_that_tunes(int rank, void *arg)
{
    dt_comm_t *comm;
    struct dt_comm *c;
    int64_t sums[500];

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    NEED(dt_comm_tune(comm, rank ? "no = line" : "shm_small = 8\nnet_exchange = 9") == DT_OK);
    NEED(dt_comm_tune(comm, "net_direct = 10") == DT_OK);
    NEED(dt_comm_tune(comm, NULL) == DT_OK);
    NEED(dt_comm_tune(comm, "net_streams = 3") == DT_OK);
    NEED(dt_comm_tune(comm, rank ? NULL : "net_direct = 11\nx") == DT_ERR_ARG);
    if (rank == 0)
        NEED(strcmp(dt_last_error(), "dt_comm_tune: line 2: 'x': no threshold has this name") == 0);
    NEED(dt_context_enter("test", comm, &c) == DT_OK);
    NEED(c->tuning.shm_small == 8 && c->tuning.net_exchange == 9 && c->tuning.net_direct == 10);
    dt_context_leave(c);
    NEED(dt_context_enter("test", DT_WORLD, &c) == DT_OK);
    NEED(c->tuning.shm_small == dt_tuning_builtin.shm_small);
    dt_context_leave(c);
    for (int i = 0; i < 500; i++)
        sums[i] = i + rank;
    NEED(dt_all_reduce(comm, DT_IN_PLACE, sums, 500, DT_I64, DT_SUM) == DT_OK);
    for (int i = 0; i < 500; i++)
        NEED(sums[i] == i * dt_size() + dt_size() * (dt_size() - 1) / 2);
    NEED(dt_comm_free(comm) == DT_OK);
    NEED(dt_comm_tune(comm, "") == DT_ERR_STATE);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_communicator_has_its_own_thresholds(void **state)
{
    static const char *const placements[] = { "1", "3", "1 1", "2 1 2" };

    (void)state;
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++)
        testjob_must_pass(placements[i], rank_that_tunes, NULL);
}

static int rank_with_file(int rank, void *arg)
{
    (void)rank;
    if (*(const char *)arg)
        setenv("DTRUN_TUNING", path_of(arg), 1);
    NEED(dt_init() == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void mistakes_in_the_file_are_reported_once(void **state)
{
    static const struct {
        const char *name;
        const char *log; /* what follows the file's name */
    } cases[] = {
        { "wrong", ":2: 'x = y': no threshold has this name: this line is ignored" },
        { "absent",
          ": No such file or directory: the built-in thresholds are used (DTRUN_TUNING names "
          "this file)" },
        { "pipe",
          ": this is not a regular file: the built-in thresholds are used (DTRUN_TUNING names "
          "this file)" },
        { "many", ":8: there are more wrong lines" },
        { "long", ": more than 64 KiB: the built-in thresholds are used" },
    };
    int fd;

    (void)state;
    write_file("wrong", "# nothing\nx = y\n");
    write_file("many", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
    write_file("long", "");
    fd = open(path_of("long"), O_WRONLY);
    assert_true(fd >= 0 && ftruncate(fd, 64 * 1024 + 1) == 0);
    close(fd);
    assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct testjob_plan plan = { .hosts = "2", .body = rank_with_file };
        struct testjob_result result;
        char want[512];

        plan.arg = (void *)(uintptr_t)cases[i].name;
        assert_int_equal(testjob_run(&plan, &result), 0);
        snprintf(want, sizeof want, "%s%s", path_of(cases[i].name), cases[i].log);
        assert_non_null(strstr(result.log, want));
        assert_null(strstr(strstr(result.log, want) + 1, want));
        assert_int_equal(result.ranks[0].status, 0);
    }
}

static int rank_with_a_text_for_a_path(int rank, void *arg)
{
    char longer[6001] = "";

    (void)rank;
    (void)arg;
    memset(longer, 'x', sizeof longer - 1);
    setenv("DTRUN_TUNING", longer, 1);
    NEED(dt_init() == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_path_that_is_too_long_is_reported(void **state)
{
    struct testjob_plan plan = { .hosts = "2", .body = rank_with_a_text_for_a_path };
    struct testjob_result result;

    (void)state;
    assert_int_equal(testjob_run(&plan, &result), 0);
    assert_non_null(strstr(result.log, "DTRUN_TUNING is longer than a path can be (4095 "));
    assert_int_equal(result.ranks[0].status, 0);
}

static void the_tuning_file_is_found(void **state)
{
    char path[DT_TUNINGFILE_PATH], longer[DT_TUNINGFILE_PATH + 1] = "";

    (void)state;
    unsetenv("DTRUN_TUNING");
    setenv("HOME", directory, 1);
    assert_true(dt_tuningfile_own(path));
    assert_string_equal(path, path_of(".config/dtrun/tuning"));
    assert_true(dt_tuningfile_find(path) == DT_TUNINGFILE_NONE ||
                strcmp(path, "/etc/dtrun/tuning") == 0);
    assert_int_equal(mkdir(path_of(".config"), 0700), 0);
    assert_int_equal(mkdir(path_of(".config/dtrun"), 0700), 0);
    write_file(".config/dtrun/tuning", "");
    assert_int_equal(dt_tuningfile_find(path), DT_TUNINGFILE_THERE);
    assert_string_equal(path, path_of(".config/dtrun/tuning"));
    setenv("DTRUN_TUNING", "x", 1);
    assert_int_equal(dt_tuningfile_find(path), DT_TUNINGFILE_NAMED);
    assert_string_equal(path, "x");
    setenv("DTRUN_TUNING", "", 1);
    assert_int_equal(dt_tuningfile_find(path), DT_TUNINGFILE_NONE);
    memset(longer, '/', sizeof longer - 1);
    setenv("DTRUN_TUNING", longer, 1);
    assert_int_equal(dt_tuningfile_find(path), DT_TUNINGFILE_TOO_LONG);
    longer[DT_TUNINGFILE_PATH - 1] = '\0';
    setenv("DTRUN_TUNING", longer, 1);
    assert_int_equal(dt_tuningfile_find(path), DT_TUNINGFILE_NAMED);
    unsetenv("HOME");
    assert_false(dt_tuningfile_own(path));
}

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    static const char *const names[] = {
        "first", "second", "wrong", "many", "long", "pipe", ".config/dtrun/tuning"
    };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(path_of(names[i]));
    rmdir(path_of(".config/dtrun"));
    rmdir(path_of(".config"));
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_in_thresholds_hold_without_a_file),
        cmocka_unit_test(an_entry_sets_the_number_of_streams),
        cmocka_unit_test(an_entry_for_this_number_of_ranks_wins),
        cmocka_unit_test(wrong_lines_are_refused_and_the_others_count),
        cmocka_unit_test(lines_and_entries_are_bounded),
        cmocka_unit_test(entries_that_make_no_sense_are_skipped),
        cmocka_unit_test(two_ranks_copy_directly_where_sharing_is_slow),
        cmocka_unit_test(sharing_is_slow_on_processors_of_intel),
        cmocka_unit_test(the_file_of_rank_0_holds_for_all),
        cmocka_unit_test(a_communicator_has_its_own_thresholds),
        cmocka_unit_test(mistakes_in_the_file_are_reported_once),
        cmocka_unit_test(a_path_that_is_too_long_is_reported),
        cmocka_unit_test(the_tuning_file_is_found),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
