/* How fast a link says it is. The one that says so is a tap device in a network namespace of the
 * test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/host/linkspeed.h"

static void streams_grow_with_the_link(void **state)
{
    static const struct {
        uint32_t mbits, streams;
    } cases[] = { { 0, 1 },      { 10, 1 },     { 10000, 1 },     { 24999, 1 },
                  { 25000, 2 },  { 37500, 3 },  { 40000, 3 },     { 50000, 4 },
                  { 100000, 4 }, { 400000, 4 }, { UINT32_MAX, 4 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(dt_linkspeed_streams(cases[i].mbits), cases[i].streams);
}

static void links_without_a_speed_have_none(void **state)
{
    static const char *const addresses[] = { "127.0.0.1", "::1",      "192.0.2.1", "",
                                             "localhost", "127.0.0.", "%",         "fe80::1%lo" };

    (void)state;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        assert_int_equal(dt_linkspeed_mbits(addresses[i]), 0);
}

enum { UNABLE = 77, MBITS = 25000 };

/* As its driver would say it; dt0 has an address then. */
static int make_link(int tap, int fd)
{
    struct ethtool_cmd speed = { .cmd = ETHTOOL_SSET };
    struct ifreq r = { .ifr_name = "dt0", .ifr_flags = IFF_TAP | IFF_NO_PI };
    struct sockaddr_in at = { .sin_family = AF_INET };

    if (ioctl(tap, TUNSETIFF, &r) != 0)
        return -1;
    ethtool_cmd_speed_set(&speed, MBITS);
    r.ifr_data = (char *)&speed;
    if (ioctl(fd, SIOCETHTOOL, &r) != 0)
        return -1;
    inet_pton(AF_INET, "192.0.2.1", &at.sin_addr);
    memcpy(&r.ifr_addr, &at, sizeof at);
    return ioctl(fd, SIOCSIFADDR, &r);
}

static int look_at_a_link(void)
{
    int tap, fd;

    if (unshare(CLONE_NEWNET) != 0)
        return UNABLE;
    tap = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (tap < 0 || fd < 0 || make_link(tap, fd) != 0)
        return UNABLE;
    return dt_linkspeed_mbits("192.0.2.1") != MBITS || dt_linkspeed_mbits("192.0.2.2") != 0;
}

static void a_link_tells_its_speed(void **state)
{
    int status;
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        _exit(look_at_a_link());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == UNABLE) {
        print_message("# SKIP: no network namespace or no tap device here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_grow_with_the_link),
        cmocka_unit_test(links_without_a_speed_have_none),
        cmocka_unit_test(a_link_tells_its_speed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
