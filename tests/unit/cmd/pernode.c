#include "cmd/pernode.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/options.h"
#include "tests/unit/unit.h"

/* A machine with three GPUs, of which a container got the first and the last. */
static char root[] = "/tmp/dtrun-pernode.XXXXXX";

static void run(const char *command)
{
    char line[512];

    snprintf(line, sizeof line, "cd %s && %s", root, command);
    assert_int_equal(system(line), 0);
}

static int make_machine(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    run("mkdir dev && touch dev/nvidia0 dev/nvidia2 && for i in 0 1 2; do "
        "d=proc/driver/nvidia/gpus/$i; "
        "mkdir -p $d && printf 'Model: A\\nDevice Minor: \\t %d\\n' $i >$d/information; done");
    return 0;
}

static int remove_machine(void **state)
{
    char line[64];

    (void)state;
    snprintf(line, sizeof line, "rm -rf %s", root);
    return system(line);
}

static int cpus(void)
{
    cpu_set_t set;

    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    return CPU_COUNT(&set);
}

static int slots_here(int per_node, const char *mask, const char *at, struct dt_error *err)
{
    struct dt_hostlist hosts = { 0 };
    int rc;

    dt_hostlist_add(&hosts, "localhost")->local = true;
    if (mask)
        setenv("CUDA_VISIBLE_DEVICES", mask, 1);
    else
        unsetenv("CUDA_VISIBLE_DEVICES");
    rc = dt_pernode_slots(&hosts, per_node, at, err);
    rc = rc == 0 ? hosts.v[0].slots : rc;
    dt_hostlist_free(&hosts);
    return rc;
}

/* dir: in root. */
static int slots_in(const char *dir, int per_node)
{
    char at[64];

    snprintf(at, sizeof at, "%s/%s", root, dir);
    return slots_here(per_node, NULL, at, NULL);
}

static void devices_of_this_machine_are_counted(void **state)
{
    struct dt_error err = { 0 };

    (void)state;
    assert_int_equal(slots_here(DT_PER_NODE_GPU, NULL, root, NULL), 2);
    assert_int_equal(slots_here(DT_PER_NODE_AUTO, NULL, root, NULL), 2);
    assert_int_equal(slots_here(DT_PER_NODE_CPU, NULL, root, NULL), cpus());
    assert_int_equal(slots_here(DT_PER_NODE_GPU, "1", root, NULL), 1);
    assert_int_equal(slots_here(DT_PER_NODE_AUTO, "", root, NULL), cpus());
    assert_int_equal(slots_here(DT_PER_NODE_AUTO, NULL, "/nowhere", NULL), cpus());
    assert_int_equal(slots_here(DT_PER_NODE_GPU, NULL, "/nowhere", &err), -1);
    assert_int_equal(err.exit_code, 2);
    assert_string_equal(err.text, "--npernode gpu: this machine has no NVIDIA GPU");
}

/* Of all CPUs, of which a container has the time of one and a half. */
static void cpus_count_as_far_as_the_control_group_grants_their_time(void **state)
{
    int granted = cpus() < 2 ? cpus() : 2;

    (void)state;
    run("mkdir -p box/proc/self box/sys/fs/cgroup && echo 0::/ >box/proc/self/cgroup && "
        "echo '1 2 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup rw' >box/proc/self/mountinfo && "
        "echo 150000 100000 >box/sys/fs/cgroup/cpu.max");
    assert_int_equal(slots_in("box", DT_PER_NODE_CPU), granted);
    assert_int_equal(slots_in("box", DT_PER_NODE_AUTO), granted);
    run("echo 50000 100000 >box/sys/fs/cgroup/cpu.max");
    assert_int_equal(slots_in("box", DT_PER_NODE_CPU), 1);
    run("echo 99900000 100000 >box/sys/fs/cgroup/cpu.max");
    assert_int_equal(slots_in("box", DT_PER_NODE_CPU), cpus());
}

static void given_slots_are_kept(void **state)
{
    struct dt_hostlist hosts = { 0 };
    struct dt_error err = { 0 };
    struct dt_host *given;

    (void)state;
    given = dt_hostlist_add(&hosts, "host1");
    given->slots = 4;
    given->slots_given = true;
    given = dt_hostlist_add(&hosts, "host2");
    given->slots = 3;
    given->gpus_given = true;
    assert_int_equal(dt_pernode_slots(&hosts, DT_PER_NODE_CPU, root, &err), 0);
    assert_int_equal(hosts.v[0].slots, 4);
    assert_int_equal(hosts.v[1].slots, 3);
    dt_hostlist_add(&hosts, "host3");
    assert_int_equal(dt_pernode_slots(&hosts, DT_PER_NODE_AUTO, root, &err), -1);
    assert_string_equal(err.text,
                        "--npernode auto: dtrun does not know what host3 has before it connects: "
                        "write host3:N, slots= or gpus= in a hostfile, or --npernode N");
    dt_hostlist_free(&hosts);
}

static void one_task_of_a_batch_job_may_be_for_torchrun(void **state)
{
    struct dt_hostlist hosts = { 0 };
    struct dt_host *h = dt_hostlist_add(&hosts, "localhost");

    (void)state;
    unsetenv("CUDA_VISIBLE_DEVICES");
    h->local = h->slots_given = h->slots_granted = true;
    assert_int_equal(dt_pernode_slots(&hosts, DT_PER_NODE_GPU, root, NULL), 0);
    assert_int_equal(h->slots, 2);
    h->slots = 5;
    assert_int_equal(dt_pernode_slots(&hosts, DT_PER_NODE_GPU, root, NULL), 0);
    assert_int_equal(h->slots, 5);
    h->local = false;
    h->slots = 1;
    assert_int_equal(dt_pernode_slots(&hosts, DT_PER_NODE_GPU, root, NULL), -1);
    dt_hostlist_free(&hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_of_this_machine_are_counted),
        cmocka_unit_test(cpus_count_as_far_as_the_control_group_grants_their_time),
        cmocka_unit_test(given_slots_are_kept),
        cmocka_unit_test(one_task_of_a_batch_job_may_be_for_torchrun),
    };

    return cmocka_run_group_tests(tests, make_machine, remove_machine);
}
