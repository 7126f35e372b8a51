/* The relay of ranks' output: where it looks for writers, and the end of a generation, when each
 * stream ends with what it holds. The channel is this file's own. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "launcher/agent/io/relay.h"
#include "launcher/agent/ranks/pty.h"
#include "tests/unit/unit.h"

enum {
    RANK = 7,
    HELD_AT_MOST = 64 * 1024,
    ENOUGH = 1024 * 1024, /* a stranger stops here if the relay does not */
    PIECE = 1000,
};

static struct {
    uv_loop_t loop;
    struct dt_relay *relay;
    int terminal;   /* the end of the ranks */
    bool stranger;  /* a process that writes as fast as the relay reads */
    bool room;      /* the channel takes one more frame */
    bool slow;      /* it takes one frame at a time */
    size_t written; /* bytes that the stranger has written */
    size_t sent, eofs, ended, quiet;
    bool looked;   /* this process itself has read /proc */
    uint32_t last; /* bytes of the last frame, for which there was no credit yet */
    bool in_order;
} f;

/* The byte at a place of what a rank writes. */
static char byte_at(size_t at)
{
    return (char)(at * 31 + at / 251);
}

static size_t make_piece(char *piece, size_t at)
{
    for (size_t i = 0; i < PIECE; i++)
        piece[i] = byte_at(at + i);
    return PIECE;
}

static size_t put_piece(size_t at)
{
    char piece[PIECE];
    ssize_t n = write(f.terminal, piece, make_piece(piece, at));

    return n > 0 ? (size_t)n : 0;
}

/* The kernel passes on what is written to a terminal in a thread of its own. */
static void put_as_stranger(int reader)
{
    struct pollfd p = { .fd = reader, .events = POLLIN };

    if (f.written >= ENOUGH)
        return;
    f.written += put_piece(f.written);
    assert_int_equal(poll(&p, 1, -1), 1);
}

static int reader;
static pid_t self;

bool dt_channel_has_room(struct dt_channel *c)
{
    (void)c;
    return f.room;
}

void dt_channel_send(struct dt_channel *c, uint8_t type, const void *msg)
{
    const struct dt_msg_output *m = msg;

    (void)c;
    f.eofs += type == DT_MSG_OUTPUT_EOF;
    f.quiet += type == DT_MSG_OUTPUT_QUIET;
    if (type != DT_MSG_OUTPUT)
        return;
    for (size_t i = 0; i < m->data.n; i++)
        f.in_order &= ((const char *)m->data.p)[i] == byte_at(f.sent + i);
    f.sent += m->data.n;
    f.last = (uint32_t)m->data.n;
    f.room = !f.slow;
    if (f.stranger)
        put_as_stranger(reader);
}

DIR *opendir(const char *path)
{
    DIR *(*next)(const char *) = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");

    f.looked |= getpid() == self && strncmp(path, "/proc", strlen("/proc")) == 0;
    return next(path);
}

static void on_ended(void *arg)
{
    (void)arg;
    f.ended++;
}

static int set_up(void **state)
{
    static uint32_t rank = RANK;
    static const struct dt_u32s numbers = { &rank, 1 };
    int ends[2];

    (void)state;
    memset(&f, 0, sizeof f);
    f.in_order = true;
    self = getpid();
    assert_int_equal(dt_pty_open(ends), 0);
    for (int i = 0; i < 2; i++)
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
    reader = ends[0];
    f.terminal = ends[1];
    uv_loop_init(&f.loop);
    f.relay = dt_relay_create(&f.loop, NULL, &numbers, on_ended, NULL);
    dt_relay_add(f.relay, 0, STDOUT_FILENO, reader);
    alarm(300); /* a watchdog */
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    dt_relay_destroy(f.relay);
    uv_run(&f.loop, UV_RUN_DEFAULT);
    uv_loop_close(&f.loop);
    close(f.terminal);
    return 0;
}

/* The launcher reads what the channel has, and gives credit for it. */
static void read_at_far_end(void)
{
    uint32_t bytes = f.last;

    f.last = 0;
    f.room = true;
    dt_relay_room(f.relay);
    dt_relay_credit(f.relay, RANK, STDOUT_FILENO, bytes);
}

static void a_stranger_that_keeps_writing_does_not_keep_the_stream_open(void **state)
{
    (void)state;
    f.written = put_piece(0);
    f.stranger = f.room = true;
    dt_relay_finish(f.relay);
    while (!f.ended && f.last)
        read_at_far_end();
    assert_int_equal(f.ended, 1);
    assert_int_equal(f.eofs, 1);
    assert_true(f.in_order);
    assert_in_range(f.sent, PIECE, HELD_AT_MOST);
}

static void what_a_full_terminal_holds_arrives_whole_at_a_slow_reader(void **state)
{
    size_t n, written = 0;

    (void)state;
    f.slow = true;
    while ((n = put_piece(written)) > 0)
        written += n;
    dt_relay_finish(f.relay);
    assert_int_equal(f.sent, 0);
    while (!f.ended) {
        size_t before = f.sent;

        read_at_far_end();
        assert_true(f.ended || f.sent > before);
    }
    assert_int_equal(f.eofs, 1);
    assert_true(f.in_order);
    assert_int_equal(f.sent, written);
    print_message("a terminal held %zu bytes\n", written);
}

/* More than one piece of what a terminal passes on may be a part of a longer write. */
static void a_child_looks_for_the_writer_of_an_unfinished_line(void **state)
{
    (void)state;
    f.room = true;
    dt_relay_room(f.relay);
    for (int i = 0; i < 3; i++)
        f.written += put_piece(f.written);
    assert_int_equal(f.written, 3 * PIECE);
    while (!f.quiet)
        uv_run(&f.loop, UV_RUN_ONCE);
    assert_int_equal(f.sent, f.written);
    assert_false(f.looked);
}

static bool print_piece(uint8_t stream, size_t at)
{
    char piece[PIECE];
    size_t n = make_piece(piece, at);

    return dt_relay_print(f.relay, RANK, stream, piece, n);
}

static void what_the_agent_prints_for_a_rank_follows_what_the_rank_has_printed(void **state)
{
    char piece[PIECE];
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    assert_false(print_piece(3, 0));
    assert_false(print_piece(STDERR_FILENO, 0));
    assert_true(print_piece(STDOUT_FILENO, 0));
    f.room = true;
    dt_relay_room(f.relay);
    while (f.sent < PIECE)
        uv_run(&f.loop, UV_RUN_ONCE);
    dt_relay_add(f.relay, 0, STDERR_FILENO, ends[0]);
    assert_int_equal(write(ends[1], piece, make_piece(piece, PIECE)), PIECE);
    for (f.written = 2 * PIECE; print_piece(STDERR_FILENO, f.written); f.written += PIECE)
        assert_in_range(f.written, PIECE, ENOUGH); /* the pipe fills up */
    assert_in_range(f.written, 3 * PIECE, ENOUGH);
    close(ends[1]);
    while (!f.eofs)
        uv_run(&f.loop, UV_RUN_ONCE);
    assert_int_equal(f.sent, f.written);
    assert_true(f.in_order);
    assert_false(print_piece(STDERR_FILENO, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_child_looks_for_the_writer_of_an_unfinished_line, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_stranger_that_keeps_writing_does_not_keep_the_stream_open,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_the_agent_prints_for_a_rank_follows_what_the_rank_has_printed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_full_terminal_holds_arrives_whole_at_a_slow_reader,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
