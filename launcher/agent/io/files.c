#include "launcher/agent/io/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "launcher/base/error.h"
#include "launcher/base/mem.h"
#include "runtime/wire/writeall.h"

enum {
    KEPT_STEP = 1024 * 1024, /* bytes of a kept file to read for each message that arrives */
    BLOCK = 4096,
};

/* Where the job's directory may lie, in the order in which they are tried. */
enum place { IN_CACHE, IN_RUNTIME_DIR, IN_TMP, PLACES };

struct incoming {
    uint32_t id;
    uint32_t mode;
    uint64_t size;
    uint64_t left; /* bytes still to come */
    uint64_t hash;
    XXH3_state_t *state;
    int fd;
    char *temporary;
    char *path;
    char *kept;  /* the path at which it is kept, or will be; or NULL */
    int kept_fd; /* the kept file that is being checked, or -1 */
    XXH3_state_t *kept_state;
};

struct dt_files {
    struct dt_channel *channel;
    struct dt_keeper *keeper;
    struct dt_standby *standby;
    char *dir;     /* in the job's directory, for complete files; NULL: none yet */
    bool can_keep; /* the job's directory is in ~/.cache/dtrun, where kept files are, too */
    struct incoming *incoming; /* NULL: no file is arriving */
};

struct dt_files *dt_files_create(struct dt_channel *channel, struct dt_keeper *keeper,
                                 struct dt_standby *standby)
{
    struct dt_files *f = dt_xcalloc(1, sizeof *f);

    f->channel = channel;
    f->keeper = keeper;
    f->standby = standby;
    return f;
}

static void enter(struct dt_files *f)
{
    dt_standby_enter(f->standby,
                     "the file system for pushed files (HOME, XDG_RUNTIME_DIR or /tmp)");
}

/* err is empty if the file is complete. The other thread uses the channel only while this one waits
 * for a file system. */
static void answer(struct dt_files *f, uint32_t id, const struct dt_error *err)
{
    struct dt_msg_file_done m = {
        .id = id,
        .dir = err->text[0] ? (char *)"" : f->dir,
        .error = (char *)(uintptr_t)err->text,
    };

    dt_standby_leave(f->standby);
    dt_channel_send(f->channel, DT_MSG_FILE_DONE, &m);
    enter(f);
}

static void stop_checking(struct incoming *in)
{
    if (in->kept_fd >= 0)
        close(in->kept_fd);
    in->kept_fd = -1;
}

static void drop_incoming(struct dt_files *f)
{
    struct incoming *in = f->incoming;

    f->incoming = NULL;
    if (in->fd >= 0)
        close(in->fd);
    stop_checking(in);
    unlink(in->temporary); /* fails if the file is complete, and so was renamed */
    XXH3_freeState(in->state);
    XXH3_freeState(in->kept_state);
    free(in->temporary);
    free(in->path);
    free(in->kept);
    free(in);
}

/* Creates the directory that contains path. */
static void make_dir_above(const char *path)
{
    char *dir = dt_xstrndup(path, (size_t)(strrchr(path, '/') - path));

    mkdir(dir, 0700);
    free(dir);
}

/* Returns whether only this user and root can rename what lies in the directory. */
static bool is_ours(const char *dir, mode_t others)
{
    struct stat st;

    return stat(dir, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0) &&
           !(st.st_mode & others);
}

/* Ranks run what was pushed, so no other user may be able to replace it. root may have the HOME or
 * the XDG_RUNTIME_DIR of the user that it was before su or sudo. */
static int check_parent(const char *parent, enum place place, struct dt_error *err)
{
    char *above = dt_xasprintf("%s/..", parent);
    bool ours = place == IN_TMP || is_ours(parent, S_IWGRP | S_IWOTH);

    if (place == IN_CACHE)
        ours = ours && is_ours(above, 0) && is_ours(getenv("HOME"), 0);
    free(above);
    return ours ? 0 : dt_error_set(err, "%s: another user may change what lies there", parent);
}

/* Returns the directory in which the job's directory is to lie, or NULL. Creates it where it is
 * missing. The caller frees it. */
static char *make_parent(enum place place)
{
    const char *above = getenv(place == IN_CACHE ? "HOME" : "XDG_RUNTIME_DIR");
    char *path;

    if (place == IN_TMP)
        return dt_xstrdup("/tmp");
    if (!above || above[0] != '/')
        return NULL;
    if (place == IN_RUNTIME_DIR)
        return dt_xstrdup(above);
    path = dt_xasprintf("%s/.cache/dtrun", above);
    make_dir_above(path);
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return path;
    free(path);
    return NULL;
}

/* Directories can be made even on a full file system, and by a user who is over quota. */
static int write_block(const char *dir)
{
    static const char block[BLOCK] = "dtrun";
    char *name = dt_xasprintf("%s/block", dir);
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int rc = fd < 0 ? -1 : dt_write_all(fd, block, sizeof block);
    int error = errno;

    if (fd >= 0 && close(fd) < 0 && rc == 0) { /* NFS may notice it only here */
        rc = -1;
        error = errno;
    }
    unlink(name);
    free(name);
    errno = error;
    return rc;
}

