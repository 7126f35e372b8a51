/* dtrun-agent as the launcher sees it. The test plays the launcher; see agentproc.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "launcher/place/frameworks.h"
#include "tests/unit/agent/agentproc.h"

static void hello_describes_the_host(void **state)
{
    struct agent *a = *state;
    const struct dt_msg_hello *hello = &a->msg.hello;

    assert_int_equal(hello->protocol, DT_PROTOCOL);
    assert_string_equal(hello->version, PACKAGE_VERSION);
    assert_int_equal(hello->pid, a->keeper);
    assert_int_equal(hello->cores, sysconf(_SC_NPROCESSORS_ONLN));
    assert_true(hello->memory > 1 << 20);
    assert_true(hello->free_port > 1023);
    assert_true(strlen(hello->identity) > 36);
    assert_int_equal(agent_end(a), 0);
}

static void exit_codes_and_output_arrive_before_done(void **state)
{
    struct agent *a = *state;
    uint32_t seen = 0;

    agent_start(a, 3, "echo rank $DTRUN_RANK of $DTRUN_SIZE; echo oops >&2; exit $DTRUN_RANK",
                NULL);
    agent_expect(a, DT_MSG_STARTED);
    assert_int_equal(a->msg.started.ranks.n, 3);
    for (int i = 0; i < 3; i++) {
        agent_expect(a, DT_MSG_EXIT);
        assert_int_equal(a->msg.exit.code, a->msg.exit.rank);
        assert_int_equal(a->msg.exit.signo, 0);
        assert_int_equal(a->msg.exit.flags, 0);
        assert_int_equal(a->msg.exit.step, -1);
        seen |= 1u << a->msg.exit.rank;
    }
    assert_int_equal(seen, 7);
    agent_expect(a, DT_MSG_DONE);
    for (int i = 0; i < 6; i++)
        assert_true(a->eof[i]);
    assert_string_equal(agent_output(a, 2, 1), "rank 2 of 3\n");
    assert_string_equal(agent_output(a, 1, 2), "oops\n");
    assert_int_equal(agent_end(a), 0);
}

static const struct spawn_case {
    const char *program;
    const char *wdir;
    const char *content; /* of ./file in the agent_scratch directory, or NULL */
    mode_t mode;
    uint8_t step;
    int error;
    const char *what; /* part of the message */
} spawn_cases[] = {
    { "no-such-program", "/", NULL, 0, DT_SPAWN_EXEC, ENOENT, "no-such-program" },
    { "./no-such-program", "/", NULL, 0, DT_SPAWN_EXEC, ENOENT, "./no-such-program" },
    { "/etc", "/", NULL, 0, DT_SPAWN_EXEC, EISDIR, "/etc" },
    { "./file", NULL, "#!/bin/sh\n", 0600, DT_SPAWN_EXEC, EACCES, "./file" },
    { "./file", NULL, "echo hello\n", 0700, DT_SPAWN_EXEC, ENOEXEC, "nor a script that begins" },
    { "./file", NULL, "#!/no/such/sh -e\n", 0700, DT_SPAWN_EXEC, ENOEXEC, "#!/no/such/sh, " },
    { "./file", NULL, "#!/bin/sh\r\n", 0700, DT_SPAWN_EXEC, ENOEXEC, "CR LF" },
    { "./file/x", NULL, "#!/bin/sh\n", 0700, DT_SPAWN_EXEC, ENOTDIR, "./file/x" },
    { "true", "/no/such/dir", NULL, 0, DT_SPAWN_WDIR, ENOENT, "/no/such/dir" },
    { "true", "/etc/passwd", NULL, 0, DT_SPAWN_WDIR, ENOTDIR, "/etc/passwd" },
};

static const char *chosen_wdir; /* for in_wdir */

static void in_wdir(struct dt_msg_start *start)
{
    start->wdir = (char *)(uintptr_t)chosen_wdir;
}

