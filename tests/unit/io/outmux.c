#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uv.h>

#include "launcher/base/strbuf.h"
#include "launcher/io/outfiles.h"
#include "launcher/io/outmux.h"
#include "launcher/io/stamp.h"
#include "launcher/io/stdinpump.h"
#include "tests/unit/unit.h"

enum { CLOG = 512 * 1024 }; /* more than a pipe takes, and than is credited before it is written */

struct fixture {
    uv_loop_t loop;
    struct dt_outmux *mux;
    int saved[2];  /* the test's own descriptors 1 and 2 */
    int reader[2]; /* what reads the new ones */
    size_t credit[2];
    int failed_fd;
    int failed_error;
    struct dt_strbuf got[2];
};

/* Replaces libc's. Like NFS, it need not notice that the directory exists. */
int mkdir(const char *path, mode_t mode)
{
    if (access(path, F_OK) == 0) {
        errno = EACCES;
        return -1;
    }
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

static _Atomic int torn; /* number of writes to a file that did not end with a line */

/* Replaces libc's. */
ssize_t write(int fd, const void *data, size_t n)
{
    struct stat st;

    if (n > 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && ((const char *)data)[n - 1] != '\n')
        torn++;
    return syscall(SYS_write, fd, data, n);
}

static void on_credit(void *arg, uint32_t rank, int fd, uint32_t n)
{
    struct fixture *f = arg;

    (void)rank;
    f->credit[fd - 1] += n;
}

static void on_failed(void *arg, int fd, int error)
{
    struct fixture *f = arg;

    f->failed_fd = fd;
    f->failed_error = error;
}

static void on_drained(void *arg)
{
    (void)arg;
}

enum sort { PIPES, ONE_PIPE, SOCKETS };

static void channel(enum sort sort, int ends[2])
{
    if (sort == SOCKETS)
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    else
        assert_int_equal(pipe(ends), 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

/* Redirects standard output and error to what the mux is to write to. */
static void open_with(struct fixture *f, enum sort sort, const struct dt_outmux_config *config)
{
    struct dt_outmux_events events = { on_credit, on_failed, on_drained };
    int ends[2] = { -1, -1 };

    memset(f, 0, sizeof *f);
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        f->saved[i] = dup(i + 1);
        if (i == 0 || sort != ONE_PIPE)
            channel(sort, ends);
        f->reader[i] = i == 1 && sort == ONE_PIPE ? -1 : ends[0];
        dup2(ends[1], i + 1);
        if (i == 1 || sort != ONE_PIPE)
            close(ends[1]);
    }
    uv_loop_init(&f->loop);
    f->mux = dt_outmux_open(&f->loop, config, &events, f);
}

static void open_fixture(struct fixture *f, enum sort sort, uint32_t np, bool labels)
{
    open_with(f, sort, &(struct dt_outmux_config){ .np = np, .nprocs = np, .labels = labels });
}

static void read_all(struct fixture *f)
{
    char chunk[65536];
    ssize_t n;

    for (int i = 0; i < 2; i++) {
        while (f->reader[i] >= 0 && (n = read(f->reader[i], chunk, sizeof chunk)) > 0)
            dt_strbuf_add(&f->got[i], chunk, (size_t)n);
    }
}

static void turn(struct fixture *f)
{
    for (int i = 0; i < 4; i++)
        uv_run(&f->loop, UV_RUN_NOWAIT);
}

static void drain(struct fixture *f)
{
    do {
        turn(f);
        read_all(f);
    } while ((dt_outmux_awaits(f->mux, 1, 0) || dt_outmux_awaits(f->mux, 2, 0)));
    read_all(f);
}

static void give_back(struct fixture *f)
{
    for (int i = 0; i < 2; i++) {
        dup2(f->saved[i], i + 1);
        close(f->saved[i]);
        if (f->reader[i] >= 0)
            close(f->reader[i]);
    }
}

static void close_fixture(struct fixture *f)
{
    give_back(f);
    dt_outmux_close(f->mux);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    dt_strbuf_free(&f->got[0]);
    dt_strbuf_free(&f->got[1]);
}

static void add(struct fixture *f, uint32_t rank, int fd, const char *text)
{
    dt_outmux_add(f->mux, rank, fd, text, strlen(text));
}

static void lines_of_several_ranks_get_labels(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, PIPES, 3, true);
    add(&f, 0, 1, "one\ntw");
    add(&f, 1, 1, "other\n");
    add(&f, 0, 1, "o\n50%\r");
    add(&f, 2, 2, "to stderr\n");
    add(&f, 2, 1, "no end");
    dt_outmux_eof(f.mux, 2, 1);
    dt_outmux_message(f.mux, "dtrun: a message\n", 17, false);
    drain(&f);
    give_back(&f);
    assert_string_equal(dt_strbuf_text(&f.got[0]),
                        "[0] one\n[1] other\n[0] two\n[0] 50%\r[2] no end\n");
    assert_string_equal(dt_strbuf_text(&f.got[1]), "[2] to stderr\ndtrun: a message\n");
    assert_int_equal(f.credit[0], 3 + 1 + 2 + 6 + 2 + 4 + 6);
    assert_int_equal(f.credit[1], 10);
    close_fixture(&f);
}

static void lines_stay_whole_without_labels(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, PIPES, 2, false);
    add(&f, 0, 1, "a");
    add(&f, 1, 1, "b\n");
    add(&f, 0, 1, "c\nlast");
    dt_outmux_end_all(f.mux);
    drain(&f);
    give_back(&f);
    assert_string_equal(dt_strbuf_text(&f.got[0]), "b\nac\nlast");
    close_fixture(&f);
}

