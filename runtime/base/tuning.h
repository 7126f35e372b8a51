/* The thresholds by which host collectives choose their way, in one structure: what is built in, or
 * what was measured on a machine and written to a file (tuningfile.h). Pure.
 *
 * All ranks must choose alike. Therefore rank 0 of the job alone reads the file; dt_init gives its
 * entries to everybody, and every communicator makes its thresholds from these. An entry may hold
 * for one number of ranks or hosts only: those of shared memory for so many ranks of the
 * communicator on the host, which all of them know alike; those of the network for so many hosts.
 */
#ifndef DT_BASE_TUNING_H
#define DT_BASE_TUNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sizes in bytes. tuning.c has the names, which are the same, and what each may be. */
struct dt_tuning {
    /* within a host */
    uint64_t shm_small;  /* up to here each rank reduces everything, with one synchronisation; where
                          * ranks share CPUs, up to DT_TUNING_CROWDED times as much */
    uint64_t shm_direct; /* from here on a send goes from one rank's memory to the other's */
    uint64_t shm_direct_fold; /* from here on ranks reduce in each other's memory */
    uint64_t shm_huge; /* from here on results bypass the caches; in a host not those in place */
    /* between hosts */
    uint64_t net_exchange; /* up to here all hosts send everything to all */
    uint64_t net_direct;   /* up to here 3 hosts and more do without the ring */
    uint64_t net_lane;     /* from so much for each on, several ranks of every host talk */
    uint64_t net_streams;  /* connections between two hosts of one rank; 0 and 1: one */
};

enum {
    DT_TUNING_ENTRIES = 256,
    DT_TUNING_STREAMS = 16, /* net_streams at most */
    DT_TUNING_CROWDED = 4,
};

struct dt_tuning_entry {
    uint32_t key;
    uint32_t number; /* of ranks on the host, or of hosts, for which it holds; 0: for all others */
    uint64_t value;
};

struct dt_tuning_table {
    uint64_t n;
    struct dt_tuning_entry entries[DT_TUNING_ENTRIES];
};

extern const struct dt_tuning dt_tuning_builtin; /* what holds before anything else is known */

/* The thresholds of a communicator that has so many ranks on this host, and so many hosts. Of two
 * entries that fit, the one for this number is taken, then the later one. Entries that make no
 * sense are passed over. */
void dt_tuning_choose(struct dt_tuning *t, const struct dt_tuning_table *table, uint32_t ranks,
                      uint32_t hosts);

/* Changes the thresholds of one that has some already. */
void dt_tuning_add(struct dt_tuning *t, const struct dt_tuning_table *table, uint32_t ranks,
                   uint32_t hosts);

/* Adds what a file's text says, n bytes: lines "name = value" or "name[number] = value", where
 * value may end in K, M or G, "#" begins a comment, and blank lines mean nothing. Calls refuse for
 * every line that is wrong, with its number and why; such lines add nothing. */
void dt_tuning_read(struct dt_tuning_table *table, const char *text, size_t n,
                    void (*refuse)(void *arg, unsigned line, const char *why), void *arg);

#endif
