#include <errno.h>
#include <signal.h>

#include "launcher/base/error.h"
#include "launcher/job/state/exitpolicy.h"
#include "launcher/watch/cause.h"
#include "runtime/wire/msg.h"
#include "tests/unit/unit.h"

enum {
    LINKED = DT_EXITED_LINKED,
    FINAL = DT_EXITED_LINKED | DT_EXITED_FINALIZED,
    LOST = DT_EXITED_LINKED | DT_EXITED_PEER_LOST,
    STOPPED = DT_EXITED_STOPPED,
};

#define EXIT(r, c, f, t)                                                                           \
    {                                                                                              \
        .rank = r, .code = c, .flags = f, .time_ns = t                                             \
    }
#define KILLED(r, s, f, t)                                                                         \
    {                                                                                              \
        .rank = r, .code = -1, .signo = s, .flags = f, .time_ns = t                                \
    }
#define SAYS_PEER_LOST(r, c, s, t)                                                                 \
    {                                                                                              \
        .rank = r, .code = c, .signo = s, .time_ns = t, .says_peer_lost = true                     \
    }
#define AUXILIARY(r, c, s, t)                                                                      \
    {                                                                                              \
        .auxiliary = true, .rank = r, .code = c, .signo = s, .time_ns = t                          \
    }
#define HOST(r, t)                                                                                 \
    {                                                                                              \
        .host = true, .rank = r, .code = -1, .time_ns = t                                          \
    }

static const struct {
    const char *name;
    struct dt_death deaths[6];
    size_t n;
    bool peers_wait;
    int cause; /* index, or -1 */
    int exit_code;
} cases[] = {
    { "nothing died", { { 0 } }, 0, true, -1, 0 },
    { "all end well", { EXIT(0, 0, FINAL, 1), EXIT(1, 0, FINAL, 2) }, 2, true, -1, 0 },
    { "all end well, not linked", { EXIT(0, 0, 0, 1), EXIT(1, 0, 0, 2) }, 2, false, -1, 0 },
    { "one hangs, another gives up",
      { { .hung = true, .rank = 2, .code = -1, .time_ns = 9 },
        EXIT(0, 3, LOST, 8),
        EXIT(1, 1, LINKED, 7) },
      3,
      true,
      0,
      DT_EXIT_TIMEOUT },
    { "left without dt_init", { EXIT(2, 0, 0, 1) }, 1, true, 0, 1 },
    { "one failure", { EXIT(0, 0, 0, 1), EXIT(3, 7, 0, 2) }, 2, false, 1, 7 },
    { "the first of two", { EXIT(5, 4, 0, 20), EXIT(2, 3, 0, 10) }, 2, false, 1, 3 },
    { "same time: lowest rank", { EXIT(5, 4, 0, 10), EXIT(2, 3, 0, 10) }, 2, false, 1, 3 },
    { "signals come before exits",
      { EXIT(0, 1, 0, 1), EXIT(1, 1, 0, 2), KILLED(3, SIGSEGV, 0, 9) },
      3,
      false,
      2,
      128 + SIGSEGV },
    { "a linked peer's death is a consequence",
      { EXIT(0, 1, LOST, 1), EXIT(1, 9, LINKED, 9) },
      2,
      false,
      1,
      9 },
    { "also when it aborts",
      { KILLED(0, SIGABRT, LOST, 1), EXIT(1, 9, LINKED, 9) },
      2,
      false,
      1,
      9 },
    { "an exit that says that it is a consequence",
      { SAYS_PEER_LOST(0, 1, 0, 1), EXIT(1, 3, 0, 9) },
      2,
      false,
      1,
      3 },
    { "an abort that says so",
      { SAYS_PEER_LOST(0, -1, SIGABRT, 1), EXIT(1, 3, 0, 9) },
      2,
      false,
      1,
      3 },
    { "nothing explains it", { SAYS_PEER_LOST(0, 4, 0, 1), EXIT(1, 0, 0, 9) }, 2, false, 0, 4 },
    { "only consequences are known", { EXIT(1, 5, LOST, 2), EXIT(0, 6, LOST, 1) }, 2, true, 1, 6 },
    { "a consequence that exits 0", { EXIT(0, 0, LOST, 1) }, 1, true, 0, 1 },
    { "what dtrun stopped never failed",
      { KILLED(0, SIGTERM, STOPPED, 1), EXIT(1, 3, STOPPED, 2) },
      2,
      true,
      -1,
      0 },
    { "stopped ones do not hide the cause",
      { KILLED(0, SIGKILL, STOPPED, 1), EXIT(1, 3, 0, 2) },
      2,
      true,
      1,
      3 },
    { "left without dt_finalize", { EXIT(2, 0, LINKED, 1) }, 1, true, 0, 1 },
    { "left, and nobody waits", { EXIT(2, 0, LINKED, 1) }, 1, false, -1, 0 },
    { "left without MPI_Finalize, and MPI's other ranks end",
      { EXIT(2, 0, 0, 1), EXIT(1, 0, 0, 2) },
      2,
      false,
      -1,
      0 },
    { "left without MPI_Finalize, and others still run",
      { EXIT(2, 0, 0, 1), { .missed = "MPI_Finalize", .rank = 2, .time_ns = 1 } },
      2,
      false,
      1,
      1 },
    { "leaving outweighs its consequences",
      { EXIT(0, 1, LOST, 1), EXIT(2, 0, LINKED, 2) },
      2,
      true,
      1,
      1 },
    { "a real failure outweighs leaving",
      { EXIT(2, 0, LINKED, 1), EXIT(3, 8, LINKED, 2) },
      2,
      true,
      1,
      8 },
    { "a failure after dt_finalize is one", { EXIT(1, 2, FINAL, 1) }, 1, false, 0, 2 },
    { "an auxiliary that ends well", { AUXILIARY(4, 0, 0, 1) }, 1, true, -1, 0 },
    { "an auxiliary fails", { EXIT(0, 0, 0, 1), AUXILIARY(4, 3, 0, 2) }, 2, false, 1, 3 },
    { "an auxiliary is killed, and a rank exits of that",
      { EXIT(0, 1, 0, 1), AUXILIARY(4, -1, SIGKILL, 2) },
      2,
      false,
      1,
      128 + SIGKILL },
    { "a lost host comes before exits", { EXIT(0, 1, 0, 1), HOST(4, 5) }, 2, false, 1, 125 },
    { "the earlier of host and signal",
      { KILLED(1, SIGKILL, 0, 4), HOST(4, 5) },
      2,
      false,
      0,
      128 + SIGKILL },
};