static void lines_of_one_rank_can_have_labels(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, PIPES, 1, true);
    add(&f, 0, 1, "one\ntw");
    add(&f, 0, 1, "o\nend");
    dt_outmux_end_all(f.mux);
    drain(&f);
    give_back(&f);
    assert_string_equal(dt_strbuf_text(&f.got[0]), "[0] one\n[0] two\n[0] end\n");
    assert_int_equal(f.credit[0], 11);
    close_fixture(&f);
}

/* Checks that each line begins with a time from begin to now. */
static void assert_since(const struct timespec *begin, const char *text)
{
    char first[DT_STAMP_MAX], last[DT_STAMP_MAX];
    struct timespec now;
    size_t n = dt_stamp(first, begin);

    clock_gettime(CLOCK_REALTIME, &now);
    dt_stamp(last, &now);
    for (; *text; text = strchr(text, '\n') + 1) {
        assert_true(memcmp(first, text, n) <= 0);
        assert_true(memcmp(text, last, n) <= 0);
    }
}

/* Replaces digits by 9: "9999-99-99 99:99:99.999 ". */
static void hide_time(char *text)
{
    for (; *text; text++)
        if (*text >= '0' && *text <= '9')
            *text = '9';
}

static void lines_get_the_time(void **state)
{
    static const struct {
        struct dt_outmux_config config;
        const char *want;
    } cases[] = {
        { { .np = 1, .nprocs = 1, .stamps = true },
          "9999-99-99 99:99:99.999 a\n9999-99-99 99:99:99.999 b\n" },
        { { .np = 2, .nprocs = 2, .stamps = true, .labels = true },
          "9999-99-99 99:99:99.999 [9] a\n9999-99-99 99:99:99.999 [9] b\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct timespec begin;
        struct fixture f;

        clock_gettime(CLOCK_REALTIME, &begin);
        open_with(&f, PIPES, &cases[i].config);
        add(&f, 0, 1, "a\nb");
        dt_outmux_eof(f.mux, 0, 1);
        drain(&f);
        give_back(&f);
        assert_since(&begin, dt_strbuf_text(&f.got[0]));
        hide_time(f.got[0].data);
        assert_string_equal(dt_strbuf_text(&f.got[0]), cases[i].want);
        assert_int_equal(f.credit[0], 3);
        close_fixture(&f);
    }
}

static void auxiliaries_are_named(void **state)
{
    const struct dt_outmux_config config = { .np = 1, .nprocs = 3, .labels = true };
    struct fixture f;

    (void)state;
    open_with(&f, PIPES, &config);
    add(&f, 1, 1, "meets\n");
    add(&f, 2, 1, "serves");
    dt_outmux_eof(f.mux, 2, 1);
    add(&f, 3, 1, "is nobody\n");
    add(&f, 0, 1, "works\n");
    drain(&f);
    give_back(&f);
    assert_string_equal(dt_strbuf_text(&f.got[0]),
                        "[scheduler] meets\n[server 0] serves\n[0] works\n");
    close_fixture(&f);
}

static void the_bytes_of_one_rank_pass_unchanged(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, PIPES, 1, false);
    add(&f, 0, 1, "prompt> ");
    drain(&f);
    dt_outmux_add(f.mux, 0, 1, "\0\xff\r", 3);
    dt_outmux_eof(f.mux, 0, 1);
    drain(&f);
    give_back(&f);
    assert_int_equal(f.got[0].len, 11);
    assert_memory_equal(f.got[0].data, "prompt> \0\xff\r", 11);
    close_fixture(&f);
}

