/* Which rank of a CPU that has too many goes where, and that it does. */
#include "tests/unit/unit.h"

#include <string.h>
#include <time.h>

#include "runtime/host/spread.h"

enum { MOST = 8, STAYS = -1, OFTEN = 64 };

static cpu_set_t set_of(const char *cpus)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (; *cpus; cpus++)
        CPU_SET(*cpus - '0', &set);
    return set;
}

static const struct {
    uint32_t cpus[MOST]; /* 1 + each rank's */
    uint32_t n;
    uint32_t me;
    const char *allowed;
    int goal;
} cases[] = {
    { { 1, 1, 1, 2 }, 4, 2, "01", 1 },
    { { 1, 1, 1, 2 }, 4, 1, "01", STAYS }, /* the last one goes */
    { { 1, 1, 1, 2 }, 4, 3, "01", STAYS },
    { { 2, 1, 2, 2 }, 4, 3, "01", 0 },
    { { 1, 1, 2, 2 }, 4, 1, "01", STAYS },
    { { 1, 1, 1, 2, 2 }, 5, 2, "01", STAYS }, /* it would be no better */
    { { 1, 1, 1, 1 }, 4, 3, "01", 1 },
    { { 1, 1, 1, 1 }, 4, 3, "0", STAYS }, /* bound */
    { { 1, 1, 1, 2 }, 4, 2, "05", 5 },
    { { 1, 1, 1, 2 }, 4, 2, "", STAYS },
    { { 1, 1, 1, 2, 2 }, 5, 2, "012", 2 }, /* to the one with the fewest */
    { { 1, 0, 1, 1 }, 4, 3, "01", STAYS }, /* one has not shown its own */
    { { 1, 1, 1, 0 }, 4, 3, "01", STAYS },
    { { 1, 1, 1, CPU_SETSIZE + 1 }, 4, 2, "01", STAYS },
    { { CPU_SETSIZE, CPU_SETSIZE, CPU_SETSIZE, 1 }, 4, 2, "01", 1 },
    { { 1, 1, 1, UINT32_MAX }, 4, 2, "01", STAYS },
};

static void the_last_goes_where_it_is_better(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const cpu_set_t allowed = set_of(cases[i].allowed);

        if (dt_spread_goal(cases[i].cpus, cases[i].n, cases[i].me, &allowed) != cases[i].goal)
            fail_msg("case %zu", i);
    }
}

static cpu_set_t before;

static int remember(void **state)
{
    (void)state;
    return sched_getaffinity(0, sizeof before, &before);
}

static int restore(void **state)
{
    (void)state;
    return sched_setaffinity(0, sizeof before, &before);
}

static int first_of(const cpu_set_t *set, int from)
{
    while (from < CPU_SETSIZE && !CPU_ISSET(from, set))
        from++;
    return from;
}

/* Three others say that they are on the first CPU, and none is on the second. Whether this one is
 * on the first, or the kernel has already moved it, the second is where it is in the end. */
static void it_goes_and_may_return(void **state)
{
    struct dt_hostshm_rank ranks[4];
    const struct dt_hostshm map = { .ranks = ranks, .local_size = 4 };
    int one = first_of(&before, 0), other = first_of(&before, one + 1);
    struct dt_spread p;
    cpu_set_t both, after;

    (void)state;
    if (other >= CPU_SETSIZE)
        skip(); /* needs two CPUs */
    memset(ranks, 0, sizeof ranks);
    for (int i = 0; i < 3; i++)
        atomic_store(&ranks[i].cpu, (uint32_t)one + 1);
    CPU_ZERO(&both);
    CPU_SET(one, &both);
    assert_int_equal(sched_setaffinity(0, sizeof both, &both), 0);
    CPU_SET(other, &both);
    assert_int_equal(sched_setaffinity(0, sizeof both, &both), 0);
    dt_spread_start(&p, true);
    for (int i = 0; i < OFTEN; i++)
        dt_spread_turn(&p, &map, 3, 4);
    assert_int_equal(atomic_load(&ranks[3].cpu), other + 1);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&after, &both));
}

static void it_shows_where_it_is(void **state)
{
    struct dt_hostshm_rank ranks[2];
    const struct dt_hostshm map = { .ranks = ranks, .local_size = 2 };
    int cpu = first_of(&before, 0);
    struct dt_spread p;
    cpu_set_t one;

    (void)state;
    memset(ranks, 0, sizeof ranks);
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    dt_spread_start(&p, true);
    dt_spread_turn(&p, &map, 1, 2);
    assert_int_equal(atomic_load(&ranks[1].cpu), cpu + 1);
    assert_false(dt_spread_is_here(&p, &map, 0));
    atomic_store(&ranks[0].cpu, (uint32_t)cpu + 1);
    assert_true(dt_spread_is_here(&p, &map, 0));
    atomic_store(&ranks[0].cpu, (uint32_t)cpu + 2);
    assert_false(dt_spread_is_here(&p, &map, 0));
}

