/* The ordered list of hosts of a job: what -H, a hostfile or the scheduler asked for. Pure. */
#ifndef DT_HOSTS_HOSTLIST_H
#define DT_HOSTS_HOSTLIST_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/error.h"
#include "runtime/wire/codec.h"

struct dt_host {
    char *name;         /* as the user wrote it, without user@ and slots */
    char *user;         /* or NULL */
    char *addr;         /* address for ranks' connections (addr=), or NULL */
    char *identity;     /* private key file (identity=), or NULL */
    int port;           /* ssh port, or 0 */
    int slots;          /* at least 1 */
    bool slots_given;
    int max_slots;      /* 0: no limit */
    struct dt_strs gpus;
    bool gpus_given;
    bool local;         /* this machine: no SSH needed */
};

struct dt_hostlist {
    struct dt_host *v;
    size_t n;
};

/* Returns the entry named name, or NULL. */
struct dt_host *dt_hostlist_find(const struct dt_hostlist *list, const char *name);
/* Returns a new entry at the end (slots 1). */
struct dt_host *dt_hostlist_add(struct dt_hostlist *list, const char *name);
void dt_hostlist_remove(struct dt_hostlist *list, size_t index);
void dt_hostlist_free(struct dt_hostlist *list);

#endif