/* "2>&1": there is one queue, so that lines do not cut each other. */
static void order_is_kept_if_both_outputs_are_one_pipe(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, ONE_PIPE, 2, true);
    for (int i = 0; i < 5000; i++) {
        add(&f, 0, 1, "a line of standard output\n");
        add(&f, 1, 2, "a line of standard error\n");
    }
    drain(&f);
    give_back(&f);
    for (int i = 0; i < 5000; i++) {
        static const char want[] = "[0] a line of standard output\n[1] a line of standard error\n";

        assert_memory_equal(f.got[0].data + (size_t)i * (sizeof want - 1), want, sizeof want - 1);
    }
    close_fixture(&f);
}

/* Unread output is not credited. The shell's descriptor stays blocking for other processes. */
static void credit_follows_reader(enum sort sort)
{
    static const char line[] = "0123456789012345678901234567890123456789012345678901234567890123\n";
    size_t n = sizeof line - 1, lines = 16384;
    struct fixture f;

    open_fixture(&f, sort, 1, false);
    for (size_t i = 0; i < lines; i++)
        add(&f, 0, 1, line);
    turn(&f);
    assert_in_range(f.credit[0], 0, n * lines / 2);
    assert_true(dt_outmux_awaits(f.mux, 1, 0));
    assert_false(fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK);
    drain(&f);
    assert_false(fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK);
    give_back(&f);
    assert_int_equal(f.credit[0], n * lines);
    assert_int_equal(f.got[0].len, n * lines);
    for (size_t i = 0; i < lines; i++)
        assert_memory_equal(f.got[0].data + i * n, line, n);
    close_fixture(&f);
}

static void credit_follows_the_reader_of_a_pipe(void **state)
{
    (void)state;
    credit_follows_reader(PIPES);
}

static void credit_follows_the_reader_of_a_socket(void **state)
{
    (void)state;
    credit_follows_reader(SOCKETS);
}

static void a_slow_reader_is_told_from_a_stuck_one(void **state)
{
    enum { MS = 500 };
    static char line[CLOG];
    char word[10];
    struct fixture f;
    bool stuck, slow, other;
    ssize_t n;

    (void)state;
    memset(line, 'x', sizeof line - 2);
    line[sizeof line - 2] = '\n';
    open_fixture(&f, PIPES, 1, false);
    add(&f, 0, 1, line);
    while (!dt_outmux_awaits(f.mux, 1, MS))
        turn(&f);
    n = read(f.reader[0], word, sizeof word); /* makes no room */
    turn(&f);
    stuck = dt_outmux_awaits(f.mux, 1, MS);
    slow = dt_outmux_awaits(f.mux, 1, 0);
    other = dt_outmux_awaits(f.mux, 2, 0);
    drain(&f);
    give_back(&f);
    assert_int_equal(n, sizeof word);
    assert_true(slow && !stuck && !other);
    close_fixture(&f);
}

/* As on a terminal after Ctrl-S, while ranks write to a file. */
static void unread_messages_keep_no_rank_waiting(void **state)
{
    enum { MS = 5 };
    static char text[CLOG];
    bool waits, is_left, read_left;
    struct fixture f;

    (void)state;
    memset(text, '\n', sizeof text - 1);
    open_fixture(&f, PIPES, 1, false);
    dt_outmux_message(f.mux, text, sizeof text - 1, false);
    add(&f, 0, 1, text);
    while (!dt_outmux_awaits(f.mux, 1, MS))
        turn(&f);
    while (read(f.reader[0], text, sizeof text) > 0)
        turn(&f);
    waits = dt_outmux_awaits(f.mux, 2, MS);
    is_left = dt_outmux_awaits(f.mux, 2, 0);
    read_left = dt_outmux_awaits(f.mux, 1, 0);
    drain(&f);
    give_back(&f);
    assert_false(waits || read_left);
    assert_true(is_left);
    close_fixture(&f);
}

