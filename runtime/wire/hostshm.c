#include "runtime/wire/hostshm.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/wire/page.h"
#include "runtime/wire/rankmsg.h"
#include "runtime/wire/sealed.h"

enum {
    MAGIC = 0x48525444,           /* "DTRH" */
    ROOM_TOTAL = 8 * 1024 * 1024, /* more than the caches of the cores that write and read it */
    ROOM_MIN = 64 * 1024,
    PIPES_TOTAL = 64 * 1024 * 1024, /* all pipes of a set, unless each has PIPE_MIN */
    PIPE_MIN = 4096,
    PIPE_MAX = 64 * 1024,
};

size_t dt_hostshm_room(uint32_t local_size)
{
    size_t room = DT_HOSTSHM_ROOM;

    while (room > ROOM_MIN && room * local_size > ROOM_TOTAL)
        room /= 2;
    while (room < DT_HOSTSHM_ROUNDS * (size_t)local_size * DT_HOSTSHM_LINE)
        room *= 2;
    return room;
}

static size_t pipe_bytes(uint32_t local_size)
{
    size_t pipe = PIPE_MAX;

    while (pipe > PIPE_MIN && pipe * local_size * local_size > PIPES_TOTAL)
        pipe /= 2;
    return pipe;
}

static size_t ranks_bytes(uint32_t local_size)
{
    return sizeof(struct dt_hostshm_head) + local_size * sizeof(struct dt_hostshm_rank);
}

static uint32_t reasons_of(uint32_t local_size)
{
    return local_size + 1;
}

static size_t members_at(uint32_t local_size)
{
    return ranks_bytes(local_size) + reasons_of(local_size) * sizeof(struct dt_hostshm_reason);
}

static size_t control_bytes(uint32_t local_size, uint32_t size)
{
    size_t n = members_at(local_size) + size * sizeof(uint32_t);

    return dt_page_round_up(n);
}

static size_t staging_bytes(uint32_t local_size)
{
    return local_size * dt_hostshm_room(local_size);
}

static size_t total_bytes(uint32_t local_size, uint32_t size)
{
    return control_bytes(local_size, size) + staging_bytes(local_size) +
           2 * pipe_bytes(local_size) * local_size * local_size;
}

/* fd -1: maps fresh memory. */
static int map(struct dt_hostshm *h, int fd, uint32_t local_size, uint32_t size)
{
    size_t bytes = total_bytes(local_size, size), control = control_bytes(local_size, size);
    int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
    uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

    if (p == MAP_FAILED)
        return -1;
    *h = (struct dt_hostshm){
        .head = (struct dt_hostshm_head *)p,
        .ranks = (struct dt_hostshm_rank *)(p + sizeof(struct dt_hostshm_head)),
        .reasons = (struct dt_hostshm_reason *)(p + ranks_bytes(local_size)),
        .members = (_Atomic uint32_t *)(p + members_at(local_size)),
        .local_size = local_size,
        .size = size,
        .staging = p + control,
        .room = dt_hostshm_room(local_size),
        .pipes = p + control + staging_bytes(local_size),
        .pipe = pipe_bytes(local_size),
        .bytes = bytes,
    };
    return 0;
}

static void fill(const struct dt_hostshm *h, uint32_t generation, uint32_t local_size)
{
    h->head->magic = MAGIC;
    h->head->protocol = DT_RANK_PROTOCOL;
    h->head->generation = generation;
    h->head->local_size = local_size;
    h->head->room = h->room;
    h->head->bytes = h->bytes;
    for (uint32_t i = 0; i < local_size; i++) {
        atomic_init(&h->ranks[i].watch_step, DT_HOSTSHM_NO_STEP);
        atomic_init(&h->ranks[i].step, -1);
        for (int place = 0; place < DT_HOSTSHM_PLACES; place++)
            atomic_init(&h->ranks[i].limits_ms[place], DT_HOSTSHM_NO_LIMIT);
    }
}

int dt_hostshm_create(struct dt_hostshm *h, uint32_t generation, uint32_t local_size, uint32_t size)
{
    int fd = dt_sealed_create("dtrun", total_bytes(local_size, size));

    *h = (struct dt_hostshm){ 0 };
    if (fd < 0)
        return -1;
    if (map(h, fd, local_size, size) == 0) {
        fill(h, generation, local_size);
        return fd;
    }
    close(fd);
    return -1;
}

int dt_hostshm_create_private(struct dt_hostshm *h)
{
    *h = (struct dt_hostshm){ 0 };
    if (map(h, -1, 1, 0) < 0)
        return -1;
    fill(h, 0, 1);
    return 0;
}

int dt_hostshm_map(struct dt_hostshm *h, int fd, uint32_t generation, uint32_t local_size,
                   uint32_t size)
{
    *h = (struct dt_hostshm){ 0 };
    errno = EPROTO;
    if (local_size == 0 || local_size > DT_RANKS_MAX || size > DT_RANKS_MAX ||
        !dt_sealed_check(fd, total_bytes(local_size, size)))
        return -1;
    if (map(h, fd, local_size, size) < 0)
        return -1;
    if (h->head->magic == MAGIC && h->head->protocol == DT_RANK_PROTOCOL &&
        h->head->generation == generation && h->head->local_size == local_size &&
        h->head->room == h->room && h->head->bytes == h->bytes)
        return 0;
    dt_hostshm_unmap(h);
    errno = EPROTO;
    return -1;
}

