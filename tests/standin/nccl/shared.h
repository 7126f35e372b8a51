/* The memory that the members of one communicator share: a file without a name (memfd), which the
 * members on the founder's host open as /proc/PID/fd/N. The kernel takes it back with the last of
 * them, however they end. A member on another host has a copy, which a connection to the founder's
 * process keeps up to date (link.h).
 *
 * Each field has one writer, but for `lost`, which only ever becomes true. The others look at it
 * again whenever somebody says that something has changed (a futex), and at least every 10 ms,
 * since a process that is killed says nothing. */
#ifndef TESTS_STANDIN_NCCL_SHARED_H
#define TESTS_STANDIN_NCCL_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/gpu/nvidia/abi_nccl.h"

enum {
    STANDIN_SLOT = 512 << 10, /* bytes that a member shows to the others at a time */
    STANDIN_PIPE = 64 << 10,  /* bytes on their way from one member to another */
    STANDIN_OTHERS = 8,       /* communicators beside which launch orders are compared */
};

enum standin_stage { STANDIN_ABSENT, STANDIN_PRESENT, STANDIN_FAILED, STANDIN_LEFT };

/* What a unique id says. */
struct standin_place {
    unsigned long long id, host;
    int process, file;
    int listener;     /* -1: members on other hosts cannot join */
    uint32_t address; /* of IPv4, and port: in network byte order */
    uint16_t port;
};

/* How many collective kernels of another communicator were launched before this one. */
struct standin_before {
    unsigned long long id;
    uint64_t launched;
};

/* Collectives are announced, so that the others can see whether they mean the same one. */
struct standin_call {
    int function, type, op, root;
    uint64_t count;
    int before_count;
    struct standin_before before[STANDIN_OTHERS];
};

/* Members meet for two reasons, from different threads. */
enum standin_reason { STANDIN_KERNEL, STANDIN_MANAGEMENT, STANDIN_REASONS };

/* What a member says before it counts one of its numbers up. */
struct standin_said {
    int process, size, version;
    unsigned long long host;    /* as NCCL knows it */
    unsigned long long machine; /* where `process` is a number of the kernel's */
    char bus[16];
    struct standin_call call;
    size_t filled;  /* bytes of its slot */
    int color, key; /* of a split; place: of the communicator that its first member founds */
    struct standin_place place;
};

struct standin_member {
    _Atomic int stage;
    _Atomic bool lost; /* its process has ended; meant for members on other hosts */
    _Atomic uint64_t met[STANDIN_REASONS];
    _Atomic uint64_t fills; /* how often its slot was filled */
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

/* Makes the file. Each member on the host sizes it for `size` members and maps it; NULL: it is not
 * there, or on another host. */
bool standin_found(struct standin_place *place);
struct standin_shared *standin_join(const struct standin_place *place, int size);
void standin_part(struct standin_shared *shared, int size);
/* Memory of the same kind for a copy. */
struct standin_shared *standin_copy(const struct standin_place *place, int size);
/* When all have joined or it has failed: whoever has founded it closes its file. */
void standin_forget_place(const struct standin_place *place);

char *standin_slot(struct standin_shared *shared, int size, int rank);
struct standin_pipe *standin_pipe(struct standin_shared *shared, int size, int from, int to);

uint32_t standin_changes(struct standin_shared *shared);
void standin_tell(struct standin_shared *shared);
/* Sleeps unless something has changed since standin_changes() returned `seen`. */
void standin_sleep(struct standin_shared *shared, uint32_t seen);

/* Is the member one of the calling process? Has its process ended, even if nobody has waited for it
 * yet? */
bool standin_is_own(const struct standin_member *member);
bool standin_has_ended(const struct standin_member *member);

#endif
