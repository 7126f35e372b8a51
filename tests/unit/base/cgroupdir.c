/* Finds a process's cgroup from /proc/self/cgroup and mountinfo of many kinds of machines. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "launcher/base/granted/cgroupdir.h"

static const char unified[] =
    "24 30 0:22 / /proc rw,nosuid - proc proc rw\n"
    "28 24 0:25 / /sys/fs/cgroup rw,nosuid,nodev shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

static const char version_1[] =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
    "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    "34 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:3 master:1 - cgroup cgroup "
    "rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

static const char hybrid[] =
    "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    "33 31 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
    "34 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";

/* Docker without a cgroup namespace mounts its part of the tree. */
static const char docker_1[] =
    "41 40 0:31 /docker/0f3a /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";

/* A part of the tree is mounted, then the whole tree, at a path with blanks. */
static const char odd[] = "50 40 0:25 /other /mnt/other rw - cgroup2 none rw\n"
                          "51 40 0:25 / /mnt/all\\040of\\011it rw - cgroup2 none rw\n"
                          "52 40 0:26 / /mnt/pids rw - cgroup none rw,pids\n";

static const char groups_1[] = "12:cpuset:/\n"
                               "5:cpu,cpuacct:/user.slice\n"
                               "4:memory:/user.slice/session-3.scope\n"
                               "1:name=systemd:/user.slice/user-0.slice\n";

static const char groups_hybrid[] = "4:memory:/slurm/uid_0/job_7\n"
                                    "1:name=systemd:/system.slice/slurmd.service\n"
                                    "0::/system.slice/slurmd.service\n";

static const struct {
    const char *cgroup, *mountinfo, *controller;
    int version; /* 0: none is found */
    const char *mount, *path;
} cases[] = {
    { "0::/user.slice/a.scope\n", unified, "", 2, "/sys/fs/cgroup", "/user.slice/a.scope" },
    { "0::/user.slice/a.scope\n", unified, "memory", 2, "/sys/fs/cgroup", "/user.slice/a.scope" },
    { "0::/\n", unified, "pids", 2, "/sys/fs/cgroup", "" }, /* a container */
    { "0::/a:b", unified, "", 2, "/sys/fs/cgroup", "/a:b" },
    { "0::/..a\n", unified, "", 2, "/sys/fs/cgroup", "/..a" },
    { "0::/..\n", unified, "", 0, NULL, NULL },
    { "0::/../../b\n", unified, "", 0, NULL, NULL }, /* outside the namespace */
    { groups_1, version_1, "", 0, NULL, NULL },
    { groups_1, version_1, "memory", 1, "/sys/fs/cgroup/memory", "/user.slice/session-3.scope" },
    { groups_1, version_1, "cpu", 1, "/sys/fs/cgroup/cpu,cpuacct", "/user.slice" },
    { groups_1, version_1, "cpuacct", 1, "/sys/fs/cgroup/cpu,cpuacct", "/user.slice" },
    { groups_1, version_1, "cpuset", 1, "/sys/fs/cgroup/cpuset", "" },
    { groups_1, version_1, "pids", 0, NULL, NULL },
    { groups_hybrid, hybrid, "", 2, "/sys/fs/cgroup/unified", "/system.slice/slurmd.service" },
    { groups_hybrid, hybrid, "memory", 1, "/sys/fs/cgroup/memory", "/slurm/uid_0/job_7" },
    { groups_hybrid, hybrid, "cpu", 2, "/sys/fs/cgroup/unified", "/system.slice/slurmd.service" },
    { "3:memory:/docker/0f3a\n", docker_1, "memory", 1, "/sys/fs/cgroup/memory", "" },
    { "3:memory:/docker/0f3a/x\n", docker_1, "memory", 1, "/sys/fs/cgroup/memory", "/x" },
    { "3:memory:/docker/0f3ab\n", docker_1, "memory", 0, NULL, NULL },
    { "3:memory:/\n", docker_1, "memory", 0, NULL, NULL },
    { "0::/my job\n", odd, "", 2, "/mnt/all of\tit", "/my job" },
    { "0::/other/b\n", odd, "", 2, "/mnt/other", "/b" },
    { "7:pids:/p\n0::/other/b\n", odd, "pids", 1, "/mnt/pids", "/p" },
    { "0::/a\n", version_1, "", 0, NULL, NULL }, /* not mounted */
    { "4:memory:/a\n0::/b\n", unified, "memory", 0, NULL, NULL },
    { "", unified, "", 0, NULL, NULL },
    { "nonsense\n:\n\n7:cpu", unified, "cpu", 0, NULL, NULL },
    { "0::/a\n", "nonsense\n\n - \n1 2 3 - cgroup2 x rw\n1 2 3 / /x rw - cgroup2", "", 0, NULL,
      NULL },
};

static void the_cgroup_of_the_process_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_cgroupdir d;
        bool found =
            dt_cgroupdir_parse(&d, cases[i].cgroup, cases[i].mountinfo, cases[i].controller);

        if (found != (cases[i].version != 0) || (found && d.version != cases[i].version))
            fail_msg("case %zu: found %d, version %d", i, found, d.version);
        if (found) {
            assert_string_equal(d.mount, cases[i].mount);
            assert_string_equal(d.path, cases[i].path);
        }
        dt_cgroupdir_free(&d);
    }
}

static void add_line(void *arg, const char *dir)
{
    char *seen = arg;

    snprintf(seen + strlen(seen), 128 - strlen(seen), "%s\n", dir);
}

static void climbing_ends_at_the_mount_point(void **state)
{
    static const struct {
        struct dt_cgroupdir d;
        const char *want;
    } climbs[] = {
        { { 2, "/sys/fs/cgroup", "/a/b" },
          "/sys/fs/cgroup/a/b\n/sys/fs/cgroup/a\n/sys/fs/cgroup\n" },
        { { 1, "/mnt", "" }, "/mnt\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof climbs / sizeof *climbs; i++) {
        char seen[128] = "";

        dt_cgroupdir_climb(&climbs[i].d, add_line, seen);
        assert_string_equal(seen, climbs[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cgroup_of_the_process_is_found),
        cmocka_unit_test(climbing_ends_at_the_mount_point),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