/* ---- a machine that is made up ----
 *
 * This thread is on CPU 0, as three others, and stays there whatever it asks for. */

static struct {
    bool on;
    cpu_set_t cpuset; /* what the administrator leaves the job */
    cpu_set_t asked;  /* for what the thread last asked */
    unsigned moves;
    uint64_t move_ns; /* how long each takes */
    uint64_t now_ns;
} machine;

int __real_sched_getcpu(void);
int __wrap_sched_getcpu(void);
int __wrap_sched_getcpu(void)
{
    return machine.on ? 0 : __real_sched_getcpu();
}

int __real_sched_getaffinity(pid_t pid, size_t n, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t n, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t n, cpu_set_t *set)
{
    if (!machine.on)
        return __real_sched_getaffinity(pid, n, set);
    CPU_AND(set, &machine.asked, &machine.cpuset);
    return 0;
}

int __real_sched_setaffinity(pid_t pid, size_t n, const cpu_set_t *set);
int __wrap_sched_setaffinity(pid_t pid, size_t n, const cpu_set_t *set);
int __wrap_sched_setaffinity(pid_t pid, size_t n, const cpu_set_t *set)
{
    if (!machine.on)
        return __real_sched_setaffinity(pid, n, set);
    machine.asked = *set;
    if (CPU_COUNT(set) == 1) {
        machine.moves++;
        machine.now_ns += machine.move_ns;
    }
    return 0;
}

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    if (!machine.on)
        return __real_clock_gettime(clock, t);
    t->tv_sec = (time_t)(machine.now_ns / 1000000000);
    t->tv_nsec = (long)(machine.now_ns % 1000000000);
    return 0;
}

static int break_down(void **state)
{
    (void)state;
    machine.on = false;
    return 0;
}

static cpu_set_t all_cpus(void)
{
    cpu_set_t all;

    memset(&all, 0xff, sizeof all);
    return all;
}

/* So many waits, of wait_ns each, on a machine whose second CPU nobody seems to use. */
static void wait_often(unsigned waits, uint64_t wait_ns)
{
    struct dt_hostshm_rank ranks[4];
    const struct dt_hostshm map = { .ranks = ranks, .local_size = 4 };
    struct dt_spread p;

    memset(ranks, 0, sizeof ranks);
    for (int i = 0; i < 3; i++)
        atomic_store(&ranks[i].cpu, 1);
    machine.on = true;
    machine.moves = 0;
    dt_spread_start(&p, true);
    for (unsigned i = 0; i < waits; i++) {
        dt_spread_turn(&p, &map, 3, 4);
        machine.now_ns += wait_ns;
    }
}

/* A thread that asked for some CPUs, of which its cpuset has two and more, has asked for the same
 * when it has moved. */
static void move_and_be_bound_to(cpu_set_t asked, const char *cpuset)
{
    machine.asked = asked;
    machine.cpuset = set_of(cpuset);
    wait_often(OFTEN, 0);
    assert_int_equal(machine.moves, 1);
    assert_true(CPU_EQUAL(&machine.asked, &asked));
}

/* Else it would stay away from CPUs that its cpuset gets later, or that come up. */
static void it_is_bound_to_nothing_if_it_was_not(void **state)
{
    (void)state;
    move_and_be_bound_to(all_cpus(), "01");
}

static void it_is_bound_to_what_it_was(void **state)
{
    (void)state;
    move_and_be_bound_to(set_of("013"), "01234");
}

/* As where a real-time process has that CPU, and the kernel keeps ranks away from it. */
static void moves_take_little_of_the_time(void **state)
{
    const uint64_t second = 1000000000, hour = 3600 * second;
    uint64_t begin = machine.now_ns;

    (void)state;
    machine.asked = all_cpus();
    machine.cpuset = set_of("01");
    machine.move_ns = second;
    wait_often((unsigned)(hour / 100000), 100000);
    assert_in_range(machine.moves, 30, (machine.now_ns - begin) / second / 100 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_goes_where_it_is_better),
        cmocka_unit_test_setup_teardown(it_goes_and_may_return, remember, restore),
        cmocka_unit_test_setup_teardown(it_shows_where_it_is, remember, restore),
        cmocka_unit_test_teardown(it_is_bound_to_nothing_if_it_was_not, break_down),
        cmocka_unit_test_teardown(it_is_bound_to_what_it_was, break_down),
        cmocka_unit_test_teardown(moves_take_little_of_the_time, break_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
