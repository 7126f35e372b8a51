/* A cgroup that holds another one cannot be removed, just like one whose processes have not ended
 * yet. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/agent/ranks/cgroup.h"
#include "tests/unit/unit.h"

/* The agent's loop must not nap. */
int nanosleep(const struct timespec *time, struct timespec *left);

int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)time;
    (void)left;
    fail_msg("it naps");
    return 0;
}

struct group {
    int fd;
    char path[DT_CGROUP_PATH];
    char inner[DT_CGROUP_PATH + 8];
};

static int make_group(void **state)
{
    static struct group g;

    g.fd = dt_cgroup_make(g.path, "unit");
    snprintf(g.inner, sizeof g.inner, "%s/inner", g.path);
    if (g.fd >= 0)
        assert_int_equal(mkdir(g.inner, 0755), 0);
    *state = g.fd >= 0 ? &g : NULL;
    return 0;
}

static struct group *group_or_skip(void **state)
{
    if (!*state) {
        print_message("SKIP: no cgroup (version 2) can be made here\n");
        skip();
    }
    return *state;
}

static void a_group_that_is_in_use_is_not_removed_and_not_waited_for(void **state)
{
    struct group *g = group_or_skip(state);
    char path[DT_CGROUP_PATH];

    memcpy(path, g->path, sizeof path);
    assert_false(dt_cgroup_remove(path));
    assert_string_equal(path, g->path);
    assert_int_equal(rmdir(g->inner), 0);
    assert_true(dt_cgroup_remove(path));
    assert_string_equal(path, "");
    assert_true(dt_cgroup_remove(path));
    assert_int_not_equal(access(g->path, F_OK), 0);
    close(g->fd);
}

static void a_dead_agents_group_is_removed_once_it_is_empty(void **state)
{
    struct group *g = group_or_skip(state);

    dt_cgroup_end_orphans();
    assert_int_equal(access(g->path, F_OK), 0);
    close(g->fd); /* as when its agent dies */
    assert_true(dt_cgroup_end_orphans() > 0);
    assert_int_equal(rmdir(g->inner), 0);
    dt_cgroup_end_orphans();
    assert_int_not_equal(access(g->path, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_group_that_is_in_use_is_not_removed_and_not_waited_for,
                               make_group),
        cmocka_unit_test_setup(a_dead_agents_group_is_removed_once_it_is_empty, make_group),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
