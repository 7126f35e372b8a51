/* Words of messages, and what signals mean. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "launcher/watch/signal_meaning.h"
#include "launcher/watch/words.h"
#include "tests/unit/unit.h"

static void durations_have_at_most_two_units(void **state)
{
    static const struct {
        double seconds;
        const char *want;
    } cases[] = {
        { -1, "0 ms" },        { 0.0071, "7 ms" },      { 0, "0 ms" },
        { 0.214, "0.21 s" },   { 3.44, "3.4 s" },       { 9.94, "9.9 s" },
        { 42.4, "42 s" },      { 252, "4 min 12 s" },   { 59.7, "1 min 0 s" },
        { 3600, "1 h 0 min" }, { 11520, "3 h 12 min" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_strbuf b = { 0 };

        dt_words_duration(&b, cases[i].seconds);
        assert_string_equal(dt_strbuf_text(&b), cases[i].want);
        dt_strbuf_free(&b);
    }
}

static void bytes_have_binary_units(void **state)
{
    static const struct {
        double bytes;
        const char *want;
    } cases[] = {
        { 0, "0 B" },
        { 1023, "1023 B" },
        { 1024, "1.0 KiB" },
        { 10188, "9.9 KiB" },
        { 10189, "10 KiB" },
        { 1024 * 1023.4, "1023 KiB" },
        { 1024 * 1023.6, "1.0 MiB" },
        { 512.0 * (1 << 30), "512 GiB" },
        { 1.2e12, "1.1 TiB" },
        { 3e19, "26645 PiB" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_strbuf b = { 0 };

        dt_words_bytes(&b, cases[i].bytes);
        assert_string_equal(dt_strbuf_text(&b), cases[i].want);
        dt_strbuf_free(&b);
    }
}

static void bit_rates_have_decimal_units(void **state)
{
    static const struct {
        double bits;
        const char *want;
    } cases[] = {
        { 0, "0 bit/s" },        { 999.4, "999 bit/s" },   { 1000, "1.0 kbit/s" },
        { 41.9e6, "42 Mbit/s" }, { 9.81e9, "9.8 Gbit/s" }, { 9.96e9, "10 Gbit/s" },
        { 97e9, "97 Gbit/s" },   { 5e15, "5000 Tbit/s" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_strbuf b = { 0 };

        dt_words_bits(&b, cases[i].bits);
        assert_string_equal(dt_strbuf_text(&b), cases[i].want);
        dt_strbuf_free(&b);
    }
}

static void counts_take_the_plural(void **state)
{
    struct dt_strbuf b = { 0 };

    (void)state;
    dt_words_count(&b, 1, "step");
    dt_strbuf_puts(&b, ", ");
    dt_words_count(&b, 0, "rank");
    assert_string_equal(dt_strbuf_text(&b), "1 step, 0 ranks");
    dt_strbuf_free(&b);
}

static void ranks_are_listed_as_ranges(void **state)
{
    static const struct {
        const char *want;
        uint32_t n;
        uint32_t v[20];
    } cases[] = {
        { "rank 4", 1, { 4 } },
        { "ranks 4-7", 4, { 4, 5, 6, 7 } },
        { "ranks 0,4,8", 3, { 0, 4, 8 } },
        { "ranks 0-1,4,6-8", 6, { 0, 1, 4, 6, 7, 8 } },
        { "ranks 0,2,4,6,8,10,12,14,16", 9, { 0, 2, 4, 6, 8, 10, 12, 14, 16 } },
        { "ranks 0,2,4,6,8,10,12,14,...,18", 10, { 0, 2, 4, 6, 8, 10, 12, 14, 16, 18 } },
        { "ranks 0,2,4,6,8,10,12,14,...,20-21", 11, { 0, 2, 4, 6, 8, 10, 12, 14, 18, 20, 21 } },
    };
    struct dt_strbuf b = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dt_u32s ranks = { (uint32_t *)(uintptr_t)cases[i].v, cases[i].n };

        dt_strbuf_consume(&b, b.len);
        dt_words_ranks(&b, &ranks);
        assert_string_equal(dt_strbuf_text(&b), cases[i].want);
    }
    dt_strbuf_free(&b);
}

static void a_death_names_its_cause_and_step(void **state)
{
    static const struct {
        struct dt_death death;
        const char *want;
    } cases[] = {
        { { .rank = 5, .code = -1, .signo = SIGKILL, .step = 153 },
          "rank 5 (h, pid 47) was killed by signal 9 (SIGKILL) at step 153" },
        { { .rank = 3, .code = 7, .step = -1 }, "rank 3 (h, pid 47) exited with code 7" },
        { { .code = -1, .signo = SIGSEGV, .step = -1, .flags = DT_EXITED_CORE },
          "rank 0 (h, pid 47) was killed by signal 11 (SIGSEGV: Segmentation fault), core dumped" },
        { { .code = -1, .signo = SIGKILL, .step = -1, .flags = DT_EXITED_OOM },
          "rank 0 (h, pid 47) was killed by the kernel: out of memory" },
        { { .code = 137, .step = -1, .flags = DT_EXITED_OOM },
          "rank 0 (h, pid 47) exited with code 137 after the kernel had killed a process there: "
          "out "
          "of memory" },
        { { .code = 0, .step = 9, .flags = DT_EXITED_LINKED },
          "rank 0 (h, pid 47) exited without dt_finalize (the other ranks wait for it) at step "
          "9" },
        { { .code = 0, .step = -1 },
          "rank 0 (h, pid 47) exited without dt_init (the other ranks wait for it)" },
        { { .missed = "MPI_Finalize", .step = -1 },
          "rank 0 (h, pid 47) exited without MPI_Finalize (the other ranks wait for it)" },
        { { .code = 1, .step = -1, .flags = DT_EXITED_LINKED | DT_EXITED_PEER_LOST },
          "rank 0 (h, pid 47) exited with code 1 because another rank was lost" },
        { { .code = -1, .signo = SIGKILL, .step = 50, .flags = DT_EXITED_INJECTED },
          "rank 0 (h, pid 47) was killed by signal 9 (SIGKILL) (--inject) at step 50" },
        { { .auxiliary = true, .rank = 6, .code = 1, .step = -1 },
          "scheduler (h, pid 47) exited with code 1" },
        { { .auxiliary = true, .rank = 9, .code = -1, .signo = SIGKILL, .step = -1 },
          "server 2 (h, pid 47) was killed by signal 9 (SIGKILL)" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_strbuf b = { 0 };

        dt_words_death(&b, &cases[i].death, 6, "h", 47);
        assert_string_equal(dt_strbuf_text(&b), cases[i].want);
        dt_strbuf_free(&b);
    }
}

static void a_failed_start_names_what_is_wrong(void **state)
{
    static const struct {
        struct dt_msg_spawn_failed why;
        const char *want;
        bool elsewhere;
    } cases[] = {
        { { .step = DT_SPAWN_EXEC, .error = ENOENT, .what = (char *)"./trian" },
          "./trian: No such file or directory",
          false },
        { { .step = DT_SPAWN_EXEC, .error = ENOENT, .what = (char *)"./train" },
          "./train: No such file or directory; --push sends programs to the hosts",
          true },
        { { .step = DT_SPAWN_EXEC, .error = ENOENT, .what = (char *)"python9" },
          "python9: No such file or directory",
          true },
        { { .step = DT_SPAWN_WDIR, .error = ENOENT, .what = (char *)"/d" },
          "working directory /d: No such file or directory; --wdir names another",
          true },
        { { .step = DT_SPAWN_WDIR, .error = EACCES, .what = (char *)"/d" },
          "working directory /d: Permission denied",
          true },
        { { .step = DT_SPAWN_CHECKPOINT, .error = EROFS, .what = (char *)"/c" },
          "checkpoint directory /c: Read-only file system",
          true },
        { { .step = DT_SPAWN_CHECKPOINT, .error = EEXIST, .what = (char *)"/c" },
          "checkpoint directory /c holds checkpoints of an earlier job: --resume continues from "
          "the "
          "newest, --fresh starts afresh",
          true },
        { { .step = DT_SPAWN_LEFTOVER, .error = EPERM, .what = (char *)"pid 1 cannot be killed" },
          "pid 1 cannot be killed: Operation not permitted; the job cannot restart there",
          true },
        { { .step = DT_SPAWN_LEFTOVER, .what = (char *)"pid 1 waits inside the kernel" },
          "pid 1 waits inside the kernel; the job cannot restart there",
          true },
        { { .step = DT_SPAWN_SYSTEM, .error = EMFILE, .what = (char *)"pipe" },
          "pipe: Too many open files; a limit of the host (ulimit -n) is too low for "
          "its ranks",
          true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_strbuf b = { 0 };

        dt_words_spawn(&b, &cases[i].why, cases[i].elsewhere);
        assert_string_equal(dt_strbuf_text(&b), cases[i].want);
        dt_strbuf_free(&b);
    }
}

static void signals_stop_forward_pause_or_kill(void **state)
{
    static const struct {
        int signo, stopped_by;
        enum dt_signal_meaning want;
    } cases[] = {
        { SIGINT, 0, DT_SIGNAL_STOP },         { SIGTERM, 0, DT_SIGNAL_STOP },
        { SIGHUP, 0, DT_SIGNAL_STOP },         { SIGUSR1, 0, DT_SIGNAL_FORWARD },
        { SIGUSR2, 0, DT_SIGNAL_FORWARD },     { SIGINT, SIGINT, DT_SIGNAL_KILL },
        { SIGINT, SIGTERM, DT_SIGNAL_KILL },   { SIGTERM, SIGTERM, DT_SIGNAL_IGNORE },
        { SIGHUP, SIGTERM, DT_SIGNAL_IGNORE }, { SIGTERM, SIGHUP, DT_SIGNAL_IGNORE },
        { SIGTERM, SIGINT, DT_SIGNAL_IGNORE }, { SIGUSR1, SIGINT, DT_SIGNAL_IGNORE },
        { SIGTSTP, 0, DT_SIGNAL_PAUSE },       { SIGTSTP, SIGTERM, DT_SIGNAL_PAUSE },
        { SIGWINCH, 0, DT_SIGNAL_IGNORE },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(dt_signal_meaning(cases[i].signo, cases[i].stopped_by), cases[i].want);
    assert_int_equal(dt_signal_for_ranks(SIGINT), SIGINT);
    assert_int_equal(dt_signal_for_ranks(SIGHUP), SIGTERM);
    assert_string_equal(dt_signal_name(SIGUSR1), "SIGUSR1");
    assert_string_equal(dt_signal_name(SIGRTMIN + 2), "SIGRTMIN+2");
    assert_string_equal(dt_signal_name(1000), "signal 1000");
    assert_null(dt_signal_fault(SIGKILL));
    assert_string_equal(dt_signal_fault(SIGBUS), "Bus error");
}

static void an_address_that_fails_gets_a_reason(void **state)
{
    static const struct {
        struct dt_candidate at;
        struct dt_msg_reached reached;
        const char *want;
    } cases[] = {
        { { "10.0.0.7", "eth0", 1500 },
          { .state = DT_REACH_CONNECT, .error = ETIMEDOUT },
          "at 10.0.0.7:4000 (eth0): no answer within 5 s; is there a firewall?" },
        { { "10.0.0.7", "", 0 },
          { .state = DT_REACH_CONNECT, .error = ECONNREFUSED },
          "at 10.0.0.7:4000: connection refused; is there a firewall, or does another machine have "
          "that address?" },
        { { "127.0.0.1", "lo", 65536 },
          { .state = DT_REACH_CONNECT, .error = ECONNREFUSED },
          "at 127.0.0.1:4000 (lo): connection refused; a loopback address leads to no other host" },
        { { "::1", "lo", 65536 },
          { .state = DT_REACH_CONNECT, .error = ECONNREFUSED },
          "at [::1]:4000 (lo): connection refused; a loopback address leads to no other host" },
        { { "fd00::7", "eth0", 1500 },
          { .state = DT_REACH_CONNECT, .error = EHOSTUNREACH },
          "at [fd00::7]:4000 (eth0): No route to host" },
        { { "10.0.0.7", "eth0", 1500 },
          { .state = DT_REACH_CONNECT, .error = EADDRNOTAVAIL },
          "at 10.0.0.7:4000 (eth0): no local port is free (see net.ipv4.ip_local_port_range), or "
          "no local address fits" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_strbuf b = { 0 };

        dt_words_reached(&b, &cases[i].reached, &cases[i].at, 4000);
        assert_string_equal(dt_strbuf_text(&b), cases[i].want);
        dt_strbuf_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_have_at_most_two_units),
        cmocka_unit_test(bytes_have_binary_units),
        cmocka_unit_test(bit_rates_have_decimal_units),
        cmocka_unit_test(counts_take_the_plural),
        cmocka_unit_test(ranks_are_listed_as_ranges),
        cmocka_unit_test(a_death_names_its_cause_and_step),
        cmocka_unit_test(a_failed_start_names_what_is_wrong),
        cmocka_unit_test(signals_stop_forward_pause_or_kill),
        cmocka_unit_test(an_address_that_fails_gets_a_reason),
    };

    return cmocka_run_group_tests_name("words", tests, NULL, NULL);
}