/* Another process that writes to the pipe now does not get into the middle of a line. */
static void a_full_pipe_ends_with_a_whole_line(void **state)
{
    enum { LINE = 300, LINES = 1000 };
    char line[LINE + 1];
    struct fixture f;
    size_t full;

    (void)state;
    memset(line, 'x', LINE - 1);
    strcpy(line + LINE - 1, "\n");
    open_fixture(&f, PIPES, 2, false);
    for (int i = 0; i < LINES; i++)
        add(&f, (uint32_t)i & 1, 1, line);
    turn(&f);
    read_all(&f);
    full = f.got[0].len;
    drain(&f);
    give_back(&f);
    assert_in_range(full, 1, LINE * LINES - 1);
    assert_int_equal(full % LINE, 0);
    assert_int_equal(f.got[0].len, LINE * LINES);
    close_fixture(&f);
}

/* Behind a reader that is always a little late, the record of written output is dropped, too. */
static void memory_stays_small_if_output_never_ends(void **state)
{
    struct fixture f;
    bool busy = true;
    struct mallinfo2 before = { 0 }, after;
    char chunk[6 * 2500]; /* "[0] x\n" */

    (void)state;
    open_fixture(&f, PIPES, 2, true);
    for (int i = 0; i < 400; i++) {
        for (int k = 0; k < 2500; k++)
            add(&f, k & 1, 1, "x\n");
        turn(&f);
        if (i < 20)
            continue;
        if (i == 20)
            before = mallinfo2();
        busy &= dt_outmux_awaits(f.mux, 1, 0);
        for (ssize_t n = 0; n < (ssize_t)sizeof chunk; turn(&f)) {
            ssize_t got = read(f.reader[0], chunk, sizeof chunk - (size_t)n);

            n += got > 0 ? got : 0;
        }
    }
    after = mallinfo2();
    drain(&f);
    give_back(&f);
    assert_true(busy);
    assert_in_range(after.uordblks + after.hblkhd, 0, before.uordblks + before.hblkhd + 4000000);
    close_fixture(&f);
}

/* 64 ranks send empty lines as far as they have credit, and the reader takes little. Labels make
 * the lines six times as long, but not dtrun's memory. */
static void labels_of_waiting_lines_take_no_memory(void **state)
{
    enum { RANKS = 64, WINDOW = 256 * 1024, FRAME = 64 * 1024, ROUNDS = 50, LIMIT = 64 << 20 };
    static char empty_lines[FRAME], chunk[FRAME];
    struct mallinfo2 used;
    struct fixture f;
    size_t sent = 0;

    (void)state;
    memset(empty_lines, '\n', sizeof empty_lines);
    open_fixture(&f, PIPES, RANKS, true);
    for (int i = 0; i < ROUNDS; i++) {
        for (; sent + FRAME <= f.credit[0] + (size_t)RANKS * WINDOW; sent += FRAME)
            dt_outmux_add(f.mux, (uint32_t)(sent / FRAME % RANKS), 1, empty_lines, FRAME);
        turn(&f);
        assert_true(read(f.reader[0], chunk, sizeof chunk) > 0);
    }
    used = mallinfo2();
    give_back(&f);
    assert_in_range(used.uordblks + used.hblkhd, 0, LIMIT);
    close_fixture(&f);
}

/* A held line must not stop its stream, however long it is. */
static size_t lines_with(const char *text, const char *what)
{
    size_t lines = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        lines++;
    return lines;
}

