#include "launcher/agent/facts/netaddrs.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/base/mem.h"

static bool write_address(char text[INET6_ADDRSTRLEN], const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return inet_ntop(AF_INET, &((const struct sockaddr_in *)a)->sin_addr, text,
                         INET6_ADDRSTRLEN);
    return a->sa_family == AF_INET6 &&
           inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)a)->sin6_addr, text,
                     INET6_ADDRSTRLEN);
}

static bool is_link_local(const struct sockaddr *a)
{
    return a->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static uint32_t mtu_of(int sock, const char *iface)
{
    struct ifreq request = { 0 };

    memcpy(request.ifr_name, iface, strnlen(iface, IFNAMSIZ - 1));
    return ioctl(sock, SIOCGIFMTU, &request) == 0 ? (uint32_t)request.ifr_mtu : 0;
}

static void add_address(struct dt_msg_list *list, const struct ifaddrs *i, int sock)
{
    char text[INET6_ADDRSTRLEN];
    struct dt_msg_netaddr *v;
    /* "eth0:1" is only a label of eth0. */
    char *iface = dt_xstrndup(i->ifa_name, strcspn(i->ifa_name, ":"));

    if (!write_address(text, i->ifa_addr)) {
        free(iface);
        return;
    }
    list->v = v = dt_xrealloc(list->v, list->n + 1, sizeof *v);
    v[list->n++] = (struct dt_msg_netaddr){
        .iface = iface,
        .addr = is_link_local(i->ifa_addr) ? dt_xasprintf("%s%%%s", text, iface) : dt_xstrdup(text),
        .mtu = mtu_of(sock, iface),
    };
}

void dt_netaddrs_list(struct dt_msg_list *list)
{
    int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifaddrs *all = NULL;

    *list = (struct dt_msg_list){ 0 };
    if (getifaddrs(&all) < 0)
        all = NULL;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        if (i->ifa_addr && (i->ifa_flags & IFF_UP) && (i->ifa_flags & IFF_RUNNING))
            add_address(list, i, sock);
    }
    freeifaddrs(all);
    if (sock >= 0)
        close(sock);
}
