/* The thresholds by which host collectives choose algorithms: the defaults, or values that were
 * measured on a machine and stored in a file (tuningfile.h, which also knows the processor). Pure.
 *
 * All ranks must choose alike. So only rank 0 of the job reads the file, and dt_init sends its
 * entries to all ranks. An entry may apply to one number only: for shared memory, the number of the
 * communicator's ranks on the host; for the network, its number of hosts. */
#ifndef DT_BASE_TUNING_H
#define DT_BASE_TUNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sizes in bytes. tuning.c has the names, defaults and maxima. */
struct dt_tuning {
    /* within a host */
    uint64_t shm_small;  /* up to here each rank reduces everything, with one synchronisation;
                            oversubscribed ranks do so up to DT_TUNING_CROWDED times as much */
    uint64_t shm_direct; /* from here on a send copies directly between the two ranks' memory */
    uint64_t shm_direct_reduce; /* from here on ranks reduce in each other's memory */
    /* From here on results bypass the caches, except in-place results on one host. */
    uint64_t shm_huge;
    /* between hosts */
    uint64_t net_exchange; /* up to here all hosts send everything to all */
    uint64_t net_direct;   /* up to here 3 or more hosts do without the ring */
    uint64_t net_leader;   /* several ranks of each host take part if each gets this much */
    uint64_t net_streams;  /* connections between two ranks on different hosts; 0 and 1: one */
};

enum {
    DT_TUNING_ENTRIES = 256,
    DT_TUNING_STREAMS = 16, /* maximum of net_streams */
    DT_TUNING_CROWDED = 4,
};

struct dt_tuning_entry {
    uint32_t key;
    uint32_t number; /* the number of ranks on the host, or of hosts, to which it applies; 0: all
                        others */
    uint64_t value;
};

struct dt_tuning_table {
    uint64_t n;
    struct dt_tuning_entry entries[DT_TUNING_ENTRIES];
    uint64_t slow_sharing; /* not 0: a core is slow to get what another has just written */
};

extern const struct dt_tuning dt_tuning_builtin; /* the defaults */

/* The thresholds of a communicator that has this number of ranks on this host and this number of
 * hosts. An entry for exactly this number wins over one for all numbers, and later entries win over
 * earlier ones. Invalid entries are ignored. */
void dt_tuning_choose(struct dt_tuning *t, const struct dt_tuning_table *table, uint32_t ranks,
                      uint32_t hosts);

/* Applies a table on top of existing thresholds. */
void dt_tuning_add(struct dt_tuning *t, const struct dt_tuning_table *table, uint32_t ranks,
                   uint32_t hosts);

/* Adds the entries of a file's text to the table. Lines are "name = value" or "name[number] =
 * value". A value may end in K, M or G; "#" begins a comment. Calls refuse for each invalid line,
 * with its number and the reason, and ignores the line. */
void dt_tuning_read(struct dt_tuning_table *table, const char *text, size_t n,
                    void (*refuse)(void *arg, unsigned line, const char *why), void *arg);

#endif
