#include "launcher/hosts/hostlist.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "launcher/base/mem.h"

static uint64_t hash(const char *name)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */

    for (; *name; name++)
        h = (h ^ (uint8_t)tolower((unsigned char)*name)) * 1099511628211u;
    return h;
}

static void index_put(struct dt_hostlist *list, size_t position)
{
    size_t mask = list->index_size - 1;
    size_t at = hash(list->v[position].name) & mask;

    while (list->index[at])
        at = (at + 1) & mask;
    list->index[at] = position + 1;
}

/* Makes the table of names anew. It has two places for each host that list->v has room for. */
static void index_build(struct dt_hostlist *list, size_t size)
{
    free(list->index);
    list->index = dt_xcalloc(size, sizeof *list->index);
    list->index_size = size;
    for (size_t i = 0; i < list->n; i++)
        index_put(list, i);
}

struct dt_host *dt_hostlist_find(const struct dt_hostlist *list, const char *name)
{
    size_t mask = list->index_size - 1;

    if (!list->n)
        return NULL;
    for (size_t at = hash(name) & mask; list->index[at]; at = (at + 1) & mask) {
        struct dt_host *host = &list->v[list->index[at] - 1];

        if (strcasecmp(host->name, name) == 0)
            return host;
    }
    return NULL;
}

struct dt_host *dt_hostlist_add(struct dt_hostlist *list, const char *name)
{
    struct dt_host *host;

    if (2 * (list->n + 1) > list->index_size) {
        index_build(list, list->index_size ? 2 * list->index_size : 16);
        list->v = dt_xrealloc(list->v, list->index_size / 2, sizeof *list->v);
    }
    host = &list->v[list->n++];
    *host = (struct dt_host){ .name = dt_xstrdup(name), .slots = 1 };
    index_put(list, list->n - 1);
    return host;
}

void dt_host_free(struct dt_host *host)
{
    free(host->name);
    free(host->user);
    free(host->addr);
    free(host->identity);
    free(host->step_gpus);
    dt_strs_free(&host->gpus);
    *host = (struct dt_host){ 0 };
}

void dt_hostlist_drop_removed(struct dt_hostlist *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->n; i++) {
        if (list->v[i].removed)
            dt_host_free(&list->v[i]);
        else
            list->v[kept++] = list->v[i];
    }
    list->n = kept;
    if (list->index_size)
        index_build(list, list->index_size);
}

int dt_hostlist_drop_empty(struct dt_hostlist *list, struct dt_error *err)
{
    for (size_t i = 0; i < list->n; i++)
        list->v[i].removed = list->v[i].slots == 0;
    dt_hostlist_drop_removed(list);
    return list->n ? 0
                   : dt_error_usage(err, "no host has slots: a host with 0 slots takes no ranks");
}

void dt_hostlist_free(struct dt_hostlist *list)
{
    for (size_t i = 0; i < list->n; i++)
        dt_host_free(&list->v[i]);
    free(list->v);
    free(list->index);
    *list = (struct dt_hostlist){ 0 };
}

static int merge_text(char **into, const char *from, const char *host, const char *what,
                      struct dt_error *err)
{
    if (*into && from && strcmp(*into, from) != 0)
        return dt_error_usage(err, "%s is given twice, with %s %s and %s", host, what, *into, from);
    if (!*into && from)
        *into = dt_xstrdup(from);
    return 0;
}

/* 0 means no limit. A sum above DT_SLOTS_MAX becomes DT_SLOTS_MAX, which limits nothing. */
static int sum_of_limits(int a, int b)
{
    if (!a || !b)
        return 0;
    return a < DT_SLOTS_MAX - b ? a + b : DT_SLOTS_MAX;
}

