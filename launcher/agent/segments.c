#include "launcher/agent/segments.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "runtime/wire/sealed.h"

enum { MOST = 256 }; /* handed out in part: of communicators that have failed meanwhile */

struct entry {
    uint64_t comm;
    uint64_t number;
    uint64_t bytes;
    int fd; /* -1: there is none, because of error */
    int error;
    uint32_t members;
    uint32_t served;
};

struct dt_segments {
    uint32_t local_size;
    uint64_t made;
    struct entry entries[MOST];
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
    *e = s->entries[--s->n];
}

void dt_segments_destroy(struct dt_segments *s)
{
    if (!s)
        return;
    while (s->n)
        drop(s, s->entries);
    free(s);
}

/* What no host could hold is refused here: the kernel would promise it, and kill the ranks when
 * they use it. */
static int make(uint64_t bytes)
{
    struct sysinfo host;

    errno = ENOMEM;
    if (sysinfo(&host) == 0 && bytes / host.mem_unit > (uint64_t)host.totalram + host.totalswap)
        return -1;
    return dt_sealed_create("dtrun-buffers", bytes);
}

static struct entry *find(struct dt_segments *s, uint64_t comm)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->entries[i].comm == comm)
            return &s->entries[i];
    }
    return NULL;
}

static struct entry *add(struct dt_segments *s, uint64_t comm, uint64_t bytes, uint32_t members)
{
    struct entry *e = &s->entries[s->n];

    errno = EINVAL;
    if (bytes == 0 || members == 0 || members > s->local_size)
        return NULL;
    errno = ENOSPC;
    if (s->n == MOST)
        return NULL;
    *e = (struct entry){
        .comm = comm, .number = ++s->made, .bytes = bytes, .fd = make(bytes), .members = members
    };
    e->error = e->fd < 0 ? errno : 0;
    s->n++;
    return e;
}

int dt_segments_want(struct dt_segments *s, uint64_t comm, uint64_t bytes, uint32_t members,
                     uint64_t *number)
{
    struct entry *e = find(s, comm);
    int fd, error;

    if (!e)
        e = add(s, comm, bytes, members);
    if (!e)
        return -1;
    errno = EINVAL;
    if (e->members != members || e->bytes != bytes)
        return -1;
    *number = e->number;
    fd = e->fd < 0 ? -1 : fcntl(e->fd, F_DUPFD_CLOEXEC, 0);
    error = e->error ? e->error : errno;
    if (++e->served == members)
        drop(s, e);
    errno = error;
    return fd;
}
