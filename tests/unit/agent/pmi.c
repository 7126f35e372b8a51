/* The agent's PMI-1 server in dialogues: what a rank sends and what it gets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/agent/mpi/pmi.h"
#include "tests/unit/unit.h"

enum { RANKS = 2, HEARD = 8192 };

struct seen {
    struct dt_pmi *pmi;
    char heard[RANKS][HEARD];
    char fence[HEARD];
    size_t fence_n;
    int fences;
    int aborted[RANKS]; /* exit code */
    bool inside[RANKS];
    int spawns;
};

static void on_reply(void *arg, uint32_t local_rank, const char *line, size_t n)
{
    struct seen *s = arg;
    size_t have = strlen(s->heard[local_rank]);

    assert_true(have + n < HEARD);
    memcpy(s->heard[local_rank] + have, line, n);
    s->heard[local_rank][have + n] = '\0';
}

static void on_fence(void *arg, const char *data, size_t n)
{
    struct seen *s = arg;

    assert_true(n < HEARD);
    memcpy(s->fence, data, n);
    s->fence[n] = '\0';
    s->fence_n = n;
    s->fences++;
}

static void on_abort(void *arg, uint32_t local_rank, int exit_code)
{
    ((struct seen *)arg)->aborted[local_rank] = exit_code;
}

static void on_state(void *arg, uint32_t local_rank, bool inside)
{
    ((struct seen *)arg)->inside[local_rank] = inside;
}

static void on_spawn_refused(void *arg, uint32_t local_rank)
{
    (void)local_rank;
    ((struct seen *)arg)->spawns++;
}

static int open_server(void **state)
{
    static const struct dt_pmi_ops ops = { on_reply, on_fence, on_abort, on_state,
                                           on_spawn_refused };
    static const struct dt_pmi_job job = {
        .name = "job.1", .mapping = "(vector,(0,2,2))", .universe = 4, .local_ranks = RANKS
    };
    struct seen *s = calloc(1, sizeof *s);

    s->pmi = dt_pmi_create(&job, &ops, s);
    *state = s;
    return 0;
}

static int close_server(void **state)
{
    struct seen *s = *state;

    dt_pmi_destroy(s->pmi);
    free(s);
    return 0;
}

static const char *say(struct seen *s, uint32_t rank, const char *text)
{
    return dt_pmi_input(s->pmi, rank, text, strlen(text));
}

static void expect(struct seen *s, uint32_t rank, const char *line)
{
    char want[HEARD];

    snprintf(want, sizeof want, "%s%s", line, *line ? "\n" : "");
    assert_string_equal(s->heard[rank], want);
    s->heard[rank][0] = '\0';
}

static void ask(struct seen *s, uint32_t rank, const char *request, const char *answer)
{
    char line[DT_PMI_LINE_MAX];

    snprintf(line, sizeof line, "%s\n", request);
    assert_null(say(s, rank, line));
    expect(s, rank, answer);
}

#define INIT "cmd=init pmi_version=1 pmi_subversion=1"