static void write_file(const char *name, const char *content, mode_t mode)
{
    char path[128];
    int fd;

    snprintf(path, sizeof path, "%s/%s", agent_scratch, name);
    unlink(path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    close(fd);
}

static void a_program_that_cannot_start_is_named_once_and_nothing_runs(void **state)
{
    struct agent *a = *state;

    for (size_t i = 0; i < sizeof spawn_cases / sizeof *spawn_cases; i++) {
        const struct spawn_case *c = &spawn_cases[i];
        const char *const argv[] = { c->program, NULL };

        if (c->content)
            write_file("file", c->content, c->mode);
        chosen_wdir = c->wdir ? c->wdir : agent_scratch;
        agent_start_argv(a, 3, argv, in_wdir);
        agent_expect(a, DT_MSG_SPAWN_FAILED);
        print_message("# %s: %s\n", a->msg.spawn_failed.what, strerror(a->msg.spawn_failed.error));
        assert_int_equal(a->msg.spawn_failed.generation, a->generation);
        assert_int_equal(a->msg.spawn_failed.step, c->step);
        assert_int_equal(a->msg.spawn_failed.error, c->error);
        assert_non_null(strstr(a->msg.spawn_failed.what, c->what));
        assert_int_equal(agent_processes(a), 0);
    }
    assert_false(agent_has(a, DT_MSG_STARTED) || agent_has(a, DT_MSG_EXIT) ||
                 agent_has(a, DT_MSG_DONE) || agent_has(a, DT_MSG_SPAWN_FAILED));
    agent_start(a, 1, "exit 5", NULL); /* the agent still works */
    agent_expect(a, DT_MSG_DONE);
    agent_expect(a, DT_MSG_EXIT);
    assert_int_equal(a->msg.exit.code, 5);
}

static void a_second_generation_runs_in_the_same_agent(void **state)
{
    struct agent *a = *state;

    for (int i = 1; i <= 3; i++) {
        agent_start(a, 2, "echo $DTRUN_GENERATION; setsid sleep 300 >/dev/null 2>&1 & exit 0",
                    NULL);
        agent_expect(a, DT_MSG_DONE);
        assert_int_equal(a->msg.done.generation, i);
        assert_int_equal(agent_processes(a), 0);
    }
    assert_string_equal(agent_output(a, 1, 1), "1\n2\n3\n");
    assert_int_equal(agent_end(a), 0);
}

/* Returns the resident memory of the agent's worker in KiB. */
static long worker_memory(const struct agent *a)
{
    char path[64];
    char line[256];
    long kib = -1;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/status", (int)agent_worker(a));
    f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "VmRSS: %ld", &kib);
    if (f)
        fclose(f);
    assert_true(kib > 0);
    return kib;
}

static void a_stream_stops_without_credit_and_goes_on_with_it(void **state)
{
    enum { TOTAL = 8000000 };
    struct agent *a = *state;
    struct dt_msg_credit c = { .rank = 0, .fd = 1 };
    long memory = worker_memory(a);

    a->mute_credit = true;
    agent_start(a, 2,
                "if [ $DTRUN_RANK = 1 ]; then echo small; exit; fi; yes 1234567 | head -c 8000000",
                NULL);
    agent_expect(a, DT_MSG_STARTED);
    agent_expect(a, DT_MSG_EXIT);
    assert_int_equal(a->msg.exit.rank, 1); /* the other rank does not hold it up */
    while (a->out[0].len < DT_STREAM_CREDIT && !a->at_end)
        agent_listen(a, 20);
    agent_listen(a, 200);
    assert_int_equal(a->out[0].len, DT_STREAM_CREDIT);
    assert_string_equal(agent_output(a, 1, 1), "small\n");
    agent_ping(a, 7);
    assert_true(worker_memory(a) - memory < 4096);
    assert_false(agent_has(a, DT_MSG_EXIT)); /* the writer waits */
    c.bytes = 1000;
    agent_send(a, DT_MSG_CREDIT, &c);
    while (a->out[0].len < DT_STREAM_CREDIT + 1000 && !a->at_end)
        agent_listen(a, 20);
    agent_listen(a, 100);
    assert_int_equal(a->out[0].len, DT_STREAM_CREDIT + 1000);
    a->mute_credit = false;
    c.bytes = DT_STREAM_CREDIT;
    agent_send(a, DT_MSG_CREDIT, &c);
    agent_expect(a, DT_MSG_DONE);
    assert_int_equal(a->out[0].len, TOTAL);
    for (size_t i = 0; i < TOTAL; i++) {
        if (a->out[0].data[i] != (uint8_t) "1234567\n"[i % 8])
            fail_msg("byte %zu of the output is wrong", i);
    }
}