static int make_in(const char *parent, char *dir, size_t size, const char *name,
                   struct dt_error *err)
{
    struct statvfs fs;

    if (statvfs(parent, &fs) == 0 && (fs.f_flag & ST_NOEXEC))
        return dt_error_set(err, "%s is mounted noexec: a program cannot run from there", parent);
    errno = ENAMETOOLONG;
    if (snprintf(dir, size, "%s/%s.XXXXXX", parent, name) >= (int)size || !mkdtemp(dir))
        return dt_error_set(err, "cannot make a directory in %s: %s", parent, strerror(errno));
    if (write_block(dir) == 0)
        return 0;
    dt_error_set(err, "%s: %s", dir, strerror(errno));
    rmdir(dir);
    return -1;
}

static int try_place(char *dir, size_t size, enum place place, const char *job_id,
                     struct dt_error *err)
{
    char *parent = make_parent(place);
    char *name = dt_xasprintf("%s%s", place == IN_CACHE ? "" : "dtrun-", job_id);
    int rc = parent ? check_parent(parent, place, err) : -1;

    if (rc == 0)
        rc = make_in(parent, dir, size, name, err);

    free(name);
    free(parent);
    return rc;
}

/* Unfinished files have their own directory, so that no name there equals that of a pushed file. */
static char *temporary_name(const struct dt_files *f, uint32_t id)
{
    return dt_xasprintf("%s/incoming/%u", f->keeper->file_dir, id);
}

static int make_subdirs(struct dt_files *f, struct dt_error *err)
{
    char *incoming = dt_xasprintf("%s/incoming", f->keeper->file_dir);
    int rc = 0;

    f->dir = dt_xasprintf("%s/files", f->keeper->file_dir);
    if (mkdir(f->dir, 0700) < 0 || mkdir(incoming, 0700) < 0)
        rc = dt_error_set(err, "%s: %s", f->keeper->file_dir, strerror(errno));
    free(incoming);
    return rc;
}

/* Restarts need the files, maybe only after weeks. systemd-tmpfiles removes what was not used for
 * some days, but nothing in a locked directory (tmpfiles.d(5)). The worker never unlocks it. */
static void keep_from_cleaners(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0)
        flock(fd, LOCK_SH | LOCK_NB);
}

static int make_dir(struct dt_files *f, const char *job_id, struct dt_error *err)
{
    struct dt_keeper *keeper = f->keeper;
    char dir[sizeof keeper->file_dir];

    if (keeper->file_dir[0])
        return 0;
    if (!*job_id || strchr(job_id, '/'))
        return dt_error_set(err, "\"%s\" is not the name of a job", job_id);
    for (enum place place = 0; place < PLACES; place++) {
        if (try_place(dir, sizeof dir, place, job_id, err) == 0) {
            memcpy(keeper->file_dir, dir, sizeof dir);
            f->can_keep = place == IN_CACHE;
            if (place != IN_CACHE)
                keep_from_cleaners(dir);
            return make_subdirs(f, err);
        }
    }
    return -1;
}

/* Adds the complete file to the kept files. If that fails, the launcher sends it again next time.
 */
static void keep_file(const struct incoming *in)
{
    if (!in->kept)
        return;
    unlink(in->kept); /* an existing one is damaged, or it would have been used */
    (void)!link(in->path, in->kept);
}

static int fail_write(const struct dt_files *f, const char *name, struct dt_error *err)
{
    bool full = errno == ENOSPC || errno == EDQUOT;

    return dt_error_set(err, "%s: %s%s", name, strerror(errno),
                        full && f->can_keep
                            ? "; make room there, or make ~/.cache a link to another file system"
                            : "");
}

static int finish_file(const struct dt_files *f, struct dt_error *err)
{
    struct incoming *in = f->incoming;
    int fd = in->fd;

    if (XXH3_64bits_digest(in->state) != in->hash)
        return dt_error_set(err, "%s arrived damaged; did it change meanwhile?", in->path);
    if (fchmod(fd, in->mode & 07777) < 0)
        return dt_error_set(err, "%s: %s", in->temporary, strerror(errno));
    in->fd = -1;
    if (close(fd) < 0 || rename(in->temporary, in->path) < 0)
        return fail_write(f, in->path, err);
    keep_file(in);
    return 0;
}

static void maybe_finish(struct dt_files *f)
{
    struct incoming *in = f->incoming;
    struct dt_error err = { 0 };

    if (in->left)
        return;
    finish_file(f, &err);
    answer(f, in->id, &err);
    drop_incoming(f);
}

/* Reads more of a kept file of this name. When all of it has proved equal to the file that is being
 * sent, puts it in place; then no more bytes are needed. Returns whether that happened. */
