#include "launcher/agent/ranklink/commshm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/agent/ranklink/callwatch.h"
#include "launcher/base/mem.h"

enum {
    /* The most communicators that a host has at a time. A program that never frees any gets an
     * error before memory runs out. */
    COMMS_MAX = 16384,
    /* The most communicators to remember. The limit keeps a rank that invents numbers from using
     * up memory. */
    EARLY_MAX = 4096,
};

/* A communicator that was stopped although no rank of this host has asked for its memory. A rank
 * may still do so, or the communicator may have no rank here: the agent cannot know. */
struct early {
    uint64_t comm;
    int code;
    uint32_t culprit;
    char *why;
    bool *joining; /* by local rank: whether it was creating communicators at each look since */
};

enum membership { OUT, IN, DONE }; /* DONE: the rank has left the communicator again */

struct entry {
    uint64_t comm;
    struct dt_hostshm shm;
    int fd;               /* open until every member has it */
    uint8_t *memberships; /* enum membership, by local rank of the host */
    uint32_t members;
    uint32_t served;
    uint32_t done;
    bool reported; /* the launcher knows that it was stopped */
    struct dt_callwatch watch;
    /* when the longest wait of a rank began, as of the last look; 0: no rank waits, or the wait was
     * reported */
    uint64_t since_ns;
};

struct dt_commshm {
    uint32_t generation;
    uint32_t np;
    const struct dt_hostshm *world;
    struct entry *entries;
    size_t n;
    size_t room;
    struct early *early;
    size_t early_count;
    int stopped; /* 0, or the code that ended the job */
    uint32_t culprit;
    char *why;
};

struct dt_commshm *dt_commshm_create(uint32_t generation, uint32_t np,
                                     const struct dt_hostshm *world)
{
    struct dt_commshm *c = dt_xcalloc(1, sizeof *c);

    *c = (struct dt_commshm){ .generation = generation, .np = np, .world = world };
    return c;
}

static void drop(struct dt_commshm *c, struct entry *e)
{
    dt_callwatch_reset(&e->watch);
    dt_hostshm_unmap(&e->shm);
    free(e->memberships);
    if (e->fd >= 0)
        close(e->fd);
    *e = c->entries[--c->n];
}

static void forget(struct dt_commshm *c, struct early *s)
{
    free(s->why);
    free(s->joining);
    *s = c->early[--c->early_count];
}

void dt_commshm_destroy(struct dt_commshm *c)
{
    if (!c)
        return;
    while (c->n)
        drop(c, c->entries);
    while (c->early_count)
        forget(c, c->early);
    free(c->early);
    free(c->entries);
    free(c->why);
    free(c);
}

static struct entry *find_comm(struct dt_commshm *c, uint64_t comm)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->entries[i].comm == comm)
            return &c->entries[i];
    }
    return NULL;
}

static bool is_joining(const struct dt_commshm *c, uint32_t local_rank)
{
    return atomic_load(&c->world->ranks[local_rank].joining) != 0;
}

/* Returns whether a rank may still ask for the communicator. */
static bool is_awaited(const struct dt_commshm *c, struct early *s)
{
    bool any = false;

    for (uint32_t i = 0; i < c->world->local_size; i++) {
        s->joining[i] = s->joining[i] && is_joining(c, i);
        any |= s->joining[i];
    }
    return any;
}

static void tidy_early(struct dt_commshm *c)
{
    for (size_t i = c->early_count; i-- > 0;) {
        if (!is_awaited(c, &c->early[i]))
            forget(c, &c->early[i]);
    }
}

static void stop_early(struct dt_commshm *c, const struct entry *e)
{
    for (size_t i = c->early_count; i-- > 0;) {
        struct early *s = &c->early[i];

        if (s->comm != e->comm)
            continue;
        dt_hostshm_stop_because(&e->shm, s->code, s->culprit, s->why);
        forget(c, s);
    }
}

static bool is_remembered(const struct dt_commshm *c, uint64_t comm)
{
    for (size_t i = 0; i < c->early_count; i++) {
        if (c->early[i].comm == comm)
            return true;
    }
    return false;
}

