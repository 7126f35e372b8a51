/* The memory that the members of one communicator share: a file without a name (memfd), which the
 * members on the founder's host open as /proc/PID/fd/N. The kernel frees it when the last of them
 * ends, however it ends. A member on another host has a copy, which a connection to the founder's
 * process keeps up to date (link.h).
 *
 * Each field has one writer, except `lost`, which only ever becomes true. The others look again
 * whenever a member signals a change (a futex), and at least every 10 ms, since a killed process
 * signals nothing. */
#ifndef TESTS_STANDIN_NCCL_SHARED_H
#define TESTS_STANDIN_NCCL_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/gpu/nvidia/abi_nccl.h"

enum {
    STANDIN_SLOT = 512 << 10, /* how much a member shows to the others at a time, in bytes */
    STANDIN_PIPE = 64 << 10,  /* the most on its way from one member to another, in bytes */
    STANDIN_OTHERS = 8,       /* other communicators with which launch orders are compared */
};

enum standin_stage { STANDIN_ABSENT, STANDIN_PRESENT, STANDIN_FAILED, STANDIN_LEFT };

/* The contents of a unique id. */
struct standin_place {
    unsigned long long id, host;
    int process, file;
    int listener;     /* -1: members on other hosts cannot join */
    uint32_t address; /* IPv4; address and port in network byte order */
    uint16_t port;
};

/* How many collective kernels of another communicator were launched before this one. */
struct standin_before {
    unsigned long long id;
    uint64_t launched;
};

/* Each member announces its collectives, so that the others can see whether they match. */
struct standin_call {
    int function, type, op, root;
    uint64_t count;
    int before_count;
    struct standin_before before[STANDIN_OTHERS];
};

/* Members meet for these reasons, in different threads. */
enum standin_reason { STANDIN_KERNEL, STANDIN_MANAGEMENT, STANDIN_CONNECTION, STANDIN_REASONS };

/* What a member writes before it raises one of its counters. */
struct standin_said {
    int process, size, version;
    unsigned long long host;    /* NCCL's hash of the host */
    unsigned long long machine; /* the machine whose kernel numbers `process` */
    char bus[16];
    struct standin_call call;
    size_t filled;  /* bytes in its slot */
    int color, key; /* for a split; place: the communicator that its first member founds */
    struct standin_place place;
};

struct standin_member {
    _Atomic int stage;
    _Atomic bool lost; /* its process has ended; for members on other hosts */
    _Atomic uint64_t met[STANDIN_REASONS];
    _Atomic uint64_t fills; /* how often its slot has been filled */
    struct standin_said said;
};

struct standin_pipe {
    _Atomic uint64_t written, read;
    char bytes[STANDIN_PIPE];
};

struct standin_shared {
    unsigned long long id;
    _Atomic uint32_t changes;
    struct standin_member members[];
};

/* standin_found creates the file. Each member on the host enlarges it for `size` members and maps
 * it. Returns NULL if it is gone or on another host. */
bool standin_found(struct standin_place *place);
struct standin_shared *standin_join(const struct standin_place *place, int size);
void standin_part(struct standin_shared *shared, int size);
/* Memory laid out alike, for a copy. */
struct standin_shared *standin_copy(const struct standin_place *place, int size);
/* For the time after all have joined or the attempt has failed: the founder closes its file. */
void standin_forget_place(const struct standin_place *place);

char *standin_slot(struct standin_shared *shared, int size, int rank);
struct standin_pipe *standin_pipe(struct standin_shared *shared, int size, int from, int to);

uint32_t standin_changes(struct standin_shared *shared);
void standin_tell(struct standin_shared *shared);
/* Sleeps, unless something has changed since standin_changes() returned `seen`. */
void standin_sleep(struct standin_shared *shared, uint32_t seen);

/* Whether the member belongs to the calling process, and whether its process has ended (even if
 * nothing has reaped it yet). */
bool standin_is_own(const struct standin_member *member);
bool standin_has_ended(const struct standin_member *member);
/* Whether another process has ended without leaving the communicator. */
bool standin_has_died(const struct standin_member *member);

#endif
