#include "runtime/checkpoint/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/wire/highfd.h"
#include "runtime/wire/writeall.h"

/* Another user may have made a link or a FIFO of the name. */
#define SAFELY (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)

enum lock_result { LOCKED, NO_LOCKS, BUSY, FAILED };

static dt_result_t fail_file(const struct dt_dir *d, const char *what)
{
    return dt_fail_errno(DT_ERR_IO, errno, "%s/%s: %s", d->path, DT_OWNER_NAME, what);
}

/* Reads as much of OWNER, open as fd, as fits. */
static dt_result_t read_text(const struct dt_dir *d, int fd, char text[DT_HOLDER_TEXT])
{
    ssize_t n = pread(fd, text, DT_HOLDER_TEXT - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return n < 0 ? fail_file(d, "read") : DT_OK;
}

static dt_result_t fail_owned(const struct dt_dir *d, const char *text, const char *what_to_do)
{
    struct dt_holder h;

    if (!dt_holder_parse(text, &h))
        return dt_fail(DT_ERR_STATE,
                       "the checkpoint directory %.200s is in use by another job, which its file "
                       "%s does not name: %s",
                       d->path, DT_OWNER_NAME, what_to_do);
    return dt_fail(DT_ERR_STATE,
                   "the checkpoint directory %.160s is in use by job %.100s (generation %u; rank 0 "
                   "is process %ld on host %.64s) since %s: %s",
                   d->path, h.job, h.generation, h.pid, h.host, h.since, what_to_do);
}

/* A file system without locks is accepted: OWNER is checked before each commit. */
static enum lock_result try_lock(int fd)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return LOCKED;
    if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP)
        return NO_LOCKS;
    return errno == EWOULDBLOCK ? BUSY : FAILED;
}

