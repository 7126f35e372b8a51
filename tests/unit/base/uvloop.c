/* How the event loop is made: without io_uring, and with an environment that stays as it was. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "launcher/base/uvloop.h"

static const char variable[] = "UV_USE_IO_URING";
static char seen[8];

/* In libuv's place. */
int uv_loop_init(uv_loop_t *loop)
{
    (void)loop;
    snprintf(seen, sizeof seen, "%s", getenv(variable) ? getenv(variable) : "");
    return UV_EMFILE;
}

static void libuv_uses_no_io_uring_and_ranks_do_not_inherit_it(void **state)
{
    (void)state;
    unsetenv(variable);
    assert_int_equal(dt_uvloop_init(NULL), UV_EMFILE);
    assert_string_equal(seen, "0");
    assert_null(getenv(variable));
}

static void ranks_get_the_users_setting(void **state)
{
    (void)state;
    setenv(variable, "1", 1);
    dt_uvloop_init(NULL);
    assert_string_equal(seen, "0");
    assert_string_equal(getenv(variable), "1");
}

/* libuv itself would abort. */
static void no_loop_is_made_without_a_descriptor(void **state)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct rlimit before, few;

    (void)state;
    close(fd);
    seen[0] = '\0';
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){ (rlim_t)fd + 1, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(dt_uvloop_init(NULL), UV_EMFILE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_string_equal(seen, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libuv_uses_no_io_uring_and_ranks_do_not_inherit_it),
        cmocka_unit_test(ranks_get_the_users_setting),
        cmocka_unit_test(no_loop_is_made_without_a_descriptor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
