#include <stdlib.h>
#include <string.h>

#include "launcher/base/strbuf.h"
#include "launcher/io/label.h"
#include "launcher/io/linebuf.h"
#include "launcher/io/stamp.h"
#include "launcher/io/tail.h"
#include "tests/unit/unit.h"

/* Shows pieces in a readable form: "<" where a line begins, ">" where it ends, "+" for a late line
 * feed. */
static void describe(void *arg, const char *text, size_t n, unsigned piece)
{
    struct dt_strbuf *out = arg;

    dt_strbuf_puts(out, piece & DT_PIECE_BEGINS ? "<" : "");
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n')
            dt_strbuf_puts(out, "\\n");
        else if (text[i] == '\r')
            dt_strbuf_puts(out, "\\r");
        else if (text[i] == '\0')
            dt_strbuf_puts(out, "\\0");
        else
            dt_strbuf_add(out, &text[i], 1);
    }
    dt_strbuf_puts(out, piece & DT_PIECE_LF ? "+" : piece & DT_PIECE_ENDS ? ">" : "|");
}

static const struct {
    const char *in; /* "/" is where one read ends and the next begins; "@" is a NUL */
    const char *want;
} cases[] = {
    { "", "" },
    { "a\n", "<a\\n>" },
    { "\n\n", "<\\n><\\n>" },
    { "a\nb\n", "<a\\n><b\\n>" },
    { "a/b/c\n", "<abc\\n>" },
    { "a\nb/c\nd", "<a\\n><bc\\n><d|" },
    { "no end", "<no end|" },
    { "10%\r20%\r", "<10%\\r><20%\\r>" },
    { "10%\r/20%\r/\n", "<10%\\r><20%\\r>\\n+" },
    { "dos\r\nfile\r\n", "<dos\\r\\n><file\\r\\n>" },
    { "dos\r/\nfile\r/\n", "<dos\\r>\\n+<file\\r>\\n+" },
    { "dos\r/x\n", "<dos\\r><x\\n>" },
    { "\r\r\n\n", "<\\r><\\r\\n><\\n>" },
    { "a\r\n/\nb", "<a\\r\\n><\\n><b|" },
    { "a@b@\n", "<a\\0b\\0\\n>" },
    /* the longest line that is held has 8 bytes */
    { "12345678/\n", "<12345678\\n>" },
    { "12345678/9\n", "<123456789\\n>" },
    { "123456789/@x\n", "<123456789|\\0x\\n>" },
    { "123456789/123456789/\n/a\n", "<123456789|123456789|\\n><a\\n>" },
    { "123456789", "<123456789|" },
    { "123456789\r/\n", "<123456789\\r>\\n+" },
};

static void feed(struct dt_linebuf *b, const char *in, struct dt_strbuf *out)
{
    char bytes[64] = "";
    size_t n = 0;

    for (; *in; in++) {
        if (*in != '/') {
            bytes[n++] = *in == '@' ? '\0' : *in;
            continue;
        }
        dt_linebuf_feed(b, bytes, n, describe, out);
        n = 0;
    }
    dt_linebuf_feed(b, bytes, n, describe, out);
}

static void lines_end_at_newlines_and_carriage_returns(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_linebuf b = { .max = 8 };
        struct dt_strbuf out = { 0 };

        feed(&b, cases[i].in, &out);
        dt_linebuf_end(&b, describe, &out);
        assert_string_equal(dt_strbuf_text(&out), cases[i].want);
        dt_strbuf_free(&out);
        dt_linebuf_free(&b);
    }
}

static void collect(void *arg, const char *text, size_t n, unsigned piece)
{
    (void)piece;
    dt_strbuf_add(arg, text, n);
}

/* However the input is divided, all its bytes come out. */
static void no_byte_is_lost(void **state)
{
    (void)state;
    for (size_t step = 1; step < 40; step++) {
        struct dt_linebuf b = { .max = 5 };
        struct dt_strbuf in = { 0 }, out = { 0 };
        unsigned seed = 1;

        for (int i = 0; i < 2000; i++) {
            seed = seed * 1103515245 + 12345;
            dt_strbuf_add(&in, &"ab\n\r\0xyz"[seed >> 16 & 7], 1);
        }
        for (size_t at = 0; at < in.len; at += step)
            dt_linebuf_feed(&b, in.data + at, in.len - at < step ? in.len - at : step, collect,
                            &out);
        dt_linebuf_end(&b, collect, &out);
        assert_int_equal(out.len, in.len);
        assert_memory_equal(out.data, in.data, in.len);
        dt_strbuf_free(&in);
        dt_strbuf_free(&out);
        dt_linebuf_free(&b);
    }
}

