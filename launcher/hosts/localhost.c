#include "launcher/hosts/localhost.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"

enum { HOSTS_FILE_MAX = 4 * 1024 * 1024 };

/* Writes address in the form that inet_ntop gives, so that equal addresses are equal texts. Returns
 * false if it is not an address. */
static bool canonical(char out[INET6_ADDRSTRLEN], const char *address)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (inet_pton(AF_INET, address, &v4) == 1)
        return inet_ntop(AF_INET, &v4, out, INET6_ADDRSTRLEN) != NULL;
    if (inet_pton(AF_INET6, address, &v6) != 1)
        return false;
    if (IN6_IS_ADDR_V4MAPPED(&v6))
        return inet_ntop(AF_INET, &v6.s6_addr[12], out, INET6_ADDRSTRLEN) != NULL;
    return inet_ntop(AF_INET6, &v6, out, INET6_ADDRSTRLEN) != NULL;
}

static void add_interfaces(struct dt_localhost *l)
{
    struct ifaddrs *all, *i;
    char text[INET6_ADDRSTRLEN];

    if (getifaddrs(&all) < 0)
        return;
    for (i = all; i; i = i->ifa_next) {
        const void *address = NULL;

        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET)
            address = &((struct sockaddr_in *)i->ifa_addr)->sin_addr;
        else if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET6)
            address = &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;
        if (address && inet_ntop(i->ifa_addr->sa_family, address, text, sizeof text))
            dt_xstrs_add(&l->names, text);
    }
    freeifaddrs(all);
}

static void add_hostname(struct dt_localhost *l)
{
    char name[HOST_NAME_MAX + 1] = "";

    if (gethostname(name, sizeof name - 1) < 0 || !*name)
        return;
    dt_xstrs_add(&l->names, name);
    name[strcspn(name, ".")] = '\0';
    if (*name)
        dt_xstrs_add(&l->names, name);
}

/* Adds the names that the hosts file gives to addresses of this machine. */
static void add_hosts_file(struct dt_localhost *l, const char *path)
{
    struct dt_strbuf b = { 0 };
    char *rest, *line;

    if (dt_slurp(&b, path, HOSTS_FILE_MAX, NULL) == 0 && b.len) {
        rest = b.data;
        while ((line = strsep(&rest, "\n"))) {
            char *save, *address, *name;

            line[strcspn(line, "#")] = '\0';
            address = strtok_r(line, " \t\r", &save);
            if (!address || !dt_localhost_is(address, l))
                continue;
            while ((name = strtok_r(NULL, " \t\r", &save)))
                dt_xstrs_add(&l->names, name);
        }
    }
    dt_strbuf_free(&b);
}

void dt_localhost_init(struct dt_localhost *l, const char *hosts_path)
{
    *l = (struct dt_localhost){ 0 };
    dt_xstrs_add(&l->names, "localhost");
    add_hostname(l);
    add_interfaces(l);
    if (hosts_path)
        add_hosts_file(l, hosts_path);
}

void dt_localhost_free(struct dt_localhost *l)
{
    dt_strs_free(&l->names);
}

/* A pod knows itself as job-0.job.ns.svc.cluster.local, and Kubernetes' MPI operator names it
 * job-0.job.ns.svc: the name server adds the rest. A first label alone is too short a beginning.
 * To a name that ends with a dot, nothing is added. */
static bool is_name_or_begins_it(const char *name, const char *own)
{
    size_t n = strlen(name);
    bool complete = n && name[n - 1] == '.';
    char address[INET6_ADDRSTRLEN];

    n -= complete;
    if (strncasecmp(own, name, n) != 0)
        return false;
    return !own[n] || (!complete && own[n] == '.' && strchr(name, '.') && !canonical(address, own));
}

bool dt_localhost_is(const char *name, void *arg)
{
    const struct dt_localhost *l = arg;
    char address[INET6_ADDRSTRLEN];

    if (canonical(address, name)) {
        if (strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0)
            return true;
        name = address;
    }
    for (uint32_t i = 0; i < l->names.n; i++)
        if (is_name_or_begins_it(name, l->names.v[i]))
            return true;
    return false;
}
