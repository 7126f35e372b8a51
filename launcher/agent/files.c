#include "launcher/agent/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "launcher/base/error.h"
#include "launcher/base/mem.h"
#include "launcher/base/writeall.h"

struct incoming {
    struct incoming *next;
    uint32_t id;
    uint32_t mode;
    uint64_t left; /* bytes to come */
    uint64_t hash;
    XXH3_state_t *state;
    int fd;
    char *temporary;
    char *path;
};

struct dt_files {
    struct dt_channel *channel;
    struct dt_keeper *keeper;
    struct incoming *incoming; /* control overtakes data: several may have begun */
};

struct dt_files *dt_files_create(struct dt_channel *channel, struct dt_keeper *keeper)
{
    struct dt_files *f = dt_xcalloc(1, sizeof *f);

    f->channel = channel;
    f->keeper = keeper;
    return f;
}

static void answer(struct dt_files *f, uint32_t id, const struct dt_error *err)
{
    struct dt_msg_file_done m = {
        .id = id,
        .dir = err ? (char *)"" : f->keeper->file_dir,
        .error = err ? (char *)(uintptr_t)err->text : (char *)"",
    };

    dt_channel_send(f->channel, DT_MSG_FILE_DONE, &m);
}

static void drop(struct dt_files *f, struct incoming *in)
{
    struct incoming **at = &f->incoming;

    while (*at != in)
        at = &(*at)->next;
    *at = in->next;
    if (in->fd >= 0)
        close(in->fd);
    unlink(in->temporary); /* is not there any more when all went well */
    XXH3_freeState(in->state);
    free(in->temporary);
    free(in->path);
    free(in);
}

/* The directories in which the job's directory may lie: what exists of them is made, in order. */
static int make_parent(char *path, size_t size, int choice)
{
    const char *home = getenv("HOME");
    const char *run = getenv("XDG_RUNTIME_DIR");

    switch (choice) {
    case 0:
        if (!home || home[0] != '/')
            return -1;
        snprintf(path, size, "%s/.cache", home);
        mkdir(path, 0700);
        snprintf(path, size, "%s/.cache/dtrun", home);
        return mkdir(path, 0700) < 0 && errno != EEXIST ? -1 : 0;
    case 1:
        if (!run || run[0] != '/')
            return -1;
        snprintf(path, size, "%s", run);
        return 0;
    default:
        snprintf(path, size, "/tmp");
        return 0;
    }
}

static int try_place(char *dir, size_t size, int choice, const char *job_id, struct dt_error *err)
{
    char parent[1024];
    struct statvfs fs;

    if (make_parent(parent, sizeof parent, choice) < 0)
        return -1;
    if (statvfs(parent, &fs) == 0 && (fs.f_flag & ST_NOEXEC))
        return dt_error_set(err, "%s is mounted noexec: a program cannot run from there", parent);
    snprintf(dir, size, "%s/%s%s.XXXXXX", parent, choice ? "dtrun-" : "", job_id);
    if (mkdtemp(dir))
        return 0;
    return dt_error_set(err, "cannot make a directory in %s: %s", parent, strerror(errno));
}

static int make_dir(struct dt_keeper *keeper, const char *job_id, struct dt_error *err)
{
    char dir[sizeof keeper->file_dir];

    if (keeper->file_dir[0])
        return 0;
    if (!*job_id || strchr(job_id, '/'))
        return dt_error_set(err, "\"%s\" is no job's name", job_id);
    for (int choice = 0; choice < 3; choice++) {
        if (try_place(dir, sizeof dir, choice, job_id, err) == 0) {
            memcpy(keeper->file_dir, dir, sizeof dir);
            return 0;
        }
    }
    return -1;
}

static int finish(struct incoming *in, struct dt_error *err)
{
    int fd = in->fd;

    in->fd = -1;
    if (XXH3_64bits_digest(in->state) != in->hash) {
        close(fd);
        return dt_error_set(err, "%s arrived damaged; try again", in->path);
    }
    if (fchmod(fd, in->mode & 0777) < 0) {
        close(fd);
        return dt_error_set(err, "%s: %s", in->temporary, strerror(errno));
    }
    if (close(fd) < 0 || rename(in->temporary, in->path) < 0)
        return dt_error_set(err, "%s: %s", in->path, strerror(errno));
    return 0;
}

static void maybe_finish(struct dt_files *f, struct incoming *in)
{
    struct dt_error err = { 0 };

    if (in->left)
        return;
    if (finish(in, &err) == 0)
        answer(f, in->id, NULL);
    else
        answer(f, in->id, &err);
    drop(f, in);
}

static bool is_plain_name(const char *name)
{
    return *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

void dt_files_begin(struct dt_files *f, const struct dt_msg_file *m)
{
    struct dt_error err = { 0 };
    struct incoming *in;

    if (!is_plain_name(m->name))
        dt_error_set(&err, "\"%s\" is no file name", m->name);
    if (err.text[0] || make_dir(f->keeper, m->job_id, &err) < 0) {
        answer(f, m->id, &err);
        return;
    }
    in = dt_xcalloc(1, sizeof *in);
    in->id = m->id;
    in->mode = m->mode;
    in->left = m->size;
    in->hash = m->hash;
    in->path = dt_xasprintf("%s/%s", f->keeper->file_dir, m->name);
    in->temporary = dt_xasprintf("%s/.part-%u", f->keeper->file_dir, m->id);
    in->state = XXH3_createState();
    in->fd = open(in->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    in->next = f->incoming;
    f->incoming = in;
    if (in->fd < 0 || !in->state || XXH3_64bits_reset(in->state) != XXH_OK) {
        dt_error_set(&err, "%s: %s", in->temporary, strerror(errno));
        answer(f, in->id, &err);
        drop(f, in);
        return;
    }
    maybe_finish(f, in);
}

void dt_files_data(struct dt_files *f, const struct dt_msg_file_data *m)
{
    struct incoming *in = f->incoming;
    struct dt_error err = { 0 };

    while (in && in->id != m->id)
        in = in->next;
    if (!in)
        return; /* it has failed, which the launcher has been told */
    if (m->data.n > in->left) {
        dt_error_set(&err, "%s: more bytes came than were announced", in->path);
    } else if (dt_write_all(in->fd, m->data.p, m->data.n) < 0) {
        dt_error_set(&err, "%s: %s", in->temporary, strerror(errno));
    } else {
        XXH3_64bits_update(in->state, m->data.p, m->data.n);
        in->left -= m->data.n;
        maybe_finish(f, in);
        return;
    }
    answer(f, in->id, &err);
    drop(f, in);
}