static void remember(struct dt_commshm *c, uint64_t comm, int code, uint32_t culprit,
                     const char *why)
{
    uint32_t n = c->world->local_size;
    struct early s = { .comm = comm, .code = code, .culprit = culprit };

    if (c->early_count == EARLY_MAX)
        tidy_early(c);
    if (c->early_count == EARLY_MAX || is_remembered(c, comm))
        return;
    s.why = dt_xstrdup(why);
    s.joining = dt_xcalloc(n, sizeof *s.joining);
    for (uint32_t i = 0; i < n; i++)
        s.joining[i] = true;
    c->early = dt_xrealloc(c->early, c->early_count + 1, sizeof *c->early);
    c->early[c->early_count++] = s;
    tidy_early(c);
}

static struct entry *add_comm(struct dt_commshm *c, uint64_t comm, uint32_t members, uint32_t size)
{
    struct entry e = { .comm = comm, .members = members };

    errno = EINVAL;
    if (comm == 0 || members == 0 || members > c->world->local_size || size < members ||
        size > c->np)
        return NULL;
    errno = ENOSPC;
    if (c->n == COMMS_MAX)
        return NULL;
    e.fd = dt_hostshm_create(&e.shm, c->generation, members, size);
    if (e.fd < 0)
        return NULL;
    if (c->stopped)
        dt_hostshm_stop_because(&e.shm, c->stopped, c->culprit, c->why);
    stop_early(c, &e);
    e.memberships = dt_xcalloc(c->world->local_size, sizeof *e.memberships);
    e.reported = dt_hostshm_stopped(&e.shm, NULL) != 0;
    if (c->n == c->room) {
        c->room = c->room ? 2 * c->room : 16;
        c->entries = dt_xrealloc(c->entries, c->room, sizeof *c->entries);
    }
    c->entries[c->n] = e;
    return &c->entries[c->n++];
}

int dt_commshm_want(struct dt_commshm *c, uint32_t local_rank, uint64_t comm, uint32_t members,
                    uint32_t size)
{
    struct entry *e = find_comm(c, comm);
    int fd;

    if (!e)
        e = add_comm(c, comm, members, size);
    if (!e)
        return -1;
    errno = EINVAL;
    if (e->members != members || e->shm.size != size || e->served == members ||
        e->memberships[local_rank] != OUT)
        return -1;
    fd = e->served + 1 < members ? fcntl(e->fd, F_DUPFD_CLOEXEC, 0) : e->fd;
    if (fd < 0)
        return -1;
    e->memberships[local_rank] = IN;
    if (++e->served == members)
        e->fd = -1;
    return fd;
}

bool dt_commshm_done(struct dt_commshm *c, uint32_t local_rank, uint64_t comm)
{
    struct entry *e = find_comm(c, comm);

    if (!e || e->memberships[local_rank] != IN)
        return false;
    e->memberships[local_rank] = DONE;
    if (++e->done < e->members)
        return false;
    drop(c, e);
    return true;
}

bool dt_commshm_shares(struct dt_commshm *c, uint32_t local_rank, uint64_t comm, uint32_t members)
{
    const struct entry *e = find_comm(c, comm);

    if (comm == 0)
        return members == c->world->local_size;
    return e && e->members == members && e->memberships[local_rank] == IN;
}

void dt_commshm_stop(struct dt_commshm *c, uint64_t comm, int code, uint32_t culprit,
                     const char *why)
{
    for (size_t i = 0; i < c->n; i++) {
        if (comm != 0 && c->entries[i].comm != comm)
            continue;
        c->entries[i].reported = true;
        dt_hostshm_stop_because(&c->entries[i].shm, code, culprit, why);
    }
    if (comm != 0 && !find_comm(c, comm))
        remember(c, comm, code, culprit, why);
    if (comm != 0 || c->stopped)
        return;
    c->stopped = code;
    c->culprit = culprit;
    c->why = dt_xstrdup(why);
}

const struct dt_hostshm *dt_commshm_next_unreported(struct dt_commshm *c, uint64_t *comm)
{
    for (size_t i = 0; i < c->n; i++) {
        struct entry *e = &c->entries[i];

        if (e->reported || !dt_hostshm_stopped(&e->shm, NULL))
            continue;
        e->reported = true;
        *comm = e->comm;
        return &e->shm;
    }
    return NULL;
}