/* While nobody reads, dtrun's own message comes after two million of a host. */
static void messages_of_a_host_take_bounded_memory(void **state)
{
    enum { SAID = 2000000, LIMIT = 4 << 20 };
    static const char foreign[] = "dtrun: host1: again\n", own[] = "dtrun: lost host1\n";
    struct mallinfo2 before, after;
    size_t said, dropped = 0;
    const char *report;
    struct fixture f;

    (void)state;
    open_fixture(&f, PIPES, 2, true);
    before = mallinfo2();
    for (int i = 0; i < SAID; i++) {
        dt_outmux_message(f.mux, foreign, sizeof foreign - 1, true);
        if (i % 100000 == 0)
            turn(&f);
    }
    dt_outmux_message(f.mux, own, sizeof own - 1, false);
    after = mallinfo2();
    drain(&f);
    dt_outmux_message(f.mux, foreign, sizeof foreign - 1, true);
    drain(&f);
    give_back(&f);
    assert_in_range(after.uordblks + after.hblkhd, 0, before.uordblks + before.hblkhd + LIMIT);
    said = lines_with(f.got[1].data, foreign);
    report = strstr(f.got[1].data, " messages were dropped, because");
    assert_non_null(report);
    while (report[-1] != ' ')
        report--;
    dropped = strtoul(report, NULL, 10);
    assert_int_equal(said + dropped, SAID + 1);
    assert_int_equal(lines_with(f.got[1].data, "were dropped"), 1);
    assert_int_equal(lines_with(f.got[1].data, own), 1);
    assert_string_equal(f.got[1].data + f.got[1].len - (sizeof foreign - 1), foreign);
    close_fixture(&f);
}

static void messages_of_dtrun_take_bounded_memory(void **state)
{
    enum { SAID = 2000000, LIMIT = 16 << 20 };
    static const char own[] = "dtrun: rank 1 died again\n";
    struct mallinfo2 before, after;
    struct fixture f;

    (void)state;
    open_fixture(&f, PIPES, 2, true);
    before = mallinfo2();
    for (int i = 0; i < SAID; i++)
        dt_outmux_message(f.mux, own, sizeof own - 1, false);
    after = mallinfo2();
    drain(&f);
    give_back(&f);
    assert_in_range(after.uordblks + after.hblkhd, 0, before.uordblks + before.hblkhd + LIMIT);
    assert_int_equal(lines_with(f.got[1].data, "were dropped"), 1);
    close_fixture(&f);
}

static void a_long_line_gets_one_label(void **state)
{
    struct fixture f;
    char block[16384];

    (void)state;
    memset(block, 'x', sizeof block);
    open_fixture(&f, PIPES, 2, true);
    for (int i = 0; i < 64; i++) {
        dt_outmux_add(f.mux, 1, 1, block, sizeof block);
        assert_int_equal(f.credit[0], (size_t)(i + 1) * sizeof block);
    }
    add(&f, 1, 1, "\n");
    drain(&f);
    give_back(&f);
    assert_int_equal(f.got[0].len, 4 + 64 * sizeof block + 1);
    assert_memory_equal(f.got[0].data, "[1] xxx", 7);
    assert_null(memchr(f.got[0].data + 4, '[', f.got[0].len - 4));
    close_fixture(&f);
}

/* This holds however long the rest takes: nothing here measures time. */
static void an_unfinished_line_waits_for_its_rest(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, PIPES, 2, true);
    add(&f, 0, 1, "half ");
    uv_run(&f.loop, UV_RUN_DEFAULT);
    add(&f, 1, 1, "other\n");
    add(&f, 0, 1, "of a line\n");
    drain(&f);
    give_back(&f);
    assert_string_equal(dt_strbuf_text(&f.got[0]), "[1] other\n[0] half of a line\n");
    close_fixture(&f);
}

static void a_prompt_is_shown_when_its_stream_is_quiet(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, PIPES, 2, true);
    add(&f, 0, 1, "ready? ");
    dt_outmux_quiet(f.mux, 0, 1);
    drain(&f);
    assert_string_equal(dt_strbuf_text(&f.got[0]), "[0] ready? ");
    add(&f, 0, 1, "yes\n");
    dt_outmux_quiet(f.mux, 0, 1);
    dt_outmux_quiet(f.mux, 2, 1);
    add(&f, 1, 2, "what? ");
    dt_outmux_quiet(f.mux, 1, 2);
    drain(&f);
    give_back(&f);
    assert_string_equal(dt_strbuf_text(&f.got[0]), "[0] ready? yes\n");
    assert_string_equal(dt_strbuf_text(&f.got[1]), "[1] what? ");
    close_fixture(&f);
}

