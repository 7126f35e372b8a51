/* The ordered list of hosts of a job: what -H, a hostfile or the scheduler asked for. Pure. */
#ifndef DT_HOSTS_HOSTLIST_H
#define DT_HOSTS_HOSTLIST_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/error.h"
#include "runtime/wire/codec.h"

struct dt_host {
    char *name;     /* as the user wrote it, without user@ and slots */
    char *user;     /* or NULL */
    char *addr;     /* address for ranks' connections (addr=), or NULL */
    char *identity; /* private key file (identity=), or NULL */
    int port;       /* ssh port, or 0 */
    int slots;      /* 0: the host takes no ranks */
    bool slots_given;
    int max_slots; /* 0: no limit */
    struct dt_strs gpus;
    bool gpus_given;
    bool local;   /* this machine: no SSH needed */
    bool removed; /* marked for dt_hostlist_sweep */
};

struct dt_hostlist {
    struct dt_host *v;
    size_t n;
    size_t *index; /* open hash table of positions + 1 in v, by name; hostlist.c's own */
    size_t index_size;
    size_t named; /* how many names dt_hostlist_put was given */
};

/* Only ranges can make a list of 16 MiB name more than this; expanding them could take hours. */
enum { DT_HOSTS_MAX = 65536, DT_SLOTS_MAX = 1000000, DT_NAMED_MAX = 8 * 1024 * 1024 };

/* Returns the entry named name, or NULL. Case does not count. */
struct dt_host *dt_hostlist_find(const struct dt_hostlist *list, const char *name);
/* Returns a new entry at the end (slots 1); the list must not have the name yet. */
struct dt_host *dt_hostlist_add(struct dt_hostlist *list, const char *name);
/* Removes every entry that a caller has marked as removed. */
void dt_hostlist_sweep(struct dt_hostlist *list);
/* Removes every host without slots; fails (exit code 2) if none is left. */
int dt_hostlist_drop_empty(struct dt_hostlist *list, struct dt_error *err);
void dt_hostlist_free(struct dt_hostlist *list);

/* Adds an entry like host (whose own name is ignored). If the list has an entry of that name, adds
 * host's slots, max_slots and gpus to it; user, port, identity and addr may then differ only if one
 * of the two has none. host keeps its own memory. */
int dt_hostlist_put(struct dt_hostlist *list, const char *name, const struct dt_host *host,
                    struct dt_error *err);
void dt_host_free(struct dt_host *host);

typedef bool (*dt_is_local_f)(const char *name, void *arg);

/* Marks the hosts that are this machine: is_local says so by name, and neither user nor port is
 * given (another user, or a port that may be a tunnel's, needs SSH). Local hosts then become one
 * entry. */
int dt_hostlist_merge_local(struct dt_hostlist *list, dt_is_local_f is_local, void *arg,
                            struct dt_error *err);

/* Keeps in list, which comes from source as in "the hostfile", only what -H named, with the slots
 * and user that -H gave. */
int dt_hostlist_filter(struct dt_hostlist *list, const char *source, const struct dt_hostlist *only,
                       dt_is_local_f is_local, void *arg, struct dt_error *err);

#endif