bool dt_commshm_report_once(struct dt_commshm *c, uint64_t comm)
{
    struct entry *e = find_comm(c, comm);
    bool is_first = !e || !e->reported;

    if (e)
        e->reported = true;
    return is_first;
}

/* ---- which ranks wait ---- */

struct report {
    const struct dt_u32s *ranks;
    uint64_t now_ns;
    struct dt_msg_pong *pong;
    size_t bytes; /* approximate size of what has been added */
};

static size_t bytes_of(const struct dt_msg_comm *m)
{
    return sizeof *m + m->members.n * sizeof *m->members.v +
           m->ranks.n * sizeof(struct dt_msg_called);
}

/* e is the entry of communicator comm, or NULL if it has none here. */
static void report_comm(struct report *t, uint64_t comm, struct entry *e)
{
    struct dt_msg_list *comms = &t->pong->comms;
    struct dt_msg_comm m = { .comm = comm };

    if (e)
        e->since_ns = 0;
    if (t->bytes >= DT_PONG_COMMS_BYTES) {
        t->pong->more++;
        return;
    }
    if (e)
        dt_callwatch_report(&e->watch, &e->shm, comm, t->ranks, t->now_ns, &m);
    t->bytes += bytes_of(&m);
    comms->v = dt_xrealloc(comms->v, comms->n + 1, sizeof m);
    ((struct dt_msg_comm *)comms->v)[comms->n++] = m;
}

static void report_asked(struct dt_commshm *c, const struct dt_msg_list *asked, struct report *t)
{
    const struct dt_msg_asked *v = asked->v;

    for (uint32_t i = 0; i < asked->n; i++)
        report_comm(t, v[i].comm, find_comm(c, v[i].comm));
}

static int by_age(const void *a, const void *b)
{
    const struct entry *const *x = a, *const *y = b;

    return (*x)->since_ns < (*y)->since_ns ? -1 : (*x)->since_ns > (*y)->since_ns;
}

static void report_waiting(struct dt_commshm *c, struct report *t)
{
    struct entry **waiting = dt_xcalloc(c->n + 1, sizeof *waiting);
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++) {
        if (c->entries[i].since_ns)
            waiting[n++] = &c->entries[i];
    }
    qsort(waiting, n, sizeof(struct entry *), by_age);
    for (size_t i = 0; i < n; i++)
        report_comm(t, waiting[i]->comm, waiting[i]);
    free(waiting);
}

void dt_commshm_look(struct dt_commshm *c, const struct dt_u32s *ranks, uint64_t now_ns,
                     const struct dt_msg_list *asked, struct dt_msg_pong *pong)
{
    struct report t = { ranks, now_ns, pong, 0 };

    for (size_t i = 0; i < c->n; i++) {
        struct entry *e = &c->entries[i];

        e->since_ns = dt_callwatch_look(&e->watch, &e->shm, now_ns);
        dt_callwatch_lower(&e->shm, &pong->limit_ms);
    }
    tidy_early(c);
    report_asked(c, asked, &t);
    report_waiting(c, &t);
}

/* Local ranks of a communicator are in the order of its ranks. */
static void add_inside(const struct dt_hostshm *shm, const struct dt_u32s *ranks, bool *inside)
{
    for (uint32_t rank = 0, i = 0; rank < shm->size && i < shm->local_size; rank++) {
        uint32_t word = atomic_load_explicit(&shm->members[rank], memory_order_relaxed);
        int64_t local_rank = word ? dt_u32s_find(ranks, word - 1) : -1;

        if (word == 0) /* the ranks of the remaining members are not known yet */
            return;
        if (local_rank >= 0)
            inside[local_rank] |= dt_callwatch_is_inside(&shm->ranks[i++]);
    }
}

void dt_commshm_inside(const struct dt_commshm *c, const struct dt_u32s *ranks, bool *inside)
{
    for (size_t i = 0; i < c->n; i++)
        add_inside(&c->entries[i].shm, ranks, inside);
}

void dt_commshm_reset_waits(struct dt_commshm *c)
{
    for (size_t i = 0; i < c->n; i++)
        dt_callwatch_reset(&c->entries[i].watch);
}
