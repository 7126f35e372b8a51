#include "launcher/session/push.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "launcher/base/mem.h"
#include "launcher/base/program/installed.h"
#include "runtime/wire/frame.h"

enum {
    OUTBOX_MAX = 512 * 1024,
    CHUNK_MAX = DT_FRAME_PAYLOAD_MAX - 4, /* leaves room for the file's number */
    READ_AHEAD = 4 * CHUNK_MAX,           /* read at once */
    READ_SIZE = 256 * 1024,
    NAME_LENGTH = sizeof DT_LIBRARY_FILE - 1,
};

struct loading {
    struct dt_push_set *set;
    /* some file contains the library's name, which suggests that it links the library */
    bool names_library;
    struct dt_error *err;
};

static int refuse_path(struct loading *l, const char *path)
{
    return dt_error_usage(l->err, "--push %s: %s", path, strerror(errno));
}

/* Reads fd to its end, for the checksum and for the library's name. Keeps the end of what it has
 * read, because the name may begin there. Returns -1 with errno. */
static int hash_content(struct loading *l, struct dt_push_file *f, int fd, XXH3_state_t *state)
{
    static char buf[NAME_LENGTH + READ_SIZE];
    size_t kept = 0;
    ssize_t n;

    while ((n = read(fd, buf + kept, READ_SIZE)) > 0) {
        size_t have = kept + (size_t)n;

        XXH3_64bits_update(state, buf + kept, (size_t)n);
        l->names_library |= memmem(buf, have, DT_LIBRARY_FILE, NAME_LENGTH) != NULL;
        f->size += (uint64_t)n;
        kept = have < NAME_LENGTH ? have : (size_t)NAME_LENGTH;
        memmove(buf, buf + have - kept, kept);
    }
    if (n == 0)
        f->hash = XXH3_64bits_digest(state);
    return n < 0 ? -1 : 0;
}

static int read_content(struct loading *l, struct dt_push_file *f, int fd)
{
    XXH3_state_t *state = XXH3_createState();
    int rc = -1;

    if (state && XXH3_64bits_reset(state) == XXH_OK)
        rc = hash_content(l, f, fd, state);
    else
        errno = ENOMEM;
    XXH3_freeState(state);
    return rc;
}

static int load_file(struct loading *l, struct dt_push_file *f)
{
    int fd = open(f->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    int rc;

    if (fd < 0)
        return refuse_path(l, f->path);
    if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)) {
        close(fd);
        return dt_error_usage(l->err, "--push %s: it is neither a regular file nor a directory",
                              f->path);
    }
    rc = read_content(l, f, fd) < 0 ? refuse_path(l, f->path) : 0;
    close(fd);
    return rc;
}

static int load_link(struct loading *l, struct dt_push_file *f)
{
    char target[PATH_MAX];
    ssize_t n = readlink(f->path, target, sizeof target - 1);

    if (n < 0)
        return refuse_path(l, f->path);
    f->target = dt_xstrndup(target, (size_t)n);
    return 0;
}

static int add_file(struct loading *l, const char *path, const char *name, const struct stat *st);

/* Loads everything in a directory, sorted by name, so that the order is the same everywhere. */
static int load_dir(struct loading *l, const char *path, const char *name)
{
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);
    int rc = n < 0 ? refuse_path(l, path) : 0;

    for (int i = 0; i < n; i++) {
        const char *last = entries[i]->d_name;
        char *inner = dt_xasprintf("%s/%s", path, last);
        char *sent = dt_xasprintf("%s/%s", name, last);
        struct stat st;

        if (rc == 0 && strcmp(last, ".") != 0 && strcmp(last, "..") != 0)
            rc = lstat(inner, &st) < 0 ? refuse_path(l, inner) : add_file(l, inner, sent, &st);
        free(inner);
        free(sent);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return rc;
}

static int add_file(struct loading *l, const char *path, const char *name, const struct stat *st)
{
    struct dt_push_set *set = l->set;
    struct dt_push_file *f;

    if ((set->n & (set->n - 1)) == 0) /* a power of two: the array is full */
        set->v = dt_xrealloc(set->v, set->n ? 2 * (size_t)set->n : 1, sizeof *set->v);
    f = &set->v[set->n++];
    *f = (struct dt_push_file){
        .path = dt_xstrdup(path),
        .name = dt_xstrdup(name),
        .mode = st->st_mode,
    };
    if (S_ISDIR(st->st_mode))
        return load_dir(l, path, name);
    return S_ISLNK(st->st_mode) ? load_link(l, f) : load_file(l, f);
}

/* Returns the name on the hosts: the last component, also of "dir/", "." and "..". NULL for "/". */
static char *name_on_hosts(const char *path)
{
    size_t n = strlen(path);
    const char *last;
    char *whole, *name = NULL;

    while (n > 0 && path[n - 1] == '/')
        n--;
    last = n > 0 ? memrchr(path, '/', n) : NULL;
    last = last ? last + 1 : path;
    n -= (size_t)(last - path);
    if (n > 0 && strspn(last, ".") < n)
        return dt_xstrndup(last, n);
    whole = realpath(path, NULL);
    if (whole && strcmp(whole, "/") != 0)
        name = dt_xstrdup(strrchr(whole, '/') + 1);
    free(whole);
    return name;
}