/* Whether fd still is the file named OWNER: the last owner may have removed it. */
static bool still_has_name(const struct dt_dir *d, int fd)
{
    struct stat mine, named;

    return fstat(fd, &mine) == 0 &&
           fstatat(d->fd, DT_OWNER_NAME, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

/* The text never looks empty to a reader: it is shortened last. */
static dt_result_t write_text(const struct dt_dir *d, int fd, const char *text)
{
    size_t len = strlen(text);

    if (dt_write_all(fd, text, len) != 0 || ftruncate(fd, (off_t)len) != 0)
        return fail_file(d, "write");
    return fsync(fd) == 0 ? DT_OK : fail_file(d, "fsync");
}

/* Replaces OWNER, which is open as was. An older generation that still lives keeps its lock on a
 * file that has no name any more. *again: another process has replaced or removed OWNER
 * meanwhile. */
static dt_result_t replace_owner_file(struct dt_ownership *o, const struct dt_dir *d,
                                      const struct dt_owner *me, int was, bool *again)
{
    struct dt_name name = dt_name_unfinished(me, "owner");
    dt_result_t result;
    int fd;

    unlinkat(d->fd, name.s, 0);
    fd = dt_fd_high(openat(d->fd, name.s, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd < 0 || try_lock(fd) > NO_LOCKS) {
        result = fail_file(d, "cannot be replaced");
    } else {
        result = write_text(d, fd, o->text);
        *again = result == DT_OK && !still_has_name(d, was);
        if (result == DT_OK && !*again)
            result = dt_dir_rename(d, name.s, DT_OWNER_NAME);
    }
    if (result == DT_OK && !*again) {
        o->fd = fd;
        return DT_OK;
    }
    if (fd >= 0)
        close(fd);
    unlinkat(d->fd, name.s, 0);
    return result;
}

/* OWNER, opened to be locked. */
struct owner_file {
    int fd;
    bool foreign; /* another user's job made it and may still hold it; it can only be read */
    bool linked;  /* it has another name, too: perhaps another user's link to this user's file */
};

static bool has_other_name(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_nlink > 1;
}

/* Opens OWNER, or makes it. Another user's file cannot be written, but it can be locked, and
 * replaced if this user may write to the directory. *again: its owner has just removed it. */
static dt_result_t open_owner_file(const struct dt_dir *d, struct owner_file *f, bool *again)
{
    int why;

    *f = (struct owner_file){ .foreign = false };
    *again = false;
    f->fd = dt_fd_high(openat(d->fd, DT_OWNER_NAME, O_RDWR | O_CREAT | SAFELY, 0666));
    f->linked = f->fd >= 0 && has_other_name(f->fd);
    if (f->fd >= 0)
        return DT_OK;
    why = errno;
    if (why == EACCES && faccessat(d->fd, ".", W_OK, AT_EACCESS) == 0) {
        f->foreign = true;
        f->fd = dt_fd_high(openat(d->fd, DT_OWNER_NAME, O_RDONLY | SAFELY));
        *again = f->fd < 0 && errno == ENOENT;
    }
    errno = why;
    return f->fd < 0 && !*again ? fail_file(d, "open") : DT_OK;
}

static dt_result_t fail_lock(const struct dt_dir *d, const struct owner_file *f)
{
    if (f->foreign)
        return fail_file(d,
                         "another user's file, which cannot be locked (remove it once no job uses "
                         "the directory)");
    return fail_file(d, "flock");
}

/* With OWNER open: takes it over, or says why not. *again: another process has just replaced or
 * removed it. */
static dt_result_t take_over_file(struct dt_ownership *o, const struct dt_dir *d,
                                  const struct dt_owner *me, const struct owner_file *f,
                                  bool *again)
{
    enum lock_result locked = try_lock(f->fd);
    char text[DT_HOLDER_TEXT];
    struct dt_holder h;
    bool of_this_job;

    if (locked == FAILED)
        return fail_lock(d, f);
    *again = !still_has_name(d, f->fd);
    if (*again)
        return DT_OK;
    if (read_text(d, f->fd, text) != DT_OK)
        return DT_ERR_IO;
    of_this_job = dt_holder_parse(text, &h) && dt_holder_is_job(&h, me->job_id);
    if (of_this_job && h.generation > me->generation)
        return fail_owned(d, text,
                          "that is a later start of this job, which this one must not "
                          "disturb");
    if (locked == BUSY && of_this_job && h.generation < me->generation)
        return replace_owner_file(o, d, me, f->fd, again);
    if (locked == BUSY)
        return fail_owned(d, text,
                          "wait until it has ended, or choose another directory "
                          "(--checkpoint-dir)");
    if (locked == NO_LOCKS)
        memcpy(o->before, text, sizeof text);
    if (f->foreign || f->linked)
        return replace_owner_file(o, d, me, f->fd, again);
    o->fd = f->fd;
    return write_text(d, f->fd, o->text);
}

dt_result_t dt_owner_take(struct dt_ownership *o, const struct dt_dir *d, const struct dt_owner *me,
                          const char *host)
{
    struct dt_holder h = dt_holder_of(me, host);
    dt_result_t result;
    bool again;

    if (o->held)
        return dt_owner_check(o, d);
    dt_holder_write(o->text, &h);
    o->before[0] = '\0';
    do {
        struct owner_file f;

        o->fd = -1;
        result = open_owner_file(d, &f, &again);
        if (result != DT_OK || again)
            continue;
        result = take_over_file(o, d, me, &f, &again);
        if (o->fd != f.fd || result != DT_OK)
            close(f.fd);
    } while (again);
    if (result != DT_OK)
        return result;
    o->dir = fcntl(d->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (o->dir < 0) {
        result = fail_file(d, "dup");
        close(o->fd);
        return result;
    }
    o->held = true;
    return DT_OK;
}

/* Reads the file that has the name now; an empty text if there is none. */
static dt_result_t read_owner_text(const struct dt_dir *d, char text[DT_HOLDER_TEXT])
{
    int fd = openat(d->fd, DT_OWNER_NAME, O_RDONLY | SAFELY);
    dt_result_t result;

    text[0] = '\0';
    if (fd < 0)
        return errno == ENOENT ? DT_OK : fail_file(d, "open");
    result = read_text(d, fd, text);
    close(fd);
    return result;
}

dt_result_t dt_owner_check(const struct dt_ownership *o, const struct dt_dir *d)
{
    char text[DT_HOLDER_TEXT];
    dt_result_t result = read_owner_text(d, text);

    if (result != DT_OK || strcmp(text, o->text) == 0)
        return result;
    if (text[0])
        return fail_owned(d, text,
                          "it has taken the directory from this one, which can save "
                          "nothing there any more");
    return dt_fail(DT_ERR_STATE,
                   "%s/%s is gone: it was removed, or a later start of this job has used "
                   "the directory; start this job again to save there",
                   d->path, DT_OWNER_NAME);
}

void dt_owner_release(struct dt_ownership *o)
{
    struct dt_dir d = { .fd = o->dir, .path = "" };
    char text[DT_HOLDER_TEXT];

    if (!o->held)
        return;
    if (read_owner_text(&d, text) == DT_OK && strcmp(text, o->text) == 0)
        unlinkat(o->dir, DT_OWNER_NAME, 0);
    flock(o->fd, LOCK_UN); /* a child process may also have the file open */
    close(o->fd);
    close(o->dir);
    *o = (struct dt_ownership){ .held = false };
}

/* Without locks the previous owner may still be running. It reads OWNER before it commits. */
void dt_owner_give_back(struct dt_ownership *o)
{
    struct dt_dir d = { .fd = o->dir, .path = "" };

    if (o->held && o->before[0] && dt_owner_check(o, &d) == DT_OK &&
        lseek(o->fd, 0, SEEK_SET) == 0 && write_text(&d, o->fd, o->before) == DT_OK)
        o->text[0] = '\0'; /* it is not ours to remove */
    dt_owner_release(o);
}

void dt_owner_forget(struct dt_ownership *o)
{
    if (!o->held)
        return;
    close(o->fd);
    close(o->dir);
    *o = (struct dt_ownership){ .held = false };
}
