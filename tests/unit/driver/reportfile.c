/* What --report says if the file cannot be written to its end. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/driver/reportfile.h"

static bool close_fails;

/* Replaces libc's. Like a network file system that is over quota, it closes and then fails. */
int close(int fd)
{
    int rc = (int)syscall(SYS_close, fd);

    if (!close_fails)
        return rc;
    errno = EDQUOT;
    return -1;
}

static void a_failure_to_close_is_reported_with_its_reason(void **state)
{
    char dir[] = "/tmp/dtrun-reportfile-XXXXXX", path[64], want[128];
    struct dt_error err = { 0 };

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/report", dir);
    close_fails = true;
    assert_int_equal(dt_report_write(path, "{}", &err), -1);
    close_fails = false;
    snprintf(want, sizeof want, "--report %s: %s", path, strerror(EDQUOT));
    assert_string_equal(err.text, want);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(dt_report_write(path, "{}", &err), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0); /* nothing else is left in it */
}

/* A dtrun with the same PID, in another container or on another host, was killed before it could
 * rename its file. */
static void a_name_with_this_pid_may_be_taken(void **state)
{
    char dir[] = "/tmp/dtrun-reportfile-XXXXXX", path[64], taken[96];
    struct dt_error err = { 0 };
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/report", dir);
    snprintf(taken, sizeof taken, "%s.%d.tmp", path, (int)getpid());
    f = fopen(taken, "w");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(dt_report_write(path, "{}", &err), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(taken), 0);
    assert_int_equal(rmdir(dir), 0);
}

static void a_name_may_be_as_long_as_the_file_system_allows(void **state)
{
    char dir[] = "/tmp/dtrun-reportfile-XXXXXX", path[NAME_MAX + sizeof dir + 1];
    struct dt_error err = { 0 };

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/%0*d", dir, NAME_MAX, 1);
    assert_int_equal(dt_report_write(path, "{}", &err), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_to_close_is_reported_with_its_reason),
        cmocka_unit_test(a_name_with_this_pid_may_be_taken),
        cmocka_unit_test(a_name_may_be_as_long_as_the_file_system_allows),
    };

    return cmocka_run_group_tests_name("reportfile", tests, NULL, NULL);
}
