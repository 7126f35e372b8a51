#include "runtime/host/linkspeed.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STREAM_MBITS = 12500, STREAMS = 4 };

/* Of a numeric address, its bytes; a zone behind % is left out. Returns its family, 0: it is none.
 */
static int parse(const char *address, struct in6_addr *bytes)
{
    char plain[INET6_ADDRSTRLEN];

    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(address, "%"), address);
    if (inet_pton(AF_INET, plain, bytes) == 1)
        return AF_INET;
    return inet_pton(AF_INET6, plain, bytes) == 1 ? AF_INET6 : 0;
}

static bool is_at(const struct sockaddr *at, int family, const struct in6_addr *bytes)
{
    if (!at || at->sa_family != family)
        return false;
    if (family == AF_INET)
        return memcmp(&((const struct sockaddr_in *)at)->sin_addr, bytes, 4) == 0;
    return memcmp(&((const struct sockaddr_in6 *)at)->sin6_addr, bytes, 16) == 0;
}

/* False: none. */
static bool find_interface(const char *address, char name[IFNAMSIZ])
{
    struct in6_addr bytes;
    int family = parse(address, &bytes);
    struct ifaddrs *all, *i;

    if (!family || getifaddrs(&all) != 0)
        return false;
    i = all;
    while (i && !is_at(i->ifa_addr, family, &bytes))
        i = i->ifa_next;
    if (i)
        snprintf(name, IFNAMSIZ, "%s", i->ifa_name);
    freeifaddrs(all);
    return i != NULL;
}

static uint32_t ask_driver(const char name[IFNAMSIZ])
{
    struct ethtool_cmd settings = { .cmd = ETHTOOL_GSET };
    struct ifreq request = { .ifr_data = (char *)&settings };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    uint32_t mbits = 0;

    if (fd < 0)
        return 0;
    memcpy(request.ifr_name, name, IFNAMSIZ);
    if (ioctl(fd, SIOCETHTOOL, &request) == 0)
        mbits = ethtool_cmd_speed(&settings);
    close(fd);
    return mbits == (uint32_t)SPEED_UNKNOWN ? 0 : mbits;
}

uint32_t dt_linkspeed_mbits(const char *address)
{
    char name[IFNAMSIZ] = "";

    return find_interface(address, name) ? ask_driver(name) : 0;
}

uint32_t dt_linkspeed_streams(uint32_t mbits)
{
    uint32_t n = mbits / STREAM_MBITS;

    return n < 1 ? 1 : n > STREAMS ? STREAMS : n;
}