static void a_stamp_has_local_time_and_milliseconds(void **state)
{
    const struct timespec t = { .tv_sec = 1000000000, .tv_nsec = 7999999 };
    char stamp[DT_STAMP_MAX];

    (void)state;
    setenv("TZ", "UTC-2", 1);
    tzset();
    assert_int_equal(dt_stamp(stamp, &t), 24);
    assert_string_equal(stamp, "2001-09-09 03:46:40.007 ");
}

static void a_label_names_the_rank_or_auxiliary(void **state)
{
    char label[DT_LABEL_MAX];

    (void)state;
    assert_int_equal(dt_label(label, 7, 8, false), 4);
    assert_string_equal(label, "[7] ");
    assert_int_equal(dt_label(label, 999999, 1000000, false), 9);
    assert_string_equal(label, "[999999] ");
    dt_label(label, 4, 4, false);
    assert_string_equal(label, "[scheduler] ");
    dt_label(label, 17, 4, false);
    assert_string_equal(label, "[server 12] ");
    dt_label(label, UINT32_MAX, 0, true);
    assert_string_equal(label, "\033[33m[server 4294967294]\033[0m ");
}

static void assert_tail(struct dt_tail *t, const char *want)
{
    struct dt_strbuf got = { 0 };
    const char *line;

    for (unsigned i = 0; (line = dt_tail_line(t, i)); i++)
        dt_strbuf_printf(&got, "%s|", line);
    assert_string_equal(dt_strbuf_text(&got), want);
    dt_strbuf_free(&got);
}

static void the_tail_keeps_the_last_lines(void **state)
{
    struct dt_tail t = { 0 };
    char wide[1000];

    (void)state;
    assert_tail(&t, "");
    dt_tail_feed(&t, "one\n\ntwo", 8);
    assert_tail(&t, "one|two|");
    dt_tail_feed(&t, "3\n4\r5\r\n6\n7\x1b[1m\a", 15);
    assert_tail(&t, "3|4|5|6|7[1m|");
    memset(wide, 'w', sizeof wide);
    dt_tail_reset(&t);
    dt_tail_feed(&t, wide, sizeof wide);
    assert_int_equal(strlen(dt_tail_line(&t, 0)), DT_TAIL_WIDTH);
    assert_null(dt_tail_line(&t, 1));
    dt_tail_reset(&t);
}

static void the_tail_leaves_out_what_gives_no_reason(void **state)
{
    static const char text[] =
        "[rank0]:     raise ValueError()\n"
        "[rank0]:     ~~~~~^^^^^^^^^^^^\n"
        "[rank0]: ValueError: 3\n"
        "[rank0]: frame #0: c10::Error::Error(c10::SourceLocation) + 0x57 (0x7f94 in libc10.so)\n"
        "frame #12: clone + 0x3f (0x7f94ddb56897 in /lib/libc.so.6)\n"
        "    @     0x7f94ddb56897  (unknown)\n"
        "58  /usr/bin/python3(Py_RunMain+0x3c1) [0x6b80b1]\n"
        "=================================\n"
        "-- \xc3\xa4 --\n"
        "12 [0.5, 0.25] are no loss\n"
        "@user\n";
    struct dt_tail t = { 0 };

    (void)state;
    dt_tail_feed(&t, text, strlen(text));
    assert_tail(&t, "[rank0]:     raise ValueError()|[rank0]: ValueError: 3|-- \xc3\xa4 --|"
                    "12 [0.5, 0.25] are no loss|@user|");
    dt_tail_reset(&t);
}

