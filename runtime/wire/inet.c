#include "runtime/wire/inet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/wire/highfd.h"

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t length(const union address *a)
{
    return a->any.sa_family == AF_INET6 ? sizeof a->v6 : sizeof a->v4;
}

static int listen_on(int family, uint16_t *port)
{
    int off = 0;
    int fd = dt_fd_high(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    union address a = { 0 };
    socklen_t len;

    a.any.sa_family = (sa_family_t)family;
    len = length(&a);
    if (fd < 0)
        return -1;
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, &a.any, len) < 0 || listen(fd, SOMAXCONN) < 0 ||
        getsockname(fd, &a.any, &len) < 0) {
        close(fd);
        return -1;
    }
    *port = ntohs(family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
    return fd;
}

int dt_inet_listen(uint16_t *port)
{
    int fd = listen_on(AF_INET6, port);

    return fd < 0 ? listen_on(AF_INET, port) : fd;
}

static bool parse(union address *a, const char *addr, uint16_t port)
{
    char text[INET6_ADDRSTRLEN + IF_NAMESIZE];
    char *zone;

    *a = (union address){ 0 };
    if (inet_pton(AF_INET, addr, &a->v4.sin_addr) == 1) {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = htons(port);
        return true;
    }
    if (snprintf(text, sizeof text, "%s", addr) >= (int)sizeof text)
        return false;
    zone = strchr(text, '%');
    if (zone) {
        *zone = '\0';
        a->v6.sin6_scope_id = if_nametoindex(zone + 1);
    }
    a->v6.sin6_family = AF_INET6;
    a->v6.sin6_port = htons(port);
    return inet_pton(AF_INET6, text, &a->v6.sin6_addr) == 1 && (!zone || a->v6.sin6_scope_id);
}

int dt_inet_connect(const char *addr, uint16_t port)
{
    union address a;
    int error;
    int fd;

    if (!parse(&a, addr, port)) {
        errno = EINVAL;
        return -1;
    }
    fd = dt_fd_high(socket(a.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0 || connect(fd, &a.any, length(&a)) == 0 || errno == EINPROGRESS)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Turns ::ffff:10.0.0.1, as IPv6 sockets show IPv4 addresses, into 10.0.0.1. */
static void unmap(union address *a)
{
    struct in_addr v4;

    if (a->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr))
        return;
    memcpy(&v4, &a->v6.sin6_addr.s6_addr[12], sizeof v4);
    a->v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = v4 };
}

bool dt_inet_is_at(int fd, const char *addr)
{
    union address own = { 0 }, wanted;
    socklen_t len = sizeof own;

    if (getsockname(fd, &own.any, &len) < 0 || !parse(&wanted, addr, 0))
        return false;
    unmap(&own);
    if (own.any.sa_family != wanted.any.sa_family)
        return false;
    if (own.any.sa_family == AF_INET)
        return own.v4.sin_addr.s_addr == wanted.v4.sin_addr.s_addr;
    return IN6_ARE_ADDR_EQUAL(&own.v6.sin6_addr, &wanted.v6.sin6_addr);
}
