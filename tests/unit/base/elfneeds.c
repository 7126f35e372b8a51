#include "launcher/base/program/elfneeds.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/slurp.h"
#include "tests/unit/unit.h"

enum { PROGRAM_MAX = 64 * 1024 * 1024, HEAD = 1024 };

/* Whether a file needs a library whose name begins with the prefix. */
static bool begins_with(void *prefix, const char *name, const char *folders)
{
    assert_non_null(folders);
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool needs(const char *path, const char *prefix)
{
    return dt_elf_needed(path, begins_with, (void *)(uintptr_t)prefix);
}

static void this_program_needs_libc(void **state)
{
    (void)state;
    assert_true(needs("/proc/self/exe", "libc.so"));
    assert_false(needs("/proc/self/exe", "libmpi"));
}

static void a_file_that_is_no_program_needs_nothing(void **state)
{
    static const char *const files[] = { "/", "/dev/null", "/etc/passwd", "/none", "" };

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_false(needs(files[i], "lib"));
}

static bool needs_libc(const char *bytes, size_t n)
{
    char path[] = "/tmp/dtrun-elf.XXXXXX";
    int fd = mkstemp(path);
    bool found;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    close(fd);
    found = needs(path, "libc.");
    unlink(path);
    return found;
}

/* The reader neither crashes nor hangs. Sanitizers find reads beyond the file. */
static void damaged_programs_are_survived(void **state)
{
    struct dt_strbuf whole = { 0 };

    (void)state;
    assert_int_equal(dt_slurp(&whole, "/proc/self/exe", PROGRAM_MAX, NULL), 0);
    assert_true(whole.len > HEAD);
    assert_true(needs_libc(whole.data, whole.len));
    assert_false(needs_libc(whole.data, 63));
    for (size_t n = 0; n < HEAD; n += 7)
        assert_false(needs_libc(whole.data, n));
    for (size_t i = 0; i < HEAD; i += 3) {
        char was = whole.data[i];

        whole.data[i] = (char)0xff;
        needs_libc(whole.data, whole.len < 65536 ? whole.len : 65536);
        whole.data[i] = was;
    }
    dt_strbuf_free(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_program_needs_libc),
        cmocka_unit_test(a_file_that_is_no_program_needs_nothing),
        cmocka_unit_test(damaged_programs_are_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