/* Text behind a slow reader is no prompt any more when its rest has arrived. */
static void a_prompt_waits_behind_what_came_before_it(void **state)
{
    static char lines[512 * 1024];
    struct fixture f;

    (void)state;
    memset(lines, '\n', sizeof lines);
    open_fixture(&f, PIPES, 2, true);
    dt_outmux_add(f.mux, 1, 1, lines, sizeof lines);
    add(&f, 0, 1, "one");
    dt_outmux_quiet(f.mux, 0, 1);
    turn(&f);
    add(&f, 1, 1, "other\n");
    add(&f, 0, 1, " line\nready? ");
    dt_outmux_quiet(f.mux, 0, 1);
    drain(&f);
    give_back(&f);
    assert_string_equal(dt_strbuf_text(&f.got[0]) + sizeof lines * 5,
                        "[1] other\n[0] one line\n[0] ready? ");
    close_fixture(&f);
}

static void without_labels_lines_stay_whole(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, PIPES, 2, false);
    add(&f, 0, 1, "ready? ");
    dt_outmux_quiet(f.mux, 0, 1);
    add(&f, 1, 1, "other\n");
    add(&f, 0, 1, "yes\n");
    drain(&f);
    give_back(&f);
    assert_string_equal(dt_strbuf_text(&f.got[0]), "other\nready? yes\n");
    close_fixture(&f);
}

static void a_reader_that_leaves_is_reported(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, PIPES, 1, false);
    close(f.reader[0]);
    f.reader[0] = -1;
    add(&f, 0, 1, "nobody reads this\n");
    drain(&f);
    add(&f, 0, 1, "nor this\n");
    drain(&f);
    give_back(&f);
    assert_int_equal(f.failed_fd, 1);
    assert_int_equal(f.failed_error, EPIPE);
    assert_int_equal(f.credit[0], 18 + 9);
    close_fixture(&f);
}

static void output_to_a_file_is_written(void **state)
{
    struct fixture f;
    char name[] = "/tmp/dtrun-outmux-XXXXXX";
    char text[64] = "";
    int fd = mkstemp(name), own;
    struct dt_outmux_config config = { .np = 2, .nprocs = 2, .labels = true };
    struct dt_outmux_events events = { on_credit, on_failed, on_drained };

    (void)state;
    memset(&f, 0, sizeof f);
    f.reader[0] = f.reader[1] = -1;
    fflush(NULL);
    own = dup(STDOUT_FILENO);
    dup2(fd, STDOUT_FILENO);
    uv_loop_init(&f.loop);
    f.mux = dt_outmux_open(&f.loop, &config, &events, &f);
    torn = 0;
    add(&f, 0, 1, "first\n");
    add(&f, 1, 1, "second\n");
    drain(&f);
    dup2(own, STDOUT_FILENO);
    close(own);
    assert_int_equal(torn, 0); /* what another process appends splits no line */
    assert_int_equal(pread(fd, text, sizeof text - 1, 0), 21);
    assert_string_equal(text, "[0] first\n[1] second\n");
    close(fd);
    unlink(name);
    dt_outmux_close(f.mux);
    uv_run(&f.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f.loop), 0);
}

static void file_has(const char *dir, const char *file, off_t size)
{
    char *name = NULL;
    struct stat st;

    assert_true(asprintf(&name, "%s/%s", dir, file) > 0);
    assert_int_equal(stat(name, &st), 0);
    assert_int_equal(st.st_size, size);
    unlink(name);
    free(name);
}

struct filed {
    size_t wrote[4]; /* by stream: number, number, ... of standard output, then of standard error */
    char failed[100];
    int errors[2]; /* how often a failure was reported, and errno of the last one */
};

static void on_file_wrote(void *arg, uint32_t number, int fd, size_t n)
{
    struct filed *filed = arg;

    filed->wrote[(fd == STDERR_FILENO ? 2 : 0) + number] += n;
}

static void on_file_failed(void *arg, const char *name, int error)
{
    struct filed *filed = arg;

    snprintf(filed->failed, sizeof filed->failed, "%s", name);
    filed->errors[0]++;
    filed->errors[1] = error;
}