void dt_hostshm_unmap(struct dt_hostshm *h)
{
    if (h->head)
        munmap(h->head, h->bytes);
    *h = (struct dt_hostshm){ 0 };
}

static uint64_t stop_word(int code, uint32_t culprit)
{
    return (uint64_t)culprit << 32 | (uint32_t) - (int64_t)code;
}

void dt_hostshm_stop(const struct dt_hostshm *h, int code, uint32_t culprit)
{
    uint64_t none = 0;

    atomic_compare_exchange_strong(&h->head->stop, &none, stop_word(code, culprit));
    for (uint32_t i = 0; i < h->local_size; i++)
        dt_hostshm_ring(&h->ranks[i]);
}

static void write_reason(const struct dt_hostshm *h, uint64_t stop, const char *why)
{
    uint32_t i = atomic_fetch_add(&h->head->reasons, 1);

    if (i < reasons_of(h->local_size)) {
        snprintf(h->reasons[i].text, sizeof h->reasons[i].text, "%s", why);
        atomic_store_explicit(&h->reasons[i].stop, stop, memory_order_release);
    }
}

/* Each process completes its text before it tries to stop the host. So the text of the one that
 * succeeds is always there. */
void dt_hostshm_stop_because(const struct dt_hostshm *h, int code, uint32_t culprit,
                             const char *why)
{
    if (!dt_hostshm_stopped(h, NULL))
        write_reason(h, stop_word(code, culprit), why);
    dt_hostshm_stop(h, code, culprit);
}

/* The reason for which the host was stopped, or NULL. */
static const struct dt_hostshm_reason *reason(const struct dt_hostshm *h)
{
    uint64_t stop = atomic_load_explicit(&h->head->stop, memory_order_acquire);
    uint32_t n = stop ? atomic_load(&h->head->reasons) : 0;

    for (uint32_t i = 0; i < n && i < reasons_of(h->local_size); i++) {
        if (atomic_load_explicit(&h->reasons[i].stop, memory_order_acquire) == stop)
            return &h->reasons[i];
    }
    return NULL;
}

const char *dt_hostshm_why(const struct dt_hostshm *h)
{
    const struct dt_hostshm_reason *r = reason(h);

    return r ? r->text : "";
}

const char *dt_hostshm_copy_why(const struct dt_hostshm *h, char text[DT_HOSTSHM_WHY])
{
    const struct dt_hostshm_reason *r = reason(h);

    text[0] = '\0';
    if (r)
        memcpy(text, r->text, DT_HOSTSHM_WHY);
    text[DT_HOSTSHM_WHY - 1] = '\0';
    return text;
}

void dt_hostshm_note_ending(const struct dt_hostshm *h, uint32_t rank, uint32_t ending)
{
    uint64_t none = 0;

    if (ending & DT_HOSTSHM_ENDED)
        atomic_compare_exchange_strong(&h->head->ending, &none, (uint64_t)rank << 32 | ending);
}

uint32_t dt_hostshm_ending(const struct dt_hostshm *h, uint32_t rank)
{
    uint64_t ending = h->head ? atomic_load(&h->head->ending) : 0;

    return ending >> 32 == rank ? (uint32_t)ending : 0;
}

const char *dt_hostshm_ending_text(const struct dt_hostshm *h, uint32_t rank,
                                   char text[DT_HOSTSHM_ENDING])
{
    uint32_t ending = dt_hostshm_ending(h, rank);
    int status = (int)(ending & (DT_HOSTSHM_ENDED - 1));

    if (!ending)
        *text = '\0';
    else if (WIFSIGNALED(status))
        snprintf(text, DT_HOSTSHM_ENDING, " (killed by signal %d)", WTERMSIG(status));
    else
        snprintf(text, DT_HOSTSHM_ENDING, " (exit status %d)", WEXITSTATUS(status));
    return text;
}

const char *dt_hostshm_call_name(uint64_t call)
{
    return dt_call_name(call & (DT_HOSTSHM_INSIDE - 1));
}

/* The order matters: a reader that finds the same turn before and after has read values that belong
 * together, even if another call had the place in between. */
void dt_hostshm_enter_pair(struct dt_hostshm_rank *rank, int place, uint64_t pair,
                           uint32_t limit_ms, uint32_t waited_ms)
{
    uint32_t turn = atomic_load_explicit(&rank->turns[place], memory_order_relaxed) + 1;

    atomic_store_explicit(&rank->turns[place], turn, memory_order_release);
    atomic_store_explicit(&rank->limits_ms[1 + place], limit_ms, memory_order_release);
    atomic_store_explicit(&rank->waited_ms[place], waited_ms, memory_order_release);
    atomic_store_explicit(&rank->pairs[place], pair | DT_HOSTSHM_INSIDE, memory_order_release);
}

void dt_hostshm_leave_pair(struct dt_hostshm_rank *rank, int place)
{
    uint64_t pair = atomic_load_explicit(&rank->pairs[place], memory_order_relaxed);

    atomic_store_explicit(&rank->pairs[place], pair & ~(uint64_t)DT_HOSTSHM_INSIDE,
                          memory_order_release);
}

void dt_hostshm_sleep(struct dt_hostshm_rank *rank, uint32_t seen, const struct timespec *limit)
{
    syscall(SYS_futex, &rank->doorbell, FUTEX_WAIT, seen, limit, NULL, 0);
}

void dt_hostshm_ring(struct dt_hostshm_rank *rank)
{
    atomic_fetch_add(&rank->doorbell, 1);
    syscall(SYS_futex, &rank->doorbell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
