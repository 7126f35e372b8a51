#include "launcher/place/iface.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum scope { GLOBAL, LINK, LOOPBACK };

struct network { /* IPv4 is stored as ::ffff:a.b.c.d */
    struct in6_addr addr;
    unsigned bits;
};

/* text is an address of n bytes, perhaps with %zone. */
static bool parse_address(struct network *net, const char *text, size_t n)
{
    static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
    char copy[INET6_ADDRSTRLEN];
    const char *zone = memchr(text, '%', n);

    if (zone)
        n = (size_t)(zone - text);
    if (n >= sizeof copy)
        return false;
    memcpy(copy, text, n);
    copy[n] = '\0';
    net->bits = 128;
    if (inet_pton(AF_INET, copy, &net->addr.s6_addr[12]) == 1) {
        memcpy(net->addr.s6_addr, mapped, sizeof mapped);
        return true;
    }
    return inet_pton(AF_INET6, copy, &net->addr) == 1;
}

/* Accepts "10.0.0.0/8", "fd00::/8", or an address. */
static bool parse_network(struct network *net, const char *text, size_t n)
{
    const char *slash = memchr(text, '/', n);
    size_t length = slash ? (size_t)(slash - text) : n;
    unsigned long bits, most;
    char *end;

    if (!parse_address(net, text, length))
        return false;
    if (!slash)
        return true;
    most = memchr(text, ':', length) ? 128 : 32;
    bits = strtoul(slash + 1, &end, 10);
    if (end == slash + 1 || end != text + n || slash[1] == '-' || slash[1] == '+' || bits > most)
        return false;
    net->bits = (unsigned)(bits + 128 - most);
    return true;
}

static bool contains(const struct network *net, const struct network *one)
{
    unsigned bytes = net->bits / 8, rest = net->bits % 8;
    unsigned mask = 0xff00u >> rest & 0xff;

    return memcmp(net->addr.s6_addr, one->addr.s6_addr, bytes) == 0 &&
           (rest == 0 || ((net->addr.s6_addr[bytes] ^ one->addr.s6_addr[bytes]) & mask) == 0);
}

static bool is_same(const char *a, const char *b)
{
    struct network x, y;

    return parse_address(&x, a, strlen(a)) && parse_address(&y, b, strlen(b)) && contains(&x, &y);
}

static enum scope scope_of(const char *addr)
{
    static const struct {
        const char *net;
        enum scope scope;
    } special[] = {
        { "127.0.0.0/8", LOOPBACK },
        { "::1", LOOPBACK },
        { "169.254.0.0/16", LINK },
        { "fe80::/10", LINK },
    };
    struct network net, one;

    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (parse_network(&net, special[i].net, strlen(special[i].net)) &&
            parse_address(&one, addr, strlen(addr)) && contains(&net, &one))
            return special[i].scope;
    return GLOBAL;
}

bool dt_iface_is_loopback(const char *addr)
{
    return scope_of(addr) == LOOPBACK;
}

struct list { /* the parsed list of --iface */
    bool excluding;
    bool whole; /* names are whole names, not beginnings */
    const char *items;
};

static struct list list_of(const char *text)
{
    struct list l = { .excluding = *text == '^' };

    text += l.excluding;
    l.whole = *text == '=';
    l.items = text + l.whole;
    return l;
}

static bool item_fits(const struct list *l, const char *item, size_t n,
                      const struct dt_msg_netaddr *a)
{
    struct network net, one;

    if (parse_network(&net, item, n))
        return parse_address(&one, a->addr, strlen(a->addr)) && contains(&net, &one);
    return strncmp(a->iface, item, n) == 0 && (!l->whole || !a->iface[n]);
}

/* Returns the number of the item that address a fits, or -1. */
static int place_in(const struct list *l, const struct dt_msg_netaddr *a)
{
    const char *item = l->items;

    for (int i = 0;; i++) {
        size_t n = strcspn(item, ",");

        if (item_fits(l, item, n, a))
            return i;
        if (!item[n])
            return -1;
        item += n + 1;
    }
}

static bool has_blank(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isspace((unsigned char)text[i]))
            return true;
    return false;
}

