#include "launcher/hosts/hostword.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/number.h"
#include "launcher/hosts/hostlist.h"
#include "launcher/hosts/hostrange.h"

#define LETTERS_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

int dt_hostword_check_user(const char *text, struct dt_error *err)
{
    if (!*text)
        return dt_error_usage(err, "the user's name is empty");
    if (*text == '-' || text[strspn(text, LETTERS_DIGITS "._-+")])
        return dt_error_usage(err, "%s cannot be a user's name", text);
    return 0;
}

static int check_name(const char *name, struct dt_error *err)
{
    if (!*name)
        return dt_error_usage(err, "a host's name is missing");
    /* ".." would lead elsewhere in --output-dir %h */
    if (*name == '-' || *name == '.' || name[strspn(name, LETTERS_DIGITS "._-")])
        return dt_error_usage(err, "%s cannot be a host's name%s", name,
                              strchr(name, '/')   ? "; --hostfile names a file with hosts"
                              : strchr(name, ',') ? "; each host has a line of its own"
                                                  : "");
    return 0;
}

/* text is an IPv6 address, perhaps with %zone. */
static int check_ipv6(const char *text, struct dt_error *err)
{
    size_t n = strcspn(text, "%");
    char *address = dt_xstrndup(text, n);
    struct in6_addr parsed;
    bool ok = inet_pton(AF_INET6, address, &parsed) == 1;

    if (text[n])
        ok = ok && text[n + 1] && !text[n + 1 + strspn(text + n + 1, LETTERS_DIGITS "._-")];
    free(address);
    return ok ? 0 : dt_error_usage(err, "[%s] is not an IPv6 address", text);
}

/* word has several colons: it is an address without brackets, or HOST:PORT:SLOTS. */
static int refuse_colons(const char *word, struct dt_error *err)
{
    size_t colons = 0;

    for (const char *c = word; *c; c++)
        colons += *c == ':';
    if (colons == 2 && !strstr(word, "::"))
        return dt_error_usage(err, "only slots follow a colon; a port is port=N in a hostfile, or "
                                   "--ssh-port");
    return dt_error_usage(err, "an IPv6 address must stand in brackets, as in [fe80::1]:4");
}

/* Cuts ":slots" off word. A colon inside brackets belongs to the address. */
static int take_slots(struct dt_hostword *w, char *word, struct dt_error *err)
{
    char *close = strrchr(word, ']');
    char *colon = strchr(close ? close : word, ':');

    if (!colon)
        return 0;
    if (strchr(colon + 1, ':'))
        return refuse_colons(word, err);
    *colon++ = '\0';
    if (dt_number_parse(colon, 0, DT_SLOTS_MAX, &w->slots, err) < 0)
        return dt_error_prefix(err, "the slots after the colon: ");
    return 0;
}

static int take_names(struct dt_hostword *w, char *host, struct dt_error *err)
{
    size_t n = strlen(host);

    if (*host == '[' && host[n - 1] == ']' && strchr(host, ':')) {
        host[n - 1] = '\0';
        dt_xstrs_add(&w->names, host + 1);
        return check_ipv6(host + 1, err);
    }
    if (dt_hostrange_expand(&w->names, host, err) < 0)
        return -1;
    for (uint32_t i = 0; i < w->names.n; i++)
        if (check_name(w->names.v[i], err) < 0)
            return -1;
    return 0;
}

static int parse(struct dt_hostword *w, char *word, struct dt_error *err)
{
    char *at = strchr(word, '@');

    if (at) {
        *at = '\0';
        if (strchr(at + 1, '@'))
            return dt_error_usage(err, "there is a second @");
        if (dt_hostword_check_user(word, err) < 0)
            return -1;
        w->user = dt_xstrdup(word);
        word = at + 1;
    }
    return take_slots(w, word, err) < 0 ? -1 : take_names(w, word, err);
}

int dt_hostword_parse(struct dt_hostword *w, const char *word, struct dt_error *err)
{
    char *copy = dt_xstrdup(word);
    int rc;

    *w = (struct dt_hostword){ .slots = -1 };
    rc = parse(w, copy, err);
    free(copy);
    if (rc == 0)
        return 0;
    dt_hostword_free(w);
    return dt_error_prefix(err, "%.200s: ", word);
}

void dt_hostword_free(struct dt_hostword *w)
{
    free(w->user);
    dt_strs_free(&w->names);
    *w = (struct dt_hostword){ 0 };
}