static int find(const struct dt_death *deaths, size_t n, bool peers_wait)
{
    int cause = -1;

    for (size_t i = 0; i < n; i++)
        cause = dt_cause_next(deaths, cause, (int)i, peers_wait);
    return cause;
}

static void the_cause_and_its_exit_code_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int cause = find(cases[i].deaths, cases[i].n, cases[i].peers_wait);

        if (cause != cases[i].cause)
            fail_msg("%s: %d is taken for the cause", cases[i].name, cause);
        if (cause >= 0 && dt_exit_of_cause(&cases[i].deaths[cause]) != cases[i].exit_code)
            fail_msg("%s: the exit code is %d", cases[i].name,
                     dt_exit_of_cause(&cases[i].deaths[cause]));
    }
}

static void the_order_of_reports_does_not_matter(void **state)
{
    const struct dt_death d[3] = { EXIT(0, 1, 0, 1), KILLED(1, SIGBUS, 0, 3), EXIT(2, 2, LOST, 2) };
    static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                      { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct dt_death e[3] = { d[orders[i][0]], d[orders[i][1]], d[orders[i][2]] };

        assert_int_equal(e[find(e, 3, true)].rank, 1);
    }
}

static void lines_of_gloo_nccl_and_pytorch_say_that_a_peer_is_lost(void **state)
{
    static const char *const lost[] = {
        "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.7]:29",
        "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:589] Read error "
        "[10.0.0.7]:16271: Connection reset by peer",
        "  what():  [./gloo/transport/tcp/pair.cc:446] writev [10.0.0.7]:9: Broken pipe",
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, remote "
        "process exited or there was a network error, NCCL version 2.26.2",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process "
        "exiting prematurely.",
        "Connection was likely closed. Did the remote server shutdown or crash?",
    };
    static const char *const other[] = {
        "",
        "ValueError: loss is nan at step 20",
        "requests.exceptions.ConnectionError: Connection reset by peer",
        "BrokenPipeError: [Errno 32] Broken pipe",
        "RuntimeError: [./gloo/transport/tcp/pair.cc:799] connect [10.0.0.7]:9: Connection refused",
    };

    (void)state;
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        if (!dt_cause_line_says_peer_lost(lost[i]))
            fail_msg("not recognised: %s", lost[i]);
    }
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        if (dt_cause_line_says_peer_lost(other[i]))
            fail_msg("taken for a lost peer: %s", other[i]);
    }
}

static void a_line_says_that_the_rank_waited_too_long(void **state)
{
    static const char *const waited[] = {
        "RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 5000ms for "
        "recv operation to complete",
        "[rank7]:[E ProcessGroupNCCL.cpp:1414] [PG 0 Rank 7] Process group watchdog thread "
        "terminated with exception: [Rank 7] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
        "600017 milliseconds before timing out.",
    };

    (void)state;
    for (size_t i = 0; i < sizeof waited / sizeof *waited; i++)
        assert_true(dt_cause_line_says_timed_out(waited[i]));
    assert_false(dt_cause_line_says_timed_out("Timed out waiting 5 s for the licence server"));
    assert_false(dt_cause_line_says_timed_out("RuntimeError: [./gloo/transport/tcp/pair.cc:598] "
                                              "Connection closed by peer [10.0.0.7]:29"));
}

static void exit_codes_are_those_of_a_shell(void **state)
{
    (void)state;
    assert_int_equal(dt_exit_of_rank(0, 0), 0);
    assert_int_equal(dt_exit_of_rank(255, 0), 255);
    assert_int_equal(dt_exit_of_rank(-1, SIGSEGV), 139);
    assert_int_equal(dt_exit_of_spawn(DT_SPAWN_EXEC, ENOENT), 127);
    assert_int_equal(dt_exit_of_spawn(DT_SPAWN_EXEC, ENOTDIR), 127);
    assert_int_equal(dt_exit_of_spawn(DT_SPAWN_EXEC, EACCES), 126);
    assert_int_equal(dt_exit_of_spawn(DT_SPAWN_EXEC, ENOEXEC), 126);
    assert_int_equal(dt_exit_of_spawn(DT_SPAWN_WDIR, ENOENT), 125);
    assert_int_equal(dt_exit_of_spawn(DT_SPAWN_SYSTEM, EAGAIN), 125);
    assert_int_equal(dt_exit_of_spawn(DT_SPAWN_CHECKPOINT, EACCES), 125);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cause_and_its_exit_code_are_found),
        cmocka_unit_test(the_order_of_reports_does_not_matter),
        cmocka_unit_test(lines_of_gloo_nccl_and_pytorch_say_that_a_peer_is_lost),
        cmocka_unit_test(a_line_says_that_the_rank_waited_too_long),
        cmocka_unit_test(exit_codes_are_those_of_a_shell),
    };

    return cmocka_run_group_tests_name("cause", tests, NULL, NULL);
}