/* A symbolic link that the user named is followed. Links in a directory stay links. */
static int add_named(struct loading *l, const char *path)
{
    char *name;
    struct stat st;
    int rc = 0;

    if (stat(path, &st) < 0)
        return refuse_path(l, path);
    name = name_on_hosts(path);
    if (!name)
        return dt_error_usage(l->err, "--push %s: a whole file system is not sent", path);
    for (uint32_t i = 0; i < l->set->n && rc == 0; i++) {
        if (strcmp(l->set->v[i].name, name) == 0)
            rc = dt_error_usage(l->err, "--push %s: %s is already sent under that name", path,
                                l->set->v[i].path);
    }
    rc = rc == 0 ? add_file(l, path, name, &st) : rc;
    free(name);
    return rc;
}

static bool has_library(const struct dt_push_set *set)
{
    for (uint32_t i = 0; i < set->n; i++) {
        if (strcmp(set->v[i].name, DT_LIBRARY_FILE) == 0)
            return true;
    }
    return false;
}

int dt_push_load(struct dt_push_set *set, const struct dt_strs *paths, const char *library,
                 struct dt_error *err)
{
    struct loading l = { .set = set, .err = err };

    for (uint32_t i = 0; i < paths->n; i++) {
        if (add_named(&l, paths->v[i]) < 0)
            return -1;
    }
    return library && l.names_library && !has_library(set) ? add_named(&l, library) : 0;
}

void dt_push_free(struct dt_push_set *set)
{
    for (uint32_t i = 0; i < set->n; i++) {
        free(set->v[i].path);
        free(set->v[i].name);
        free(set->v[i].target);
    }
    free(set->v);
    *set = (struct dt_push_set){ 0 };
}

static void send_data(const struct dt_push *p, const char *data, size_t n)
{
    for (size_t sent = 0; sent < n; sent += CHUNK_MAX) {
        size_t left = n - sent;
        struct dt_msg_file_data m = {
            .id = p->next,
            .data = { (const uint8_t *)data + sent, left < CHUNK_MAX ? left : CHUNK_MAX },
        };

        dt_link_send(p->link, DT_MSG_FILE_DATA, &m);
    }
}

static size_t on_read(void *arg, const char *data, size_t n, int error)
{
    struct dt_push *p = arg;

    p->reading = false;
    if (n == 0)
        dt_error_set(&p->failed, "push %s: %s", p->set->v[p->next].path,
                     error ? strerror(error) : "it has become shorter since dtrun began");
    send_data(p, data, n);
    p->offset += n;
    p->moved(p->arg);
    return n;
}

static void begin_file(struct dt_push *p)
{
    const struct dt_push_file *f = &p->set->v[p->next];
    struct dt_msg_file m = {
        .id = p->next,
        .name = f->name,
        .mode = f->mode,
        .size = f->size,
        .hash = f->hash,
        .target = f->target ? f->target : (char *)"",
        .keep = p->set->keep,
        .job_id = (char *)(uintptr_t)p->job_id,
    };

    dt_link_send(p->link, DT_MSG_FILE, &m);
    if (f->size && !p->reader)
        p->reader = dt_filereader_open_paths(p->loop, on_read, p);
    if (f->size)
        dt_filereader_switch(p->reader, f->path);
    p->begun = true;
    p->offset = 0;
}

static void close_reader(struct dt_push *p)
{
    dt_filereader_close(p->reader);
    p->reader = NULL;
    p->reading = false;
}

static void end_file(struct dt_push *p)
{
    if (p->reading) /* something that is not wanted any more */
        close_reader(p);
    p->begun = false;
    p->next++;
}

static void read_more(struct dt_push *p)
{
    uint64_t left = p->set->v[p->next].size - p->offset;

    p->reading = true;
    dt_filereader_start(p->reader, left < READ_AHEAD ? (size_t)left : (size_t)READ_AHEAD);
}

int dt_push_continue(struct dt_push *p, struct dt_link *link, struct dt_error *err)
{
    p->link = link;
    if (p->failed.text[0]) {
        *err = p->failed;
        return -1;
    }
    while (!p->reading && p->next < p->set->n && dt_link_pending(link) < OUTBOX_MAX) {
        if (!p->begun)
            begin_file(p);
        if (p->offset < p->set->v[p->next].size)
            read_more(p);
        else
            end_file(p);
    }
    return 0;
}

int dt_push_on_done(struct dt_push *p, const struct dt_msg_file_done *m, struct dt_error *err)
{
    if (m->id >= p->set->n || p->done >= p->set->n)
        return dt_error_set(err, "push: the agent reports a file that was not sent");
    if (m->error[0])
        return dt_error_set(err, "push %s: %s", p->set->v[m->id].name, m->error);
    p->done++;
    if (!p->dir)
        p->dir = dt_xstrdup(m->dir);
    if (p->begun && m->id == p->next)
        end_file(p); /* the host already had the file */
    return 0;
}

bool dt_push_is_complete(const struct dt_push *p)
{
    return p->done == p->set->n;
}

void dt_push_end(struct dt_push *p)
{
    close_reader(p);
    free(p->dir);
    p->dir = NULL;
}
