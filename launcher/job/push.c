#include "launcher/job/push.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "launcher/base/mem.h"
#include "launcher/job/installed.h"
#include "runtime/wire/frame.h"

enum {
    OUTBOX_MAX = 512 * 1024,
    PIECE = DT_FRAME_PAYLOAD_MAX - 4, /* beside the file's number */
};

static int map(struct dt_push_file *f, int fd, struct dt_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return dt_error_usage(err, "--push %s: %s", f->path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return dt_error_usage(err, "--push %s: it is not a regular file", f->path);
    f->size = (size_t)st.st_size;
    f->mode = st.st_mode & 0777;
    if (f->size) {
        void *p = mmap(NULL, f->size, PROT_READ, MAP_PRIVATE, fd, 0);

        if (p == MAP_FAILED)
            return dt_error_usage(err, "--push %s: %s", f->path, strerror(errno));
        f->data = p;
    }
    f->hash = XXH3_64bits(f->data, f->size);
    return 0;
}

static int add(struct dt_push_set *set, const char *path, struct dt_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    struct dt_push_file *f;
    int fd, rc;

    for (uint32_t i = 0; i < set->n; i++) {
        if (strcmp(set->v[i].name, name) == 0)
            return dt_error_usage(err, "--push %s: %s is already sent under that name", path,
                                  set->v[i].path);
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return dt_error_usage(err, "--push %s: %s", path, strerror(errno));
    set->v = dt_xrealloc(set->v, set->n + 1, sizeof *set->v);
    f = &set->v[set->n++];
    *f = (struct dt_push_file){ .path = dt_xstrdup(path), .name = dt_xstrdup(name) };
    rc = map(f, fd, err);
    close(fd);
    return rc;
}

/* A file that is linked with the library has its name among its strings. */
static bool is_wanted(const struct dt_push_set *set)
{
    bool wanted = false;

    for (uint32_t i = 0; i < set->n; i++) {
        if (strcmp(set->v[i].name, DT_LIBRARY_FILE) == 0)
            return false;
        wanted |= set->v[i].size && memmem(set->v[i].data, set->v[i].size, DT_LIBRARY_FILE,
                                           sizeof DT_LIBRARY_FILE - 1) != NULL;
    }
    return wanted;
}

int dt_push_load(struct dt_push_set *set, const struct dt_strs *paths, const char *library,
                 struct dt_error *err)
{
    for (uint32_t i = 0; i < paths->n; i++) {
        if (add(set, paths->v[i], err) < 0)
            return -1;
    }
    return library && is_wanted(set) ? add(set, library, err) : 0;
}

void dt_push_free(struct dt_push_set *set)
{
    for (uint32_t i = 0; i < set->n; i++) {
        if (set->v[i].size && set->v[i].data)
            munmap((void *)(uintptr_t)set->v[i].data, set->v[i].size);
        free(set->v[i].path);
        free(set->v[i].name);
    }
    free(set->v);
    *set = (struct dt_push_set){ 0 };
}

static void begin(struct dt_push *p, struct dt_link *link, const char *job_id)
{
    const struct dt_push_file *f = &p->set->v[p->next];
    struct dt_msg_file m = {
        .id = p->next,
        .name = f->name,
        .mode = f->mode,
        .size = f->size,
        .hash = f->hash,
        .job_id = (char *)(uintptr_t)job_id,
    };

    dt_link_send(link, DT_MSG_FILE, &m);
    p->begun = true;
    p->offset = 0;
}

static void send_piece(struct dt_push *p, struct dt_link *link)
{
    const struct dt_push_file *f = &p->set->v[p->next];
    size_t n = f->size - p->offset < PIECE ? f->size - p->offset : PIECE;
    struct dt_msg_file_data m = { .id = p->next, .data = { f->data + p->offset, n } };

    dt_link_send(link, DT_MSG_FILE_DATA, &m);
    p->offset += n;
}

void dt_push_continue(struct dt_push *p, struct dt_link *link, const char *job_id)
{
    while (p->next < p->set->n && dt_link_pending(link) < OUTBOX_MAX) {
        if (!p->begun)
            begin(p, link, job_id);
        if (p->offset < p->set->v[p->next].size)
            send_piece(p, link);
        if (p->offset == p->set->v[p->next].size) {
            p->next++;
            p->begun = false;
        }
    }
}

int dt_push_on_done(struct dt_push *p, const struct dt_msg_file_done *m, struct dt_error *err)
{
    if (m->id >= p->set->n || p->done >= p->set->n)
        return dt_error_set(err, "push: the agent speaks of a file that was not sent");
    if (m->error[0])
        return dt_error_set(err, "push %s: %s", p->set->v[m->id].name, m->error);
    p->done++;
    if (!p->dir)
        p->dir = dt_xstrdup(m->dir);
    return 0;
}

bool dt_push_is_complete(const struct dt_push *p)
{
    return p->done == p->set->n;
}