static bool use_kept(struct dt_files *f)
{
    static char buf[KEPT_STEP];
    struct incoming *in = f->incoming;
    ssize_t n = in->kept_fd < 0 ? -1 : read(in->kept_fd, buf, sizeof buf);

    if (n > 0)
        XXH3_64bits_update(in->kept_state, buf, (size_t)n);
    if (n > 0 && lseek(in->kept_fd, 0, SEEK_CUR) < (off_t)in->size)
        return false;
    if (n < 0 || XXH3_64bits_digest(in->kept_state) != in->hash || link(in->kept, in->path) < 0) {
        stop_checking(in);
        return false;
    }
    answer(f, in->id, &(struct dt_error){ 0 });
    drop_incoming(f);
    return true;
}

/* Kept files are beside the job's directory, because a hard link cannot leave its file system. */
static void find_kept(struct dt_files *f, struct incoming *in)
{
    const char *dir = f->keeper->file_dir;
    struct stat st;
    ptrdiff_t parent;

    if (!f->can_keep)
        return;
    parent = strrchr(dir, '/') - dir;
    in->kept = dt_xasprintf("%.*s/kept/%016" PRIx64 "-%" PRIu64 "-%o", (int)parent, dir, in->hash,
                            in->size, in->mode & 07777);
    make_dir_above(in->kept);
    in->kept_fd = open(in->kept, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (in->kept_fd >= 0 && (fstat(in->kept_fd, &st) < 0 || !S_ISREG(st.st_mode) ||
                             (uint64_t)st.st_size != in->size || st.st_size == 0))
        stop_checking(in);
}

/* No file may be created outside of the job's directory. */
static bool is_plain_name(const char *name)
{
    for (;;) {
        size_t n = strcspn(name, "/");

        if (n == 0 || (n == 1 && name[0] == '.') || (n == 2 && memcmp(name, "..", 2) == 0))
            return false;
        if (!name[n])
            return true;
        name += n + 1;
    }
}

/* Every directory is made writable for its owner, whatever its mode: its content follows, and it is
 * removed at the end. */
static void make_dir_or_link(struct dt_files *f, const struct dt_msg_file *m, const char *path)
{
    struct dt_error err = { 0 };

    if (S_ISLNK(m->mode) ? symlink(m->target, path) < 0
                         : mkdir(path, 0700) < 0 || chmod(path, 0700 | (m->mode & 07777)) < 0)
        dt_error_set(&err, "%s: %s", path, strerror(errno));
    answer(f, m->id, &err);
}

static void begin_file(struct dt_files *f, const struct dt_msg_file *m, char *path)
{
    struct dt_error err = { 0 };
    struct incoming *in = dt_xcalloc(1, sizeof *in);

    *in = (struct incoming){
        .id = m->id,
        .mode = m->mode,
        .size = m->size,
        .left = m->size,
        .hash = m->hash,
        .path = path,
        .temporary = temporary_name(f, m->id),
        .state = XXH3_createState(),
        .kept_state = XXH3_createState(),
        .kept_fd = -1,
    };
    in->fd = open(in->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    f->incoming = in;
    if (in->fd < 0 || !in->state || !in->kept_state || XXH3_64bits_reset(in->state) != XXH_OK ||
        XXH3_64bits_reset(in->kept_state) != XXH_OK) {
        dt_error_set(&err, "%s: %s", in->temporary, strerror(errno));
        answer(f, in->id, &err);
        drop_incoming(f);
        return;
    }
    if (m->keep)
        find_kept(f, in);
    if (!use_kept(f))
        maybe_finish(f);
}

static void begin_incoming(struct dt_files *f, const struct dt_msg_file *m)
{
    struct dt_error err = { 0 };
    char *path;

    /* The launcher stops in the middle of a file after it was told that the file failed. */
    if (f->incoming)
        drop_incoming(f);
    if (!is_plain_name(m->name))
        dt_error_set(&err, "\"%s\" is not a file name", m->name);
    if (err.text[0] || make_dir(f, m->job_id, &err) < 0) {
        answer(f, m->id, &err);
        return;
    }
    path = dt_xasprintf("%s/%s", f->dir, m->name);
    if (S_ISREG(m->mode)) {
        begin_file(f, m, path);
    } else {
        make_dir_or_link(f, m, path);
        free(path);
    }
}

void dt_files_begin(struct dt_files *f, const struct dt_msg_file *m)
{
    enter(f);
    begin_incoming(f, m);
    dt_standby_leave(f->standby);
}

static void take_data(struct dt_files *f, const struct dt_msg_file_data *m)
{
    struct incoming *in = f->incoming;
    struct dt_error err = { 0 };

    if (!in || in->id != m->id)
        return; /* the file exists already or has failed; the launcher has been told */
    if (m->data.n > in->left) {
        dt_error_set(&err, "%s: more bytes came than were announced", in->path);
    } else if (dt_write_all(in->fd, m->data.p, m->data.n) < 0) {
        fail_write(f, in->temporary, &err);
    } else {
        XXH3_64bits_update(in->state, m->data.p, m->data.n);
        in->left -= m->data.n;
        if (in->kept_fd < 0 || !use_kept(f))
            maybe_finish(f);
        return;
    }
    answer(f, in->id, &err);
    drop_incoming(f);
}

void dt_files_data(struct dt_files *f, const struct dt_msg_file_data *m)
{
    enter(f);
    take_data(f, m);
    dt_standby_leave(f->standby);
}