static void greet(struct seen *s)
{
    for (uint32_t rank = 0; rank < RANKS; rank++)
        ask(s, rank, INIT, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
}

static void simple_requests_are_answered(void **state)
{
    static const struct {
        const char *request, *answer;
    } cases[] = {
        { "cmd=get_maxes", "cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024" },
        { "cmd=get_appnum", "cmd=appnum rc=0 appnum=0" },
        { "cmd=get_my_kvsname", "cmd=my_kvsname rc=0 kvsname=job.1" },
        { "cmd=get_universe_size", "cmd=universe_size rc=0 size=4" },
        { "cmd=get kvsname=job.1 key=PMI_process_mapping",
          "cmd=get_result rc=0 msg=success value=(vector,(0,2,2))" },
        { "cmd=get kvsname=job.1 key=nobody",
          "cmd=get_result rc=-1 msg=key_not_found value=unknown" },
        { "cmd=get", "cmd=get_result rc=-1 msg=key_not_found value=unknown" },
        { "cmd=publish_name service=a port=b", "cmd=publish_result rc=-1 msg=not_supported" },
        { "cmd=unpublish_name service=a", "cmd=unpublish_result rc=-1 msg=not_supported" },
        { "cmd=lookup_name service=a", "cmd=lookup_result rc=-1 msg=not_supported" },
        { "cmd=finalize", "cmd=finalize_ack rc=0" },
    };
    struct seen *s = *state;

    greet(s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ask(s, 1, cases[i].request, cases[i].answer);
}

static void a_rank_is_inside_mpi_between_init_and_finalize(void **state)
{
    struct seen *s = *state;

    for (int program = 0; program < 2; program++) {
        ask(s, 0, INIT, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
        assert_true(s->inside[0]);
        ask(s, 0, "cmd=finalize", "cmd=finalize_ack rc=0");
        assert_false(s->inside[0]);
    }
    assert_false(s->inside[1]);
}

static void another_version_is_refused(void **state)
{
    struct seen *s = *state;

    ask(s, 0, "cmd=init pmi_version=2 pmi_subversion=0",
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1");
    assert_non_null(say(s, 0, "cmd=get_maxes\n"));
}

static void values_are_visible_after_the_barrier(void **state)
{
    static const char all[] = "card-2=c\ncard-0=host 1 port=7\ncard-1=\n";
    struct seen *s = *state;

    greet(s);
    ask(s, 0, "cmd=put kvsname=job.1 key=card-0 value=host 1 port=7",
        "cmd=put_result rc=0 msg=success");
    ask(s, 1, "cmd=put kvsname=job.1 key=card-1 value=", "cmd=put_result rc=0 msg=success");
    ask(s, 0, "cmd=barrier_in", "");
    assert_int_equal(s->fences, 0);
    ask(s, 1, "cmd=barrier_in", "");
    assert_int_equal(s->fences, 1);
    assert_string_equal(s->fence, "card-0=host 1 port=7\ncard-1=\n");
    assert_true(dt_pmi_fenced(s->pmi, all, strlen(all)));
    expect(s, 0, "cmd=barrier_out rc=0 msg=success");
    expect(s, 1, "cmd=barrier_out rc=0 msg=success");
    ask(s, 1, "cmd=get kvsname=job.1 key=card-0",
        "cmd=get_result rc=0 msg=success value=host 1 port=7");
    ask(s, 0, "cmd=get kvsname=job.1 key=card-1", "cmd=get_result rc=0 msg=success value=");
    ask(s, 0, "cmd=get kvsname=job.1 key=card-2", "cmd=get_result rc=0 msg=success value=c");
}

static void the_latest_value_wins_and_each_barrier_has_its_own(void **state)
{
    struct seen *s = *state;

    greet(s);
    for (int round = 0; round < 3; round++) {
        char line[64], data[64];

        snprintf(line, sizeof line, "cmd=put kvsname=job.1 key=k value=%d", round);
        ask(s, 0, line, "cmd=put_result rc=0 msg=success");
        ask(s, 1, "cmd=barrier_in", "");
        ask(s, 0, "cmd=barrier_in", "");
        snprintf(data, sizeof data, "k=%d\n", round);
        assert_string_equal(s->fence, data);
        assert_true(dt_pmi_fenced(s->pmi, s->fence, s->fence_n));
        expect(s, 0, "cmd=barrier_out rc=0 msg=success");
        expect(s, 1, "cmd=barrier_out rc=0 msg=success");
        snprintf(line, sizeof line, "cmd=get_result rc=0 msg=success value=%d", round);
        ask(s, 1, "cmd=get kvsname=job.1 key=k", line);
    }
}

static void requests_may_arrive_in_pieces(void **state)
{
    static const char text[] = INIT "\ncmd=put kvsname=job.1 key=a value=b=c d\ncmd=get_appnum\n";
    struct seen *s = *state;

    for (size_t i = 0; text[i]; i++)
        assert_null(dt_pmi_input(s->pmi, 0, &text[i], 1));
    expect(s, 0,
           "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
           "cmd=put_result rc=0 msg=success\ncmd=appnum rc=0 appnum=0");
}

static void values_that_are_too_long_are_refused(void **state)
{
    static const char refusal[] = "cmd=put_result rc=-1 msg=key_or_value_too_long";
    struct seen *s = *state;
    char line[DT_PMI_LINE_MAX];

    greet(s);
    snprintf(line, sizeof line, "cmd=put kvsname=job.1 key=%0*d value=v", DT_PMI_KEY_MAX, 0);
    ask(s, 0, line, refusal);
    snprintf(line, sizeof line, "cmd=put kvsname=job.1 key=k value=%0*d", DT_PMI_VALUE_MAX, 0);
    ask(s, 0, line, refusal);
    ask(s, 0, "cmd=put kvsname=job.1 value=v", refusal);
    ask(s, 0, "cmd=put kvsname=job.1 key= value=v", refusal);
}

static void the_longest_value_fits_everywhere(void **state)
{
    struct seen *s = *state;
    char line[DT_PMI_LINE_MAX], answer[DT_PMI_LINE_MAX];

    greet(s);
    snprintf(line, sizeof line, "cmd=put kvsname=job.1 key=%0*d value=%0*d", DT_PMI_KEY_MAX - 1, 0,
             DT_PMI_VALUE_MAX - 1, 0);
    ask(s, 0, line, "cmd=put_result rc=0 msg=success");
    ask(s, 0, "cmd=barrier_in", "");
    ask(s, 1, "cmd=barrier_in", "");
    assert_true(dt_pmi_fenced(s->pmi, s->fence, s->fence_n));
    expect(s, 0, "cmd=barrier_out rc=0 msg=success");
    snprintf(line, sizeof line, "cmd=get kvsname=job.1 key=%0*d", DT_PMI_KEY_MAX - 1, 0);
    snprintf(answer, sizeof answer, "cmd=get_result rc=0 msg=success value=%0*d",
             DT_PMI_VALUE_MAX - 1, 0);
    ask(s, 0, line, answer);
}

static void abort_reports_its_code(void **state)
{
    struct seen *s = *state;

    greet(s);
    ask(s, 1, "cmd=abort exitcode=3", "");
    assert_int_equal(s->aborted[1], 3);
    ask(s, 0, "cmd=abort", "");
    assert_int_equal(s->aborted[0], 1);
}

static void abort_may_have_a_reason_of_several_lines(void **state)
{
    struct seen *s = *state;

    greet(s);
    ask(s, 1,
        "cmd=abort exitcode=3 message=Fatal error in internal_Send: error stack:\n"
        "internal_Send(62970): MPI_Send(buf=0x7fff, count=1, MPI_INT, 2) failed",
        "");
    assert_null(say(s, 1, "internal_Send(62924): Invalid rank has "));
    assert_null(say(s, 1, "value 2\n"));
    assert_int_equal(s->aborted[1], 3);
    ask(s, 0, "cmd=get_appnum", "cmd=appnum rc=0 appnum=0");
}

static void spawn_is_refused_whatever_its_lines_say(void **state)
{
    struct seen *s = *state;

    greet(s);
    ask(s, 0, "mcmd=spawn", "");
    ask(s, 0, "nprocs=1", "");
    ask(s, 0, "execname=./child", "");
    ask(s, 0, "cmd=abort exitcode=9", "");
    assert_int_equal(s->aborted[0], 0);
    assert_null(say(s, 0, "endcmd\n"));
    assert_int_equal(strncmp(s->heard[0], "cmd=spawn_result rc=-1 ", 23), 0);
    s->heard[0][0] = '\0';
    assert_int_equal(s->spawns, 1);
    ask(s, 0, "cmd=get_appnum", "cmd=appnum rc=0 appnum=0");
}

static void nonsense_is_reported(void **state)
{
    static const char *const cases[] = { "hello\n",
                                         "cmd=\n",
                                         "cmd=dance\n",
                                         "\n",
                                         "endcmd\n",
                                         "cmd=init\n",
                                         "cmd=init pmi_version=one\n" };
    struct seen *s = *state;
    char line[DT_PMI_LINE_MAX + 1];

    assert_non_null(say(s, 1, "cmd=get_maxes\n")); /* before init */
    greet(s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_non_null(say(s, 0, cases[i]));
    memset(line, 'x', sizeof line);
    assert_non_null(dt_pmi_input(s->pmi, 0, line, sizeof line));
    assert_non_null(dt_pmi_input(s->pmi, 1, "", 1));
}

static void a_rank_enters_a_barrier_once(void **state)
{
    struct seen *s = *state;

    greet(s);
    ask(s, 0, "cmd=barrier_in", "");
    assert_non_null(say(s, 0, "cmd=barrier_in\n"));
    assert_int_equal(s->fences, 0);
}

static void puts_are_bounded(void **state)
{
    struct seen *s = *state;

    greet(s);
    for (int i = 0; i < DT_PMI_PUTS_MAX; i++)
        ask(s, 0, "cmd=put kvsname=job.1 key=k value=v", "cmd=put_result rc=0 msg=success");
    assert_non_null(say(s, 0, "cmd=put kvsname=job.1 key=k value=v\n"));
}

static void a_fence_that_makes_no_sense_is_refused(void **state)
{
    static const char *const cases[] = { "k", "k\n", "=v\n", "k=v", "k=v\nw\n" };
    struct seen *s = *state;

    greet(s);
    assert_false(dt_pmi_fenced(s->pmi, "", 0)); /* no rank waits */
    ask(s, 0, "cmd=barrier_in", "");
    assert_false(dt_pmi_fenced(s->pmi, "", 0));
    ask(s, 1, "cmd=barrier_in", "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_false(dt_pmi_fenced(s->pmi, cases[i], strlen(cases[i])));
    assert_false(dt_pmi_fenced(s->pmi, "k=\0v\n", 5));
    expect(s, 0, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_server, close_server)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(simple_requests_are_answered),
        TEST(a_rank_is_inside_mpi_between_init_and_finalize),
        TEST(another_version_is_refused),
        TEST(values_are_visible_after_the_barrier),
        TEST(the_latest_value_wins_and_each_barrier_has_its_own),
        TEST(requests_may_arrive_in_pieces),
        TEST(values_that_are_too_long_are_refused),
        TEST(the_longest_value_fits_everywhere),
        TEST(abort_reports_its_code),
        TEST(abort_may_have_a_reason_of_several_lines),
        TEST(spawn_is_refused_whatever_its_lines_say),
        TEST(nonsense_is_reported),
        TEST(a_rank_enters_a_barrier_once),
        TEST(puts_are_bounded),
        TEST(a_fence_that_makes_no_sense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
