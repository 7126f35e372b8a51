/* The ordered list of a job's hosts: what -H, a hostfile or the scheduler asked for. Pure. */
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
    bool slots_granted; /* they are the tasks of a batch job, which may have one for each host */
    int max_slots;      /* 0: no limit */
    struct dt_strs gpus;
    bool gpus_given;
    /* The GPUs of a step on this host, as srun takes them; NULL: a step gets them unasked. */
    char *step_gpus;
    bool has_fewest_gpus; /* no host of the Slurm job has fewer */
    bool local;           /* is this machine, and so needs no SSH */
    bool removed;         /* marked for dt_hostlist_drop_removed */
};

struct dt_hostlist {
    struct dt_host *v;
    size_t n;
    size_t *index; /* hostlist.c's own: an open hash table, by name, of positions in v, plus 1 */
    size_t index_size;
    size_t named; /* how many names dt_hostlist_put was given */
};

/* DT_NAMED_MAX limits how many names a list may contain, repeated ones included. Ranges could
 * otherwise make a short text stand for so many names that expanding it takes hours. */
enum { DT_HOSTS_MAX = 65536, DT_SLOTS_MAX = 1000000, DT_NAMED_MAX = 8 * 1024 * 1024 };

/* Returns the entry named name, ignoring case, or NULL. */
struct dt_host *dt_hostlist_find(const struct dt_hostlist *list, const char *name);
/* Returns a new entry at the end, with one slot. The list must not have the name yet. */
struct dt_host *dt_hostlist_add(struct dt_hostlist *list, const char *name);
/* Removes every entry that a caller has marked as removed. */
void dt_hostlist_drop_removed(struct dt_hostlist *list);
/* Removes every host without slots. Fails (exit code 2) if none is left. */
int dt_hostlist_drop_empty(struct dt_hostlist *list, struct dt_error *err);
void dt_hostlist_free(struct dt_hostlist *list);

/* Adds a copy of host under name; host's own name is ignored. If the list already has an entry of
 * that name, adds host's slots, max_slots and gpus to it. user, port, identity and addr may then
 * differ only if one of the two has none. */
int dt_hostlist_put(struct dt_hostlist *list, const char *name, const struct dt_host *host,
                    struct dt_error *err);
void dt_host_free(struct dt_host *host);

typedef bool (*dt_is_local_f)(const char *name, void *arg);

/* Marks the hosts that are this machine: is_local recognises the name, and neither user nor port is
 * given. (Another user needs SSH, and so does a port, which may be a tunnel's.) Then merges all
 * local hosts into one entry. */
int dt_hostlist_merge_local(struct dt_hostlist *list, dt_is_local_f is_local, void *arg,
                            struct dt_error *err);

/* Removes from list every host that -H (only) does not name, and takes slots and user from -H.
 * source says for messages where list comes from, as in "the hostfile". */
int dt_hostlist_filter(struct dt_hostlist *list, const char *source, const struct dt_hostlist *only,
                       dt_is_local_f is_local, void *arg, struct dt_error *err);

#endif
