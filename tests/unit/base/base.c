#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/base/closefrom.h"
#include "launcher/base/error.h"
#include "launcher/base/log.h"
#include "launcher/base/number.h"
#include "launcher/base/program/program.h"
#include "launcher/base/slurp.h"
#include "launcher/base/utf8.h"
#include "tests/unit/unit.h"

static void numbers_are_read_whole_and_within_bounds(void **state)
{
    static const struct {
        const char *text;
        int min, max, rc, value;
        const char *says;
    } cases[] = {
        { "0", 0, 9, 0, 0, "" },
        { "7", 1, 9, 0, 7, "" },
        { "0007", 1, 9, 0, 7, "" },
        { "2147483647", 0, INT_MAX, 0, INT_MAX, "" },
        { "2147483648", 0, INT_MAX, -1, 0, "a number from 0 to 2147483647 was expected" },
        { "99999999999999999999999", 0, INT_MAX, -1, 0, "a number from" },
        { "0", 1, 9, -1, 0, "a number from 1 to 9 was expected" },
        { "10", 1, 9, -1, 0, "a number from 1 to 9 was expected" },
        { "", 1, 9, -1, 0, "a number was expected" },
        { " 1", 1, 9, -1, 0, "a number was expected" },
        { "1 ", 1, 9, -1, 0, "a number was expected" },
        { "+1", 1, 9, -1, 0, "a whole number from 1 to 9 was expected" },
        { "-1", 1, 9, -1, 0, "a whole number from 1 to 9 was expected" },
        { "0.2", 1, 9, -1, 0, "a whole number from 1 to 9 was expected" },
        { "1e3", 1, 9, -1, 0, "a whole number from 1 to 9 was expected" },
        { "-", 1, 9, -1, 0, "a number was expected" },
        { "nan", 1, 9, -1, 0, "a number was expected" },
        { "1.5", 1, 9, -1, 0, "a whole number from 1 to 9 was expected" },
        { "0x1", 1, 9, -1, 0, "a whole number from 1 to 9 was expected" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_error err = { 0 };
        int value = 0;

        assert_int_equal(dt_number_parse(cases[i].text, cases[i].min, cases[i].max, &value, &err),
                         cases[i].rc);
        assert_int_equal(value, cases[i].value);
        assert_true(strncmp(err.text, cases[i].says, strlen(cases[i].says)) == 0);
    }
}

static void an_error_can_get_a_prefix(void **state)
{
    struct dt_error err = { 0 };

    (void)state;
    dt_error_usage(&err, "slots=%s", "abc");
    assert_int_equal(dt_error_prefix(&err, "nodes:%d: ", 3), -1);
    assert_string_equal(err.text, "nodes:3: slots=abc");
    assert_int_equal(err.exit_code, DT_EXIT_USAGE);
    assert_int_equal(dt_error_prefix(NULL, "x"), -1);
}

static void assert_begins_and_ends(const struct dt_error *err, const char *begin, const char *end)
{
    assert_int_equal(strlen(err->text), sizeof err->text - 1);
    assert_memory_equal(err->text, begin, strlen(begin));
    assert_string_equal(err->text + sizeof err->text - 1 - strlen(end), end);
}

/* The reason stands at the end. */
static void a_long_error_lacks_its_middle(void **state)
{
    struct dt_error err = { 0 };
    char value[100 * 1000];

    (void)state;
    memset(value, 'x', sizeof value);
    value[sizeof value - 1] = '\0';
    dt_error_set(&err, "--report %s: File name too long", value);
    assert_begins_and_ends(&err, "--report xxx", "xxx: File name too long");
    dt_error_prefix(&err, "front: ");
    assert_begins_and_ends(&err, "front: --report xxx", "xxx: File name too long");
    assert_non_null(strstr(err.text, "x...x"));
    dt_error_set(&err, "%.*s", DT_ERROR_SIZE - 1, value);
    assert_null(strchr(err.text, '.'));
}

#define R "\xef\xbf\xbd"

static void invalid_utf8_is_replaced(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "", "" },
        { "plain", "plain" },
        { "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
        { "\xe2\x82\xac\xf0\x9f\x98\x80", "\xe2\x82\xac\xf0\x9f\x98\x80" },
        { "a\xff"
          "b",
          "a" R "b" },
        { "\x80", R },
        { "\xc3", R },
        { "\xc3"
          "a",
          R "a" },
        { "\xe2\x82", R R },
        { "\xc0\xaf", R R }, /* overlong */
        { "\xe0\x80\xaf", R R R },
        { "\xed\xa0\x80", R R R },       /* surrogate */
        { "\xf4\x90\x80\x80", R R R R }, /* beyond U+10FFFF */
        { "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf" },
        { "\xf8\x88\x80\x80\x80", R R R R R },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *got = dt_utf8_clean(cases[i].text);

        assert_string_equal(got, cases[i].want);
        free(got);
    }
}

static void control_characters_are_replaced_and_text_is_not(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "", "" },
        { "a\tb\nc\033[2Jd\177", "a\tb?c?[2Jd?" },
        { "gr\xc3\xbc\xc3\x9f \xe2\x82\xac\xf0\x9f\x98\x80",
          "gr\xc3\xbc\xc3\x9f \xe2\x82\xac\xf0\x9f\x98\x80" },
        { "\xc2\xa0\xc2\xbf", "\xc2\xa0\xc2\xbf" },
        { "\xc2\x9b[2J\xc2\x80\xc2\x9f", "??[2J????" },
        { "\x9b\x90x\x9c", "??x?" },
        { "gr\xfc\xdf", "gr\xfc\xdf" }, /* Latin-1 */
        { "\xe0\x9b\xc2", "\xe0?\xc2" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];

        snprintf(text, sizeof text, "%s", cases[i].text);
        dt_log_tame(text);
        assert_string_equal(text, cases[i].want);
    }
}