/* What Open MPI and gfortran print, too. */
static void the_tail_quotes_the_reason_of_an_mpi_program(void **state)
{
    static const char reasons[] =
        "At line 13 of file die.f90 (unit = 10)\n"
        "Fortran runtime error: Cannot open file 'x': No such file or directory\n"
        "#0  0x7f528fb6b8c2 in ???\n"
        "#12  0x56492c7c6515 in die\n"
        "\tat /srv/my files/die.f90:13\n"
        "[vm:28480] Signal: Segmentation fault (11)\n"
        "[vm:28480] [ 0] /lib/x86_64-linux-gnu/libc.so.6(+0x3c050)[0x7f2ab63ab050]\n"
        "[vm:28480] [12] ./a.out(main+0x9) [0x55fddbb60259]\n"
        "[vm:28480] *** End of error message ***\n";
    static const char advice[] =
        "[vm:28454] *** MPI_ERR_RANK: invalid rank\n"
        "[vm:28454] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,\n"
        "[vm:28454] ***    and potentially your MPI job)\n"
        "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\n"
        "with errorcode 1.\n"
        "\n"
        "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\n"
        "You may or may not see output from other processes, depending on\n"
        "exactly when Open MPI kills them.\n"
        "------------------------------------------------------\n";
    static const char petsc[] =
        "[0]PETSC ERROR: --------------------- Error Message ------------------------\n"
        "[0]PETSC ERROR: Unknown type. Check for miss-spelling or missing package: URL\n"
        "[0]PETSC ERROR: Unable to find requested KSP type nope\n"
        "[0]PETSC ERROR: See https://petsc.org/release/faq/ for trouble shooting.\n"
        "[0]PETSC ERROR: Petsc Release Version 3.18.5, Feb 27, 2023 \n"
        "[0]PETSC ERROR: ./ex2 on a  named vm by root\n"
        "[0]PETSC ERROR: Configure options --with-mpi\n"
        "[0]PETSC ERROR: #1 KSPSetType() at ./src/ksp/ksp/interface/itcl.c:88\n"
        "[0]PETSC ERROR: PETSc Option Table entries:\n"
        "[0]PETSC ERROR: -ksp_type nope\n"
        "[0]PETSC ERROR: ----------------End of Error Message -------\n";
    static const char others[] = "#3 of 7: no memory at 0x7f52\n"
                                 "at most 3: 4\n"
                                 "[12:30] [3] is NaN\n"
                                 "[0x7f] [0x1]\n";
    struct dt_tail t = { 0 };

    (void)state;
    dt_tail_feed(&t, reasons, strlen(reasons));
    assert_tail(&t, "At line 13 of file die.f90 (unit = 10)|"
                    "Fortran runtime error: Cannot open file 'x': No such file or directory|"
                    "[vm:28480] Signal: Segmentation fault (11)|");
    dt_tail_reset(&t);
    dt_tail_feed(&t, advice, strlen(advice));
    assert_tail(&t, "[vm:28454] *** MPI_ERR_RANK: invalid rank|"
                    "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD|"
                    "with errorcode 1.|");
    dt_tail_reset(&t);
    dt_tail_feed(&t, petsc, strlen(petsc));
    assert_tail(&t, "[0]PETSC ERROR: Unknown type. Check for miss-spelling or missing package: URL|"
                    "[0]PETSC ERROR: Unable to find requested KSP type nope|"
                    "[0]PETSC ERROR: ./ex2 on a  named vm by root|");
    dt_tail_reset(&t);
    dt_tail_feed(&t, others, strlen(others));
    assert_tail(&t, "#3 of 7: no memory at 0x7f52|at most 3: 4|[12:30] [3] is NaN|[0x7f] [0x1]|");
    dt_tail_reset(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_end_at_newlines_and_carriage_returns),
        cmocka_unit_test(no_byte_is_lost),
        cmocka_unit_test(a_label_names_the_rank_or_auxiliary),
        cmocka_unit_test(a_stamp_has_local_time_and_milliseconds),
        cmocka_unit_test(the_tail_keeps_the_last_lines),
        cmocka_unit_test(the_tail_leaves_out_what_gives_no_reason),
        cmocka_unit_test(the_tail_quotes_the_reason_of_an_mpi_program),
    };

    return cmocka_run_group_tests_name("linebuf", tests, NULL, NULL);
}
