/* Which ranks the kernel has killed, as far as its log says so. */
#include "launcher/agent/ranks/oom.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

/* As /dev/kmsg, a read returns one record. */
static void record(int log, const char *text)
{
    assert_int_equal(write(log, text, strlen(text)), (ssize_t)strlen(text));
}

static void only_kills_since_the_start_of_the_ranks_count(void **state)
{
    struct dt_oom oom = { 0 };
    int ends[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
    oom.log = ends[0];
    record(ends[1], "3,1,2,-;Out of memory: Killed process 815 (train) total-vm:1kB");
    record(ends[1], "6,2,3,-;oom_reaper: reaped process 816 (train)");
    assert_true(dt_oom_killed(&oom, 815));
    assert_false(dt_oom_killed(&oom, 816));
    record(ends[1], "3,3,4,-;Memory cgroup out of memory: Killed process 817 (train)");
    dt_oom_forget(&oom);
    assert_false(dt_oom_killed(&oom, 815));
    assert_false(dt_oom_killed(&oom, 817));
    record(ends[1], "3,4,5,-;Out of memory: Killed process 815 (train) total-vm:1kB");
    assert_true(dt_oom_killed(&oom, 815));
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_kills_since_the_start_of_the_ranks_count),
    };

    return cmocka_run_group_tests_name("oom", tests, NULL, NULL);
}