static void on_files_drained(void *arg)
{
    (void)arg;
}

static void write_out(uv_loop_t *loop, struct dt_outfiles *f, uint32_t number, int fd,
                      const char *text)
{
    dt_outfiles_write(f, number, fd, text, strlen(text));
    while (dt_outfiles_await(f, 0))
        uv_run(loop, UV_RUN_ONCE);
}

static void write_while_files_are_small(uv_loop_t *loop, struct dt_outfiles *f)
{
    struct rlimit before, small;

    getrlimit(RLIMIT_FSIZE, &before);
    small = (struct rlimit){ 8, before.rlim_max };
    setrlimit(RLIMIT_FSIZE, &small);
    write_out(loop, f, 1, 1, "1234567890");
    write_out(loop, f, 1, 1, "1234567890");
    write_out(loop, f, 0, 2, "678");
    setrlimit(RLIMIT_FSIZE, &before);
}

/* A file that cannot grow is reported once, with its name. The others go on, and all output is
 * credited. */
static void each_rank_has_files_and_a_failure_names_one(void **state)
{
    char dir[] = "/tmp/dtrun-outfiles-XXXXXX", *name = NULL;
    const char *const hosts[] = { "a", "a" };
    struct dt_outfiles_config config = { .pattern = dir, .np = 2, .nprocs = 2, .hosts = hosts };
    struct dt_outfiles_events events = { on_file_wrote, on_file_failed, on_files_drained };
    struct filed filed = { 0 };
    struct dt_outfiles *f;
    struct dt_error err = { 0 };
    uv_loop_t loop;

    (void)state;
    assert_non_null(mkdtemp(dir));
    f = dt_outfiles_open(&config, &err);
    assert_non_null(f);
    uv_loop_init(&loop);
    dt_outfiles_start(f, &loop, &events, &filed);
    write_out(&loop, f, 0, 2, "12345");
    write_while_files_are_small(&loop, f);
    assert_int_equal(filed.errors[0], 1);
    assert_int_equal(filed.errors[1], EFBIG);
    assert_string_equal(filed.failed + strlen(dir), "/rank.00001.out");
    assert_true(filed.wrote[0] == 0 && filed.wrote[1] == 20);
    assert_true(filed.wrote[2] == 8 && filed.wrote[3] == 0);
    dt_outfiles_stop(f);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(dt_outfiles_close(f, &name), 0);
    file_has(dir, "rank.00000.out", 0);
    file_has(dir, "rank.00000.err", 8);
    file_has(dir, "rank.00001.out", 8);
    file_has(dir, "rank.00001.err", 0);
    assert_int_equal(rmdir(dir), 0);
    config.pattern = "/proc/none/here";
    assert_null(dt_outfiles_open(&config, &err));
    assert_non_null(strstr(err.text, "/proc/none: No such file or directory"));
}

struct pumped {
    struct dt_strbuf got;
    int eof;
    int error;
};

static void on_stdin(void *arg, const void *data, size_t n)
{
    dt_strbuf_add(&((struct pumped *)arg)->got, data, n);
}

static void on_stdin_eof(void *arg)
{
    ((struct pumped *)arg)->eof++;
}

static void on_stdin_failed(void *arg, int error)
{
    ((struct pumped *)arg)->error = error;
}

static void run_until_read(uv_loop_t *loop, const struct pumped *p, size_t n)
{
    while (p->got.len < n)
        uv_run(loop, UV_RUN_ONCE);
}