int dt_iface_check(const char *list, struct dt_error *err)
{
    struct list l = list_of(list);
    const char *item = l.items;

    for (;;) {
        size_t n = strcspn(item, ",");
        struct network net;

        if (n == 0)
            return dt_error_usage(err, "a name is missing");
        if (*item == '^' || *item == '=')
            return dt_error_usage(err, "%c may stand only once, before the whole list", *item);
        if (has_blank(item, n))
            return dt_error_usage(err, "there must be no blank in it");
        if ((memchr(item, '/', n) || memchr(item, ':', n)) && !parse_network(&net, item, n))
            return dt_error_usage(err,
                                  "%.*s is not a network; write it as in 10.0.0.0/8 or "
                                  "fd00::/64",
                                  (int)n, item);
        if (!item[n])
            return 0;
        item += n + 1;
    }
}

static bool names_all(const struct dt_iface_want *want)
{
    return !want->list || *want->list == '^';
}

/* Returns the position in the user's list (smaller is better), or -1 if the list excludes the
 * address. */
static int place_of(const struct dt_iface_want *want, const struct dt_msg_netaddr *a)
{
    struct list l;
    int place;

    if (!want->list)
        return 0;
    l = list_of(want->list);
    place = place_in(&l, a);
    if (l.excluding)
        return place < 0 ? 0 : -1;
    return place;
}

/* Rates an address: smaller is better, -1 means not usable. best is the widest scope that any
 * address has. */
static int rating_of(const struct dt_iface_want *want, const struct dt_msg_netaddr *a,
                     enum scope best)
{
    int place = place_of(want, a);
    enum scope scope = scope_of(a->addr);
    bool preferred = want->preferred && is_same(want->preferred, a->addr);

    if (place < 0 || (scope != best && (scope == LINK || names_all(want))))
        return -1;
    return 4 * place + (preferred ? 0 : 1 + (int)scope);
}

static void add_candidate(struct dt_candidates *out, const struct dt_msg_netaddr *a)
{
    if (out->n < DT_CANDIDATES_MAX)
        out->v[out->n++] = (struct dt_candidate){ a->addr, a->iface, a->mtu };
}

/* The address in the hostfile may belong to a router in front of the host, so it need not be in
 * addrs. */
static void take_given(struct dt_candidates *out, const struct dt_msg_list *addrs, const char *addr)
{
    const struct dt_msg_netaddr *v = addrs->v;

    for (uint32_t i = 0; i < addrs->n && out->n == 0; i++)
        if (is_same(v[i].addr, addr))
            add_candidate(out, &v[i]);
    if (out->n == 0)
        out->v[out->n++] = (struct dt_candidate){ addr, "", 0 };
}

void dt_iface_choose(struct dt_candidates *out, const struct dt_msg_list *addrs,
                     const struct dt_iface_want *want)
{
    const struct dt_msg_netaddr *v = addrs->v;
    enum scope best = LOOPBACK;
    int worst = 0;

    *out = (struct dt_candidates){ 0 };
    if (want->addr) {
        take_given(out, addrs, want->addr);
        return;
    }
    for (uint32_t i = 0; i < addrs->n; i++)
        if (place_of(want, &v[i]) >= 0 && scope_of(v[i].addr) < best)
            best = scope_of(v[i].addr);
    for (uint32_t i = 0; i < addrs->n; i++)
        if (rating_of(want, &v[i], best) > worst)
            worst = rating_of(want, &v[i], best);
    for (int rating = 0; rating <= worst; rating++)
        for (uint32_t i = 0; i < addrs->n; i++)
            if (rating_of(want, &v[i], best) == rating)
                add_candidate(out, &v[i]);
}

void dt_iface_describe(struct dt_strbuf *out, const struct dt_msg_list *addrs)
{
    const struct dt_msg_netaddr *v = addrs->v;

    for (uint32_t i = 0; i < addrs->n; i++) {
        bool seen = false;

        for (uint32_t k = 0; k < i; k++)
            seen |= strcmp(v[k].iface, v[i].iface) == 0;
        if (seen)
            continue;
        dt_strbuf_printf(out, "%s%s (%s", i ? ", " : "", v[i].iface, v[i].addr);
        for (uint32_t k = i + 1; k < addrs->n; k++)
            if (strcmp(v[k].iface, v[i].iface) == 0)
                dt_strbuf_printf(out, ", %s", v[k].addr);
        dt_strbuf_puts(out, ")");
    }
    if (addrs->n == 0)
        dt_strbuf_puts(out, "none");
}
