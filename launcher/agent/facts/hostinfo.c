#include "launcher/agent/facts/hostinfo.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "launcher/base/clock.h"
#include "launcher/base/granted/affinity.h"
#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"
#include "runtime/wire/env.h"

enum { BOOT_ID_MAX = 128, PORT_TRIES = 8, PORT_MIN = 15000, PORT_MAX = 32000 };

static unsigned long long inode_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (unsigned long long)st.st_ino : 0;
}

/* Containers of one machine share the boot id, but not the namespaces through which ranks
 * communicate. Where the boot id is hidden, or the sandbox has none, namespaces of different
 * machines may have the same numbers, and the host's name must tell them apart. */
static char *identity(const char *hostname)
{
    const char *given = getenv(DT_ENV_HOSTID);
    struct dt_strbuf boot = { 0 };
    char *text;

    if (given && *given)
        return dt_xstrdup(given);
    dt_slurp(&boot, "/proc/sys/kernel/random/boot_id", BOOT_ID_MAX, NULL);
    if (boot.len == 0)
        dt_strbuf_puts(&boot, hostname);
    text = dt_xasprintf("%.*s/%llx/%llx", (int)strcspn(dt_strbuf_text(&boot), "\n"),
                        dt_strbuf_text(&boot), inode_of("/proc/self/ns/net"),
                        inode_of("/proc/self/ns/pid"));
    dt_strbuf_free(&boot);
    return text;
}

/* SSH_CONNECTION is "CLIENT PORT SERVER PORT". */
static void ssh_addresses(char **addr, char **peer_addr)
{
    const char *text = getenv("SSH_CONNECTION");
    char client[64] = "";
    char server[64] = "";

    if (!text || sscanf(text, "%63s %*s %63s", client, server) != 2)
        client[0] = server[0] = '\0';
    *addr = dt_xstrdup(server);
    *peer_addr = dt_xstrdup(client);
}

/* Binds a socket to the port (0: any) of every address. Returns 0, or an errno. */
static int try_port(int family, uint16_t *port)
{
    struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(*port) };
    struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(*port) };
    struct sockaddr *addr = family == AF_INET6 ? (struct sockaddr *)&any : (struct sockaddr *)&any4;
    socklen_t n = family == AF_INET6 ? sizeof any : sizeof any4;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error = fd < 0 || bind(fd, addr, n) < 0 || getsockname(fd, addr, &n) < 0 ? errno : 0;

    if (fd >= 0)
        close(fd);
    *port = ntohs(family == AF_INET6 ? any.sin6_port : any4.sin_port);
    return error;
}

static bool is_free(uint16_t *port)
{
    int error = try_port(AF_INET6, port);

    if (error && error != EADDRINUSE) /* another error: the host has no IPv6 */
        error = try_port(AF_INET, port);
    return error == 0;
}

static bool are_free(uint16_t first)
{
    for (uint16_t i = 0; i < DT_FREE_PORTS; i++) {
        uint16_t port = (uint16_t)(first + i);

        if (!is_free(&port))
            return false;
    }
    return true;
}

/* Chooses ports below the range of ephemeral ports, so that they stay free until ranks listen on
 * them. Above PORT_MAX there are enough numbers for 30000 local ranks to have a port each. */
static uint16_t free_ports(void)
{
    uint16_t port = 0;

    for (int tries = 0; tries < PORT_TRIES; tries++) {
        if (getrandom(&port, sizeof port, GRND_NONBLOCK) != sizeof port)
            break;
        port = (uint16_t)(PORT_MIN + port % (PORT_MAX - PORT_MIN));
        if (are_free(port))
            return port;
    }
    port = 0;
    return is_free(&port) ? port : 0;
}

static uint64_t memory(void)
{
    struct sysinfo info;

    return sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : 0;
}

/* Agents that were started by SSH are in no step. Slurm signals a batch script, but not always what
 * the script has started; Grid Engine signals all processes of its jobs. */
static bool is_in_step(void)
{
    return getenv("SLURM_STEP_ID") || getenv("SGE_TASK_ID");
}

void dt_hostinfo_fill(struct dt_msg_hello *hello, pid_t keeper)
{
    char name[256] = "";

    gethostname(name, sizeof name - 1);
    hello->protocol = DT_PROTOCOL;
    hello->version = dt_xstrdup(PACKAGE_VERSION);
    hello->identity = identity(name);
    hello->hostname = dt_xstrdup(name);
    ssh_addresses(&hello->addr, &hello->peer_addr);
    hello->free_port = free_ports();
    hello->cores = dt_affinity_count();
    hello->memory = memory();
    hello->time_ns = dt_now_ns();
    hello->pid = (uint32_t)keeper;
    hello->in_step = is_in_step();
}