/* Takes no more bytes than there is credit for, from a pipe as from a file. */
static void pump(int fd)
{
    struct dt_stdinpump_events events = { on_stdin, on_stdin_eof, on_stdin_failed };
    struct pumped p = { { 0 }, 0, 0 };
    struct dt_stdinpump *pump;
    uv_loop_t loop;

    uv_loop_init(&loop);
    pump = dt_stdinpump_open(&loop, fd, &events, &p);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(p.got.len, 0);
    dt_stdinpump_credit(pump, 3);
    run_until_read(&loop, &p, 3);
    assert_string_equal(dt_strbuf_text(&p.got), "hel");
    dt_stdinpump_credit(pump, 100);
    dt_stdinpump_hold(pump);
    for (int i = 0; i < 4; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(p.got.len, 3);
    dt_stdinpump_credit(pump, 1);
    run_until_read(&loop, &p, 4);
    assert_string_equal(dt_strbuf_text(&p.got), "hell");
    dt_stdinpump_credit(pump, 100);
    while (!p.eof)
        uv_run(&loop, UV_RUN_ONCE);
    assert_string_equal(dt_strbuf_text(&p.got), "hello");
    assert_int_equal(p.eof, 1);
    dt_stdinpump_close(pump);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    dt_strbuf_free(&p.got);
}

static void standard_input_is_read_from_pipe_socket_and_file(void **state)
{
    char name[] = "/tmp/dtrun-stdin-XXXXXX";
    int ends[2], fd;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "hello", 5), 5);
    close(ends[1]);
    pump(ends[0]);
    close(ends[0]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(write(ends[1], "hello", 5), 5);
    close(ends[1]);
    pump(ends[0]);
    close(ends[0]);
    fd = mkstemp(name);
    assert_int_equal(write(fd, "hello", 5), 5);
    lseek(fd, 0, SEEK_SET);
    pump(fd);
    close(fd);
    unlink(name);
}

static void fails_with(const char *path, int flags, int error)
{
    struct dt_stdinpump_events events = { on_stdin, on_stdin_eof, on_stdin_failed };
    struct pumped p = { { 0 }, 0, 0 };
    struct dt_stdinpump *pump;
    uv_loop_t loop;
    int fd = open(path, flags | O_CLOEXEC);

    assert_true(fd >= 0);
    uv_loop_init(&loop);
    pump = dt_stdinpump_open(&loop, fd, &events, &p);
    dt_stdinpump_credit(pump, 100);
    while (!p.eof && !p.error)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(p.error, error);
    assert_int_equal(p.eof, error == 0);
    dt_stdinpump_close(pump);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    close(fd);
}

static void input_that_cannot_be_read_is_not_its_end(void **state)
{
    (void)state;
    fails_with("/proc/self/mem", O_RDONLY, EIO);
    fails_with("/", O_RDONLY | O_DIRECTORY, EISDIR);
    fails_with("/proc/self/comm", O_WRONLY, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_several_ranks_get_labels),
        cmocka_unit_test(lines_stay_whole_without_labels),
        cmocka_unit_test(lines_of_one_rank_can_have_labels),
        cmocka_unit_test(lines_get_the_time),
        cmocka_unit_test(auxiliaries_are_named),
        cmocka_unit_test(the_bytes_of_one_rank_pass_unchanged),
        cmocka_unit_test(order_is_kept_if_both_outputs_are_one_pipe),
        cmocka_unit_test(credit_follows_the_reader_of_a_pipe),
        cmocka_unit_test(credit_follows_the_reader_of_a_socket),
        cmocka_unit_test(a_slow_reader_is_told_from_a_stuck_one),
        cmocka_unit_test(unread_messages_keep_no_rank_waiting),
        cmocka_unit_test(a_full_pipe_ends_with_a_whole_line),
        cmocka_unit_test(memory_stays_small_if_output_never_ends),
        cmocka_unit_test(labels_of_waiting_lines_take_no_memory),
        cmocka_unit_test(messages_of_a_host_take_bounded_memory),
        cmocka_unit_test(messages_of_dtrun_take_bounded_memory),
        cmocka_unit_test(a_long_line_gets_one_label),
        cmocka_unit_test(an_unfinished_line_waits_for_its_rest),
        cmocka_unit_test(a_prompt_is_shown_when_its_stream_is_quiet),
        cmocka_unit_test(a_prompt_waits_behind_what_came_before_it),
        cmocka_unit_test(without_labels_lines_stay_whole),
        cmocka_unit_test(a_reader_that_leaves_is_reported),
        cmocka_unit_test(output_to_a_file_is_written),
        cmocka_unit_test(each_rank_has_files_and_a_failure_names_one),
        cmocka_unit_test(standard_input_is_read_from_pipe_socket_and_file),
        cmocka_unit_test(input_that_cannot_be_read_is_not_its_end),
    };

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests_name("outmux", tests, NULL, NULL);
}
