/* How many bytes --check sends from one host to the next. This test plays the agents. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "launcher/check/paths.h"
#include "tests/unit/unit.h"

enum { KIB = 1024, HOSTS = 2, MEASUREMENTS = 16 };

static struct dt_check_host hosts[HOSTS] = { { .name = "a" }, { .name = "b" } };
static struct dt_check_peer peers[HOSTS];
static struct dt_msg_probe asked;       /* the last PROBE that has targets */
static uint32_t measured[MEASUREMENTS]; /* bytes of each measurement from the first host */
static uint32_t n_measured;
static time_t later_s; /* added to the clock */

/* Replaces clock_gettime for everything in this process. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *t)
{
    int r = (int)syscall(SYS_clock_gettime, clock, t);

    t->tv_sec += later_s;
    return r;
}

/* Replaces that of session.c. */
void dt_session_send(struct dt_session *s, uint8_t type, const void *msg)
{
    const struct dt_msg_probe *m = msg;

    (void)s;
    assert_int_equal(type, DT_MSG_PROBE);
    if (m->targets.n == 0)
        return;
    asked = *m;
    asked.targets = (struct dt_msg_list){ 0 };
}

static void answer(struct dt_check_paths *p, uint32_t node, struct dt_msg_reached r)
{
    struct dt_msg_reach m = { .generation = asked.generation,
                              .results = { calloc(1, sizeof r), 1 } };

    r.node = !node;
    r.state = DT_REACH_OK;
    r.rtt_us = 100;
    *(struct dt_msg_reached *)m.results.v = r;
    dt_check_paths_answer(p, &peers[node], &m);
    dt_msg_free(DT_MSG_REACH, (union dt_msg *)&m);
}

static void begin(struct dt_check_paths *p)
{
    static struct dt_msg_netaddr addrs[HOSTS] = { { (char *)"eth0", (char *)"10.0.0.1", 1500 },
                                                  { (char *)"eth0", (char *)"10.0.0.2", 1500 } };
    static struct dt_host v[HOSTS];
    static const struct dt_hostlist list = { .v = v, .n = HOSTS };
    static const struct dt_job_config job = { .hosts = &list };
    struct dt_check_peer *all[HOSTS];

    for (uint32_t i = 0; i < HOSTS; i++) {
        peers[i] = (struct dt_check_peer){ .index = i,
                                           .host = &hosts[i],
                                           .addr = (char *)"",
                                           .peer_addr = (char *)"",
                                           .netaddrs = { &addrs[i], 1 },
                                           .probe_port = 7 };
        all[i] = &peers[i];
    }
    dt_check_paths_begin(p, &job, all, HOSTS);
    for (uint32_t i = 0; i < HOSTS; i++)
        answer(p, i, (struct dt_msg_reached){ 0 });
}

/* The path from the first host takes this long for a byte, and the bytes return more slowly. dtrun
 * receives each answer late. */
static void measure(double there_ns, double back_ns, time_t late_s)
{
    struct dt_check_paths p = { 0 };

    n_measured = 0;
    begin(&p);
    while (!p.over) {
        uint64_t there = (uint64_t)(there_ns * asked.bytes);
        uint64_t back = (uint64_t)(back_ns * asked.bytes);

        if (asked.node == 0) {
            assert_true(n_measured < MEASUREMENTS);
            measured[n_measured++] = asked.bytes;
        }
        later_s += late_s;
        answer(&p, asked.node,
               (struct dt_msg_reached){ .bulk_ns = there, .both_ns = there + back });
    }
    dt_check_paths_free(&p);
}

#define EXPECT(...)                                                                                \
    do {                                                                                           \
        const uint32_t want[] = { __VA_ARGS__ };                                                   \
                                                                                                   \
        assert_int_equal(n_measured, sizeof want / sizeof *want);                                  \
        assert_memory_equal(measured, want, sizeof want);                                          \
    } while (0)

static void a_fast_path_carries_more_and_more(void **state)
{
    (void)state;
    measure(0.8, 0.8, 0);
    EXPECT(64 * KIB, 512 * KIB, 4096 * KIB, 32768 * KIB, 32768 * KIB, 32768 * KIB);
}

static void a_busy_launching_machine_makes_no_path_look_slow(void **state)
{
    (void)state;
    measure(0.8, 0.8, 3);
    EXPECT(64 * KIB, 512 * KIB, 4096 * KIB, 32768 * KIB, 32768 * KIB, 32768 * KIB);
}

static void a_slow_path_carries_little(void **state)
{
    (void)state;
    measure(400, 0.8, 0);
    EXPECT(64 * KIB, 64 * KIB, 64 * KIB);
}

static void a_path_with_a_slow_way_back_carries_little(void **state)
{
    (void)state;
    measure(0.8, 1300, 0);
    EXPECT(64 * KIB, 64 * KIB, 64 * KIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fast_path_carries_more_and_more),
        cmocka_unit_test(a_busy_launching_machine_makes_no_path_look_slow),
        cmocka_unit_test(a_slow_path_carries_little),
        cmocka_unit_test(a_path_with_a_slow_way_back_carries_little),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