static void keep_line(void *arg, const char *line, size_t n, bool foreign)
{
    char **kept = arg;

    (void)foreign;
    *kept = strndup(line, n);
}

/* A message names thousands of hosts first, and then what they wait for. */
static void a_long_message_is_printed_whole(void **state)
{
    static char names[100000];
    char *line = NULL;

    (void)state;
    memset(names, 'n', sizeof names - 1);
    dt_log_set_sink(keep_line, &line);
    dt_say("%s: %s", names, "connect");
    dt_log_set_sink(NULL, NULL);
    assert_non_null(line);
    assert_int_equal(strlen(line), strlen("dtrun: : connect\n") + strlen(names));
    assert_string_equal(line + strlen(line) - strlen("n: connect\n"), "n: connect\n");
    free(line);
}

static void slurp_reads_whole_files_up_to_its_limit(void **state)
{
    char path[] = "/tmp/dtrun-slurp-XXXXXX";
    char data[50000];
    int fd = mkstemp(path);
    struct dt_strbuf b = { 0 };
    struct dt_error err = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7);
    assert_int_equal(write(fd, data, sizeof data), sizeof data);
    close(fd);
    assert_int_equal(dt_slurp(&b, path, sizeof data, &err), 0);
    assert_int_equal(b.len, sizeof data);
    assert_memory_equal(b.data, data, sizeof data);
    assert_int_equal(dt_slurp(&b, path, sizeof data - 1, &err), -1);
    assert_string_equal(err.text, "larger than 49999 bytes");
    unlink(path);
    assert_int_equal(dt_slurp(&b, path, 1, &err), -1);
    assert_string_equal(err.text, "No such file or directory");
    assert_int_equal(dt_slurp(&b, "/", 1, &err), -1);
    assert_string_equal(err.text, "Is a directory");
    dt_strbuf_free(&b);
}

static void make_file(const char *path, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);

    assert_true(fd >= 0);
    close(fd);
}

/* Works also for root, whom no directory keeps out. */
static void programs_are_searched_for_in_path(void **state)
{
    static const struct {
        const char *search, *name;
        int error;
        const char *path;
    } cases[] = {
        { "none:plain:bin", "train", 0, "bin/train" },
        { "none:plain", "train", EACCES, "plain/train" },
        { "none:private", "train", ENOENT, "train" }, /* as after su, with the PATH of root */
        { "private:bin", "train", 0, "bin/train" },
        { "private:plain:none", "train", EACCES, "plain/train" },
        { "bin:plain", "dir", ENOENT, "dir" },
        { "none", "bin/train", 0, "bin/train" },
        { "bin", "private/train", EACCES, "private/train" },
    };
    char made[] = "/tmp/dtrun-base-XXXXXX", path[64];
    int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_true(mkdtemp(made) && chmod(made, 0755) == 0 && chdir(made) == 0);
    assert_true(mkdir("plain", 0755) == 0 && mkdir("bin", 0755) == 0);
    assert_true(mkdir("private", 0700) == 0 && mkdir("bin/dir", 0755) == 0);
    make_file("plain/train", 0644);
    make_file("bin/train", 0755);
    make_file("private/train", 0755);
    assert_true(chmod("private", 0) == 0 && (getuid() != 0 || seteuid(65534) == 0));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(dt_program_find(path, sizeof path, cases[i].name, cases[i].search),
                         cases[i].error);
        assert_string_equal(path, cases[i].path);
    }
    assert_true((getuid() != 0 || seteuid(0) == 0) && chmod("private", 0700) == 0);
    assert_true(unlink("plain/train") == 0 && rmdir("plain") == 0);
    assert_true(unlink("private/train") == 0 && rmdir("private") == 0);
    assert_true(unlink("bin/train") == 0 && rmdir("bin/dir") == 0 && rmdir("bin") == 0);
    assert_true(fchdir(before) == 0 && rmdir(made) == 0);
    close(before);
}

/* From now on the kernel seems to lack close_range. */
static bool hide_close_range(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
           syscall(SYS_close_range, 1000, 1000, 0) < 0 && errno == ENOSYS;
}

enum { LAST_KEPT = 60, FIRST_CLOSED, LAST_CLOSED = 64 };

static bool closes(bool on_exec)
{
    for (int fd = LAST_KEPT; fd <= LAST_CLOSED; fd++)
        if (dup2(STDERR_FILENO, fd) < 0)
            return false;
    dt_close_from(FIRST_CLOSED, on_exec);
    for (int fd = FIRST_CLOSED; fd <= LAST_CLOSED; fd++)
        if (fcntl(fd, F_GETFD) != (on_exec ? FD_CLOEXEC : -1))
            return false;
    return fcntl(LAST_KEPT, F_GETFD) == 0;
}

static void descriptors_are_closed_also_where_close_range_is_missing(void **state)
{
    int status;
    pid_t pid;

    (void)state;
    pid = fork();
    if (pid == 0)
        _exit(!closes(false) || !closes(true) || !hide_close_range() || !closes(false) ||
              !closes(true));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_whole_and_within_bounds),
        cmocka_unit_test(an_error_can_get_a_prefix),
        cmocka_unit_test(a_long_error_lacks_its_middle),
        cmocka_unit_test(invalid_utf8_is_replaced),
        cmocka_unit_test(control_characters_are_replaced_and_text_is_not),
        cmocka_unit_test(programs_are_searched_for_in_path),
        cmocka_unit_test(descriptors_are_closed_also_where_close_range_is_missing),
        cmocka_unit_test(a_long_message_is_printed_whole),
        cmocka_unit_test(slurp_reads_whole_files_up_to_its_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