static int merge(struct dt_host *host, const struct dt_host *more, struct dt_error *err)
{
    if (merge_text(&host->user, more->user, host->name, "user", err) < 0 ||
        merge_text(&host->identity, more->identity, host->name, "identity", err) < 0 ||
        merge_text(&host->addr, more->addr, host->name, "addr", err) < 0)
        return -1;
    if (host->port && more->port && host->port != more->port)
        return dt_error_usage(err, "%s is given twice, with port %d and %d", host->name, host->port,
                              more->port);
    if (host->slots > DT_SLOTS_MAX - more->slots)
        return dt_error_usage(err, "%s: more than %d slots", host->name, DT_SLOTS_MAX);
    if (!host->port)
        host->port = more->port;
    host->max_slots = sum_of_limits(host->max_slots, more->max_slots);
    host->slots += more->slots;
    host->slots_given |= more->slots_given;
    host->slots_granted |= more->slots_granted;
    host->gpus_given |= more->gpus_given;
    for (uint32_t i = 0; i < more->gpus.n; i++)
        dt_xstrs_add(&host->gpus, more->gpus.v[i]);
    return 0;
}

int dt_hostlist_put(struct dt_hostlist *list, const char *name, const struct dt_host *host,
                    struct dt_error *err)
{
    struct dt_host *known = dt_hostlist_find(list, name);

    if (++list->named > DT_NAMED_MAX)
        return dt_error_usage(err, "hosts are named more than %d times", DT_NAMED_MAX);
    if (known)
        return merge(known, host, err);
    if (list->n >= DT_HOSTS_MAX)
        return dt_error_usage(err, "more than %d hosts", DT_HOSTS_MAX);
    known = dt_hostlist_add(list, name);
    known->slots = 0;
    merge(known, host, NULL);
    known->max_slots = host->max_slots;
    return 0;
}

static bool host_is_local(const struct dt_host *host, dt_is_local_f is_local, void *arg)
{
    return !host->user && !host->port && is_local(host->name, arg);
}

int dt_hostlist_merge_local(struct dt_hostlist *list, dt_is_local_f is_local, void *arg,
                            struct dt_error *err)
{
    struct dt_host *first = NULL;

    for (size_t i = 0; i < list->n; i++) {
        struct dt_host *host = &list->v[i];

        host->local = host_is_local(host, is_local, arg);
        if (!host->local)
            continue;
        if (first && merge(first, host, err) < 0)
            return dt_error_prefix(err, "%s and %s are both this machine: ", first->name,
                                   host->name);
        host->removed = first != NULL;
        if (!first)
            first = host;
    }
    dt_hostlist_drop_removed(list);
    return 0;
}

/* Finds the hostfile's entry for a name in -H: the entry of that name, else the local host under
 * another name. */
static struct dt_host *filter_find(const struct dt_hostlist *list, const struct dt_host *wanted,
                                   dt_is_local_f is_local, void *arg)
{
    struct dt_host *host = dt_hostlist_find(list, wanted->name);

    if (host || !host_is_local(wanted, is_local, arg))
        return host;
    for (size_t i = 0; i < list->n; i++)
        if (host_is_local(&list->v[i], is_local, arg))
            return &list->v[i];
    return NULL;
}

static int filter_apply(struct dt_host *host, const struct dt_host *wanted, struct dt_error *err)
{
    if (wanted->slots_given && host->max_slots && wanted->slots > host->max_slots)
        return dt_error_usage(err,
                              "-H asks for %d slots on %s, whose max_slots in the hostfile is %d",
                              wanted->slots, host->name, host->max_slots);
    if (wanted->slots_given) {
        host->slots = wanted->slots;
        host->slots_given = true;
        host->slots_granted = false;
    }
    if (wanted->user) {
        free(host->user);
        host->user = dt_xstrdup(wanted->user);
    }
    return 0;
}

int dt_hostlist_filter(struct dt_hostlist *list, const char *source, const struct dt_hostlist *only,
                       dt_is_local_f is_local, void *arg, struct dt_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < list->n; i++)
        list->v[i].removed = true;
    for (size_t i = 0; i < only->n && rc == 0; i++) {
        struct dt_host *host = filter_find(list, &only->v[i], is_local, arg);

        if (!host) {
            rc = dt_error_usage(err,
                                "%s: -H names it, but %s does not; -H selects hosts from there, "
                                "and --hostfile replaces all of them",
                                only->v[i].name, source);
            break;
        }
        host->removed = false;
        rc = filter_apply(host, &only->v[i], err);
    }
    if (rc == 0)
        dt_hostlist_drop_removed(list);
    return rc;
}
