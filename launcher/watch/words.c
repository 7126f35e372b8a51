#include "launcher/watch/words.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "launcher/place/role.h"
#include "launcher/watch/signal_meaning.h"
#include "runtime/wire/hostshm.h"

enum { RANGES_MAX = 8 }; /* of a longer list, these ranges and the last one are written */

void dt_words_duration(struct dt_strbuf *out, double seconds)
{
    uint64_t s = seconds > 0 ? (uint64_t)(seconds + 0.5) : 0;

    if (seconds < 0.0995)
        dt_strbuf_printf(out, "%.0f ms", seconds > 0 ? seconds * 1000 : 0);
    else if (seconds < 1)
        dt_strbuf_printf(out, "%.2f s", seconds);
    else if (seconds < 10)
        dt_strbuf_printf(out, "%.1f s", seconds);
    else if (s < 60)
        dt_strbuf_printf(out, "%" PRIu64 " s", s);
    else if (s < 3600)
        dt_strbuf_printf(out, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
    else
        dt_strbuf_printf(out, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s % 3600 / 60);
}

void dt_words_count(struct dt_strbuf *out, uint64_t n, const char *what)
{
    dt_strbuf_printf(out, "%" PRIu64 " %s%s", n, what, n == 1 ? "" : "s");
}

/* Writes a number with at least two digits, in the largest unit that gives at least 1. */
static void add_scaled(struct dt_strbuf *out, double value, double step, const char *const *units)
{
    size_t i = 0;

    while (value >= step - 0.5 && units[i + 1]) {
        value /= step;
        i++;
    }
    dt_strbuf_printf(out, i && value < 9.95 ? "%.1f %s" : "%.0f %s", value, units[i]);
}

void dt_words_bytes(struct dt_strbuf *out, double bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", NULL };

    add_scaled(out, bytes, 1024, units);
}

void dt_words_bits(struct dt_strbuf *out, double bits_per_second)
{
    static const char *const units[] = { "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", NULL };

    add_scaled(out, bits_per_second, 1000, units);
}

void dt_words_list(struct dt_strbuf *out, const struct dt_u32s *list)
{
    uint32_t first = 0, range = 0;

    for (uint32_t i = 0; i < list->n; i++) {
        bool last = i + 1 == list->n;

        if (!last && list->v[i + 1] == list->v[i] + 1)
            continue;
        if (range < RANGES_MAX || last)
            dt_strbuf_printf(out, "%s%u", range ? "," : "", list->v[first]);
        else if (range == RANGES_MAX)
            dt_strbuf_puts(out, ",...");
        if (i > first && (range < RANGES_MAX || last))
            dt_strbuf_printf(out, "-%u", list->v[i]);
        first = i + 1;
        range++;
    }
}

void dt_words_ranks(struct dt_strbuf *out, const struct dt_u32s *ranks)
{
    dt_strbuf_puts(out, ranks->n == 1 ? "rank " : "ranks ");
    dt_words_list(out, ranks);
}

void dt_words_comm(struct dt_strbuf *out, uint64_t comm)
{
    if (comm == 0)
        dt_strbuf_puts(out, "DT_WORLD");
    else if (dt_hostshm_is_of_saves(comm))
        dt_strbuf_puts(out, "the communicator of checkpoints");
    else
        dt_strbuf_printf(out, "communicator %" PRIu64 ".%" PRIu64, (comm >> 32) - 1,
                         comm & UINT32_MAX);
}

static void add_signal(struct dt_strbuf *out, const struct dt_death *d)
{
    const char *fault = dt_signal_fault(d->signo);

    if (d->flags & DT_EXITED_OOM) {
        dt_strbuf_puts(out, "was killed by the kernel: out of memory");
        return;
    }
    dt_strbuf_printf(out, "was killed by signal %d (%s%s%s)", d->signo, dt_signal_name(d->signo),
                     fault ? ": " : "", fault ? fault : "");
    if (d->flags & DT_EXITED_CORE)
        dt_strbuf_puts(out, ", core dumped");
}

static const char *call_it_lacks(const struct dt_death *d)
{
    if (d->missed)
        return d->missed;
    return d->flags & DT_EXITED_LINKED ? "dt_finalize" : "dt_init";
}

static void add_exit(struct dt_strbuf *out, const struct dt_death *d)
{
    if (d->code == 0 && !(d->flags & DT_EXITED_PEER_LOST)) {
        dt_strbuf_printf(out, "exited without %s (the other ranks wait for it)", call_it_lacks(d));
        return;
    }
    dt_strbuf_printf(out, "exited with code %d", d->code);
    if (d->flags & DT_EXITED_OOM)
        dt_strbuf_puts(out, " after the kernel had killed a process there: out of memory");
    if (d->flags & DT_EXITED_PEER_LOST)
        dt_strbuf_puts(out, " because another rank was lost");
}

void dt_words_death(struct dt_strbuf *out, const struct dt_death *d, uint32_t np, const char *host,
                    uint32_t pid)
{
    char name[DT_ROLE_NAME_MAX];

    dt_strbuf_printf(out, "%s (%s, pid %u) ", dt_role_name(name, d->rank, np), host, pid);
    if (d->signo)
        add_signal(out, d);
    else
        add_exit(out, d);
    if (d->flags & DT_EXITED_INJECTED)
        dt_strbuf_puts(out, " (--inject)");
    if (d->step >= 0)
        dt_strbuf_printf(out, " at step %" PRId64, d->step);
}

/* A host that shares no file system with this machine lacks the user's files. */
static void add_absent(struct dt_strbuf *out, const struct dt_msg_spawn_failed *why)
{
    if (why->step == DT_SPAWN_WDIR)
        dt_strbuf_puts(out, "; --wdir names another");
    else if (why->step == DT_SPAWN_EXEC && strchr(why->what, '/'))
        dt_strbuf_puts(out, "; --push sends programs to the hosts");
}

void dt_words_spawn(struct dt_strbuf *out, const struct dt_msg_spawn_failed *why, bool elsewhere)
{
    switch (why->step) {
    case DT_SPAWN_WDIR:
        dt_strbuf_puts(out, "working directory ");
        break;
    case DT_SPAWN_CHECKPOINT:
        dt_strbuf_puts(out, "checkpoint directory ");
        break;
    default:
        break;
    }
    dt_strbuf_puts(out, why->what);
    if (why->step == DT_SPAWN_CHECKPOINT && why->error == EEXIST)
        dt_strbuf_puts(out, " holds checkpoints of an earlier job: --resume continues from the "
                            "newest, --fresh starts afresh");
    else if (why->step == DT_SPAWN_CHECKPOINT && why->error == ENODATA)
        dt_strbuf_puts(out, " holds no checkpoint, but the job has saved some; is its file system "
                            "mounted there?");
    else if (why->error != 0 && why->error != ENOEXEC) /* the agent's text explains ENOEXEC */
        dt_strbuf_printf(out, ": %s", strerror(why->error));
    if (why->step == DT_SPAWN_LEFTOVER)
        dt_strbuf_puts(out, "; the job cannot restart there");
    if (elsewhere && why->error == ENOENT)
        add_absent(out, why);
    if (why->step == DT_SPAWN_SYSTEM && (why->error == EAGAIN || why->error == EMFILE))
        dt_strbuf_printf(out, "; a limit of the host (%s) is too low for its ranks",
                         why->error == EMFILE ? "ulimit -n" : "ulimit -u, -d or -v, pids.max");
}

static void add_lost(struct dt_strbuf *out, const struct dt_msg_reached *r,
                     const struct dt_candidate *at)
{
    if (r->error != ETIMEDOUT) {
        dt_strbuf_printf(out, "the connection broke: %s", strerror(r->error));
        return;
    }
    dt_strbuf_printf(out,
                     "small packets pass, but %d KiB %s do not arrive; is the network between them "
                     "slow, does it lose many packets, or is the MTU too large for it",
                     DT_REACH_BYTES / 1024,
                     r->state == DT_REACH_LOST_THERE ? "sent there" : "from there");
    if (at->mtu)
        dt_strbuf_printf(out, " (%s there has %u)", at->iface, at->mtu);
    dt_strbuf_puts(out, "?");
}

void dt_words_reached(struct dt_strbuf *out, const struct dt_msg_reached *r,
                      const struct dt_candidate *at, uint16_t port)
{
    bool v6 = strchr(at->addr, ':') != NULL;

    dt_strbuf_printf(out, "at %s%s%s:%u%s%s%s: ", v6 ? "[" : "", at->addr, v6 ? "]" : "", port,
                     *at->iface ? " (" : "", at->iface, *at->iface ? ")" : "");
    if (r->state == DT_REACH_CONNECT && r->error == ETIMEDOUT)
        dt_strbuf_puts(out, "no answer within 5 s; is there a firewall?");
    else if (r->state == DT_REACH_CONNECT && r->error == ECONNREFUSED &&
             dt_iface_is_loopback(at->addr))
        dt_strbuf_puts(out, "connection refused; a loopback address leads to no other host");
    else if (r->state == DT_REACH_CONNECT && r->error == ECONNREFUSED)
        dt_strbuf_puts(out, "connection refused; is there a firewall, or does another machine have "
                            "that address?");
    else if (r->state == DT_REACH_CONNECT && r->error == EADDRNOTAVAIL)
        dt_strbuf_puts(out, "no local port is free (see net.ipv4.ip_local_port_range), or no local "
                            "address fits");
    else if (r->state == DT_REACH_CONNECT)
        dt_strbuf_puts(out, strerror(r->error));
    else if (r->state == DT_REACH_SILENT)
        dt_strbuf_printf(out, "the connection is made, but dtrun-agent does not answer there: %s",
                         strerror(r->error));
    else if (r->state == DT_REACH_STRANGER)
        dt_strbuf_puts(out, "something else answers there");
    else
        add_lost(out, r, at);
}
