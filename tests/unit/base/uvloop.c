/* How the event loop is made: without io_uring, and with an environment that stays as it was. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libuv_uses_no_io_uring_and_ranks_do_not_inherit_it),
        cmocka_unit_test(ranks_get_the_users_setting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
