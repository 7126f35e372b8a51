#include "launcher/agent/ranklink/segments.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "runtime/wire/sealed.h"

/* a segment that some ranks have received and others have not; at most one for each communicator
 * and giver: that of the newest call */
struct entry {
    struct dt_segments_wanted wanted;
    uint64_t number;
    int fd; /* -1: error says why there is none */
    int error;
    bool *served; /* by local rank */
    uint32_t nserved;
};

struct dt_segments {
    uint32_t local_size;
    uint64_t made;
    struct entry *entries;
    size_t n;
};

struct dt_segments *dt_segments_create(uint32_t local_size)
{
    struct dt_segments *s = dt_xcalloc(1, sizeof *s);

    s->local_size = local_size;
    return s;
}

static void drop(struct dt_segments *s, struct entry *e)
{
    if (e->fd >= 0)
        close(e->fd);
    free(e->served);
    *e = s->entries[--s->n];
}

void dt_segments_destroy(struct dt_segments *s)
{
    if (!s)
        return;
    while (s->n)
        drop(s, s->entries);
    free(s->entries);
    free(s);
}

/* Refuses a size that no host could hold: the kernel would grant it, and kill the ranks when they
 * use it. */
static int make(uint64_t bytes)
{
    struct sysinfo host;

    errno = ENOMEM;
    if (sysinfo(&host) == 0 && bytes / host.mem_unit > (uint64_t)host.totalram + host.totalswap)
        return -1;
    return dt_sealed_create("dtrun-buffers", bytes);
}

static struct entry *find_segment(struct dt_segments *s, uint64_t comm, uint32_t giver)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->entries[i].wanted.comm == comm && s->entries[i].wanted.giver == giver)
            return &s->entries[i];
    }
    return NULL;
}

/* error says why fd is -1. */
static struct entry *add_segment(struct dt_segments *s, const struct dt_segments_wanted *wanted,
                                 int fd, int error)
{
    struct entry *e;

    s->entries = dt_xrealloc(s->entries, s->n + 1, sizeof *s->entries);
    e = &s->entries[s->n++];
    *e = (struct entry){
        .wanted = *wanted, .number = ++s->made, .fd = fd, .error = fd < 0 ? error : 0
    };
    e->served = dt_xcalloc(s->local_size, sizeof *e->served);
    return e;
}

/* Returns the entry that the rank's request belongs to, or NULL if the request differs from the
 * others'. */
static struct entry *entry_of(struct dt_segments *s, uint32_t local_rank,
                              const struct dt_segments_wanted *w)
{
    struct entry *e = find_segment(s, w->comm, w->giver);

    if (w->bytes == 0 || w->members == 0 || w->members > s->local_size)
        return NULL;
    if (e && e->wanted.call < w->call) {
        drop(s, e);
        e = NULL;
    }
    if (!e && w->giver == 0) {
        int fd = make(w->bytes);

        return add_segment(s, w, fd, errno);
    }
    if (!e)
        return NULL;
    return e->wanted.call == w->call && e->wanted.members == w->members &&
                   e->wanted.bytes == w->bytes && !e->served[local_rank]
               ? e
               : NULL;
}

int dt_segments_want(struct dt_segments *s, uint32_t local_rank,
                     const struct dt_segments_wanted *wanted, uint64_t *number)
{
    struct entry *e = entry_of(s, local_rank, wanted);
    int fd, error;

    errno = EINVAL;
    if (!e)
        return -1;
    *number = e->number;
    fd = e->fd < 0 ? -1 : fcntl(e->fd, F_DUPFD_CLOEXEC, 0);
    error = e->error ? e->error : errno;
    e->served[local_rank] = true;
    if (++e->nserved == wanted->members)
        drop(s, e);
    errno = error;
    return fd;
}

int dt_segments_give(struct dt_segments *s, uint32_t local_rank, const struct dt_segments_wanted *w,
                     int fd)
{
    struct entry *e = find_segment(s, w->comm, w->giver);
    int kept;

    errno = EINVAL;
    if (w->giver != local_rank + 1 || w->bytes == 0 || w->members == 0 ||
        w->members >= s->local_size || (e && e->wanted.call >= w->call))
        return -1;
    kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (kept < 0)
        return -1;
    if (e)
        drop(s, e);
    add_segment(s, w, kept, 0)->served[local_rank] = true;
    return 0;
}

void dt_segments_forget(struct dt_segments *s, uint64_t comm)
{
    for (size_t i = s->n; i-- > 0;) {
        if (s->entries[i].wanted.comm == comm)
            drop(s, &s->entries[i]);
    }
}

size_t dt_segments_kept(const struct dt_segments *s)
{
    return s->n;
}