static void control_messages_overtake_unread_output(void **state)
{
    struct agent *a = *state;
    int size = 4608;

    setsockopt(a->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    agent_start(
        a, 4,
        "[ $DTRUN_RANK = 3 ] && { read x; kill -KILL $$; }; yes $DTRUN_RANK | head -c 2000000",
        NULL);
    agent_expect(a, DT_MSG_STARTED);
    /* The death is reported while megabytes of the other ranks are still on their way. */
    agent_expect(a, DT_MSG_EXIT);
    assert_int_equal(a->msg.exit.rank, 3);
    assert_true(a->out[0].len + a->out[2].len + a->out[4].len < 3 * 2000000);
    agent_expect(a, DT_MSG_DONE);
    for (int i = 0; i < 6; i += 2)
        assert_int_equal(a->out[i].len, 2000000);
}

static void stdin_of_rank_0(struct dt_msg_start *start)
{
    start->stdin_rank = 0;
}

static void send_stdin(struct agent *a, const void *data, size_t n)
{
    struct dt_msg_stdin m = { .generation = a->generation, .data = { data, n } };

    agent_send(a, DT_MSG_STDIN, &m);
}

static void standard_input_reaches_its_rank_whole(void **state)
{
    enum { CHUNK = 16000, CHUNKS = 100 };
    struct agent *a = *state;
    static uint8_t bytes[CHUNK * CHUNKS];
    struct dt_msg_stdin_eof eof = { 0 };
    uint64_t sent = 0;

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    agent_start(a, 2, "exec cat", stdin_of_rank_0);
    while (sent < sizeof bytes && !a->at_end) {
        if (sent + CHUNK <= DT_STDIN_CREDIT + a->stdin_credit) {
            send_stdin(a, bytes + sent, CHUNK);
            sent += CHUNK;
        } else {
            agent_listen(a, 1);
        }
    }
    eof.generation = a->generation;
    agent_send(a, DT_MSG_STDIN_EOF, &eof);
    agent_expect(a, DT_MSG_DONE);
    assert_int_equal(a->out[0].len, sizeof bytes);
    assert_memory_equal(a->out[0].data, bytes, sizeof bytes);
    assert_int_equal(a->out[2].len, 0); /* the other cat read /dev/null */
    assert_int_equal(a->stdin_credit, sizeof bytes);
}

static void stdin_of_all(struct dt_msg_start *start)
{
    start->stdin_rank = DT_STDIN_ALL;
}

static void standard_input_of_an_old_generation_is_dropped(void **state)
{
    struct agent *a = *state;
    struct dt_msg_stdin old = { .data = { (const uint8_t *)"old", 3 } };
    struct dt_msg_stdin_eof eof = { 0 };

    agent_start(a, 2, "exec true", stdin_of_all);
    old.generation = a->generation;
    agent_expect(a, DT_MSG_DONE);
    agent_start(a, 2, "exec cat", stdin_of_all);
    agent_send(a, DT_MSG_STDIN, &old);
    send_stdin(a, "new", 3);
    eof.generation = a->generation;
    agent_send(a, DT_MSG_STDIN_EOF, &eof);
    agent_expect(a, DT_MSG_DONE);
    for (int i = 0; i < 4; i += 2) {
        assert_int_equal(a->out[i].len, 3);
        assert_memory_equal(a->out[i].data, "new", 3);
    }
    assert_int_equal(a->stdin_credit, 3);
}

static void unread_standard_input_is_dropped(void **state)
{
    struct agent *a = *state;
    static const uint8_t bytes[16000];
    uint64_t sent = 0;

    agent_start(a, 1, "exec <&-; echo closed; exec sleep 300", stdin_of_rank_0);
    agent_expect(a, DT_MSG_STARTED);
    while (a->out[0].len == 0 && !a->at_end)
        agent_listen(a, 20);
    for (int i = 0; i < 20; i++) {
        send_stdin(a, bytes, sizeof bytes);
        if (i == 0) {
            agent_ping(a, 1);
            assert_int_equal(a->stdin_credit, 0); /* the rank may be dying */
        }
        sent += sizeof bytes;
        for (int ms = 0; ms < AGENT_PATIENCE_MS && a->stdin_credit < sent; ms += 10)
            agent_listen(a, 10);
        assert_int_equal(a->stdin_credit, sent);
    }
}

static void a_signal_reaches_the_whole_group(void **state)
{
    struct agent *a = *state;
    struct dt_msg_signal m = { SIGUSR1 };

    agent_start(a, 1,
                "trap 'echo outer' USR1; sh -c 'trap \"echo inner; exit 0\" USR1; echo up; sleep "
                "300 & wait';"
                "exit 6",
                NULL);
    agent_wait_for_output(a, 0, "up\n");
    agent_send(a, DT_MSG_SIGNAL, &m);
    agent_expect(a, DT_MSG_EXIT);
    assert_int_equal(a->msg.exit.code, 6);
    agent_expect(a, DT_MSG_DONE);
    assert_non_null(strstr(agent_output(a, 0, 1), "inner\n"));
    assert_non_null(strstr(agent_output(a, 0, 1), "outer\n"));
}

static void a_rank_inherits_nothing(void **state)
{
    struct agent *a = *state;
    const char *const argv[] = { agent_program("tests/rank/fds"), NULL };

    agent_start_argv(a, 1, argv, NULL);
    agent_expect(a, DT_MSG_DONE);
    assert_string_equal(agent_output(a, 0, 1),
                        "fds 0 1 2 agent pmi\nSigBlk 0000000000000000\nSigIgn 0000000000000000\n"
                        "group own, session the agent's, no terminal\n");
}

/* Starts the agent with signals blocked and ignored and with an open descriptor. */
static int setup_dirty(void **state)
{
    sigset_t some;
    const unsigned long ignore[16] = { (unsigned long)SIG_IGN };
    int extra = fcntl(STDIN_FILENO, F_DUPFD, 50);
    int rc;

    sigemptyset(&some);
    sigaddset(&some, SIGTERM);
    sigaddset(&some, SIGUSR1);
    sigprocmask(SIG_BLOCK, &some, NULL);
    signal(SIGHUP, SIG_IGN);
    syscall(SYS_rt_sigaction, 33, ignore, NULL, 8); /* glibc's signal() refuses this one */
    rc = agent_setup(state);
    sigprocmask(SIG_UNBLOCK, &some, NULL);
    signal(SIGHUP, SIG_DFL);
    syscall(SYS_rt_sigaction, 33, (unsigned long[16]){ 0 }, NULL, 8);
    close(extra);
    return rc;
}

static void ranks_wait_for_go(void **state)
{
    struct agent *a = *state;
    struct dt_msg_go go = { .generation = 7,
                            .master_addr = (char *)"10.0.0.1",
                            .addr = (char *)"10.0.0.2",
                            .iface = (char *)"eth7",
                            .tf_cluster = (char *)"" };

    a->hold = true;
    agent_start(a, 2, "echo ran $MASTER_ADDR $GLOO_SOCKET_IFNAME $NCCL_SOCKET_IFNAME", NULL);
    agent_expect(a, DT_MSG_READY);
    agent_send(a, DT_MSG_GO, &go); /* of another generation */
    agent_listen(a, 100);
    assert_false(agent_has(a, DT_MSG_STARTED) || agent_has(a, DT_MSG_EXIT));
    go.generation = a->msg.ready.generation;
    agent_send(a, DT_MSG_GO, &go);
    agent_expect(a, DT_MSG_STARTED);
    agent_expect(a, DT_MSG_DONE);
    assert_string_equal(agent_output(a, 1, 1), "ran 10.0.0.1 eth7 =eth7\n");
    assert_int_equal(agent_end(a), 0);
}

/* A batch system may send SIGUSR1 to every process of a host before any rank runs its program. */
static void a_rank_that_waits_for_go_does_not_die_of_sigusr1(void **state)
{
    struct agent *a = *state;
    struct dt_msg_signal m = { SIGUSR1 };
    struct dt_msg_ready ready;

    a->hold = true;
    agent_start(a, 1, "echo ran", NULL);
    agent_expect(a, DT_MSG_READY);
    ready = a->msg.ready;
    agent_send(a, DT_MSG_SIGNAL, &m);
    m.signo = SIGUSR2;
    agent_send(a, DT_MSG_SIGNAL, &m);
    agent_go(a, &ready);
    agent_expect(a, DT_MSG_EXIT);
    assert_int_equal(a->msg.exit.signo, 0);
    agent_expect(a, DT_MSG_DONE);
    assert_string_equal(agent_output(a, 0, 1), "ran\n");
}

/* The agent may write no more to its files, but ranks have read nothing yet. */
static void a_go_that_cannot_be_stored_is_the_reason(void **state)
{
    struct agent *a = *state;
    struct rlimit limit;

    a->hold = true;
    agent_start(a, 2, "echo ran", NULL);
    agent_expect(a, DT_MSG_READY);
    assert_int_equal(prlimit(agent_worker(a), RLIMIT_FSIZE, NULL, &limit), 0);
    limit.rlim_cur = 0;
    assert_int_equal(prlimit(agent_worker(a), RLIMIT_FSIZE, &limit, NULL), 0);
    agent_go(a, &a->msg.ready);
    agent_expect(a, DT_MSG_SPAWN_FAILED);
    assert_int_equal(a->msg.spawn_failed.error, EFBIG);
    assert_string_equal(a->msg.spawn_failed.what, "a memory file for the ranks' environment");
    assert_int_equal(agent_end(a), 0);
}

static void have_auxiliaries(struct dt_msg_start *start)
{
    static uint32_t numbers[] = { 2, 3 };

    start->auxiliaries = (struct dt_u32s){ numbers, 2 };
    start->servers = 1;
    start->stdin_rank = DT_STDIN_ALL;
    start->frameworks = DT_FRAMEWORK_MXNET;
}

/* Here a rank ends when its input ends, and an auxiliary ends by STOP. Nothing else ends them. */
static void auxiliaries_run_beside_the_ranks(void **state)
{
    struct agent *a = *state;
    struct dt_msg_stdin_eof eof;
    const struct dt_msg_started_rank *started;

    agent_start(a, 2,
                "echo $DMLC_ROLE $RANK; cat; [ -e /proc/self/fd/3 ] && echo has a socket;"
                "[ $RANK ] || exec sleep 600",
                have_auxiliaries);
    agent_expect(a, DT_MSG_STARTED);
    started = a->msg.started.ranks.v;
    assert_int_equal(a->msg.started.ranks.n, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(started[i].rank, i);
    eof.generation = a->msg.started.generation;
    agent_send(a, DT_MSG_STDIN_EOF, &eof);
    for (int i = 0; i < 2; i++) {
        agent_expect(a, DT_MSG_EXIT);
        assert_in_range(a->msg.exit.rank, 0, 1);
        assert_int_equal(a->msg.exit.code, 0);
    }
    agent_wait_for_output(a, 2, "scheduler\n");
    agent_wait_for_output(a, 3, "server\n");
    agent_stop(a, 0);
    for (uint32_t i = 0; i < 2; i++) {
        agent_expect(a, DT_MSG_EXIT);
        assert_in_range(a->msg.exit.rank, 2, 3);
        assert_int_equal(a->msg.exit.step, -1);
        assert_true(a->msg.exit.flags & DT_EXITED_STOPPED);
    }
    agent_expect(a, DT_MSG_DONE);
    assert_string_equal(agent_output(a, 0, 1), "worker 0\nhas a socket\n");
    assert_string_equal(agent_output(a, 3, 1), "server\n");
    assert_int_equal(agent_end(a), 0);
}

static void ranks_that_never_got_go_are_stopped(void **state)
{
    struct agent *a = *state;
    struct dt_msg_stop stop = { 5000 };

    a->hold = true;
    agent_start(a, 2, "echo ran", NULL);
    agent_expect(a, DT_MSG_READY);
    agent_listen(a, 100); /* a rank that passed the gate now would run and end before STOP */
    assert_false(agent_has(a, DT_MSG_STARTED) || agent_has(a, DT_MSG_EXIT));
    agent_send(a, DT_MSG_STOP, &stop);
    agent_expect(a, DT_MSG_EXIT);
    assert_int_equal(a->msg.exit.signo, SIGKILL);
    assert_true(a->msg.exit.flags & DT_EXITED_STOPPED);
    agent_expect(a, DT_MSG_DONE);
    assert_string_equal(agent_output(a, 0, 1), "");
    assert_int_equal(agent_end(a), 0);
}

static void push(struct agent *a, uint32_t id, const char *name, const char *content, uint64_t hash)
{
    struct dt_msg_file m = {
        .id = id,
        .name = (char *)(uintptr_t)name,
        .mode = S_IFREG | 0755,
        .size = strlen(content),
        .hash = hash,
        .target = (char *)"",
        .job_id = (char *)"test-01234567",
    };
    struct dt_msg_file_data data = { id, { (const uint8_t *)content, strlen(content) } };
    struct dt_msg_file_data half = data;

    agent_send(a, DT_MSG_FILE, &m);
    half.data.n /= 2;
    data.data.p += half.data.n;
    data.data.n -= half.data.n;
    agent_send(a, DT_MSG_FILE_DATA, &half);
    agent_send(a, DT_MSG_FILE_DATA, &data);
    agent_expect(a, DT_MSG_FILE_DONE);
    assert_int_equal(a->msg.file_done.id, id);
}

static void an_agent_shows_that_it_is_alive_while_files_arrive(void **state)
{
    static const char content[] = "content";
    struct agent *a = *state;

    push(a, 1, "file", content, XXH3_64bits(content, strlen(content)));
    agent_expect(a, DT_MSG_PONG); /* this launcher sends no PING */
    assert_int_equal(a->msg.pong.ping_time_ns, 0);
    assert_int_equal(agent_end(a), 0);
}

static char pushed_dir[4096];

static void from_pushed_dir(struct dt_msg_start *start)
{
    start->file_dir = pushed_dir;
}

static void a_pushed_program_runs_and_is_removed_with_the_job(void **state)
{
    static const char script[] = "#!/bin/sh\necho \"$0 $1 $LD_LIBRARY_PATH\"\n";
    const char *const argv[] = { "/where/it/was/prog", "arg", NULL };
    struct agent *a = *state;
    char want[3 * 4096];

    push(a, 1, "prog", script, XXH3_64bits(script, strlen(script)));
    assert_string_equal(a->msg.file_done.error, "");
    snprintf(pushed_dir, sizeof pushed_dir, "%s", a->msg.file_done.dir);
    assert_non_null(strstr(pushed_dir, "/.cache/dtrun/test-01234567."));
    push(a, 2, "other", "x", XXH3_64bits("x", 1));
    assert_string_equal(a->msg.file_done.dir, pushed_dir);
    push(a, 3, "damaged", script, 1);
    assert_non_null(strstr(a->msg.file_done.error, "damaged"));
    push(a, 4, "../evil", "x", XXH3_64bits("x", 1));
    assert_non_null(strstr(a->msg.file_done.error, "not a file name"));
    agent_start_argv(a, 1, argv, from_pushed_dir);
    agent_expect(a, DT_MSG_DONE);
    snprintf(want, sizeof want, "%s/prog arg %s\n", pushed_dir, pushed_dir);
    assert_string_equal(agent_output(a, 0, 1), want);
    assert_int_equal(agent_end(a), 0);
    assert_int_equal(access(pushed_dir, F_OK), -1);
}

static void pushed_files_are_removed_when_the_worker_is_killed(void **state)
{
    struct agent *a = *state;

    push(a, 1, "prog", "x", XXH3_64bits("x", 1));
    snprintf(pushed_dir, sizeof pushed_dir, "%s", a->msg.file_done.dir);
    assert_int_equal(access(pushed_dir, F_OK), 0);
    kill(agent_worker(a), SIGKILL);
    agent_await(a);
    assert_int_equal(access(pushed_dir, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AGENT_TEST(hello_describes_the_host),
        AGENT_TEST(exit_codes_and_output_arrive_before_done),
        AGENT_TEST(a_program_that_cannot_start_is_named_once_and_nothing_runs),
        AGENT_TEST(a_second_generation_runs_in_the_same_agent),
        AGENT_TEST(a_stream_stops_without_credit_and_goes_on_with_it),
        AGENT_TEST(control_messages_overtake_unread_output),
        AGENT_TEST(standard_input_reaches_its_rank_whole),
        AGENT_TEST(standard_input_of_an_old_generation_is_dropped),
        AGENT_TEST(unread_standard_input_is_dropped),
        AGENT_TEST(a_signal_reaches_the_whole_group),
        cmocka_unit_test_setup_teardown(a_rank_inherits_nothing, setup_dirty, agent_teardown),
        AGENT_TEST(ranks_wait_for_go),
        AGENT_TEST(a_rank_that_waits_for_go_does_not_die_of_sigusr1),
        AGENT_TEST(a_go_that_cannot_be_stored_is_the_reason),
        AGENT_TEST(auxiliaries_run_beside_the_ranks),
        AGENT_TEST(ranks_that_never_got_go_are_stopped),
        AGENT_TEST(a_pushed_program_runs_and_is_removed_with_the_job),
        AGENT_TEST(an_agent_shows_that_it_is_alive_while_files_arrive),
        AGENT_TEST(pushed_files_are_removed_when_the_worker_is_killed),
    };

    alarm(AGENT_TEST_SECONDS);
    return cmocka_run_group_tests(tests, agent_make_scratch, agent_remove_scratch);
}
