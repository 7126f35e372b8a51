/* Removes whatever ranks may have left in a directory of dtrun's. */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/agent/ranks/removetree.h"
#include "tests/unit/unit.h"

enum { DEPTH = 100 };

struct place {
    char path[32];
    int fd;
};

static int setup(void **state)
{
    static struct place place;

    strcpy(place.path, "/tmp/removetree-XXXXXX");
    if (!mkdtemp(place.path))
        return -1;
    place.fd = open(place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = &place;
    return place.fd < 0;
}

static int teardown(void **state)
{
    struct place *place = *state;

    return close(place->fd);
}

static void add_file(int at, const char *name)
{
    int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    close(fd);
}

/* Makes a directory, closes at, and returns a descriptor of the new directory. */
static int descend(int at, const char *name)
{
    int fd;

    assert_int_equal(mkdirat(at, name, 0700), 0);
    fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    close(at);
    return fd;
}

static void trees_deeper_than_any_path_are_removed(void **state)
{
    const struct place *place = *state;
    char name[NAME_MAX + 1];
    int fd = fcntl(place->fd, F_DUPFD_CLOEXEC, 0);

    memset(name, 'd', sizeof name);
    name[NAME_MAX] = '\0';
    assert_true(DEPTH * NAME_MAX > PATH_MAX);
    for (int i = 0; i < DEPTH; i++) {
        add_file(fd, "file");
        assert_int_equal(mkdirat(fd, "deep-0", 0700),
                         0); /* directories that are being moved have such names */
        add_file(fd, "deep-1");
        fd = descend(fd, name);
    }
    close(fd);
    assert_true(dt_removetree(place->path));
    assert_int_equal(access(place->path, F_OK), -1);
}

static void links_are_not_followed(void **state)
{
    const struct place *place = *state;
    char kept[] = "/tmp/removetree-kept-XXXXXX", file[64];
    int fd;

    assert_non_null(mkdtemp(kept));
    snprintf(file, sizeof file, "%s/file", kept);
    add_file(AT_FDCWD, file);
    assert_int_equal(symlinkat(kept, place->fd, "link"), 0);
    assert_int_equal(symlinkat("nowhere", place->fd, "dangling"), 0);
    fd = descend(fcntl(place->fd, F_DUPFD_CLOEXEC, 0), "inner");
    assert_int_equal(symlinkat(kept, fd, "link"), 0);
    close(fd);
    assert_true(dt_removetree(place->path));
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(kept), 0);
}

enum { NOBODY = 65534 };

static void make_locked(int at, const char *name, mode_t mode)
{
    int fd = descend(fcntl(at, F_DUPFD_CLOEXEC, 0), name);

    add_file(fd, "file");
    fd = descend(fd, "inner");
    add_file(fd, "file");
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    assert_int_equal(fchmodat(at, name, mode, 0), 0);
}

/* Some programs unpack, or keep in caches, directories without permissions. */
static void directories_without_permissions_are_removed(void **state)
{
    const struct place *place = *state;
    uid_t me = geteuid();
    char below[64];
    bool removed;
    int fd;

    assert_int_equal(fchmod(place->fd, 0777), 0);
    if (me == 0)
        assert_int_equal(seteuid(NOBODY), 0); /* root needs no permissions */
    fd = descend(fcntl(place->fd, F_DUPFD_CLOEXEC, 0), "below");
    make_locked(fd, "read-only", 0500);
    make_locked(fd, "closed", 0);
    assert_int_equal(fchmod(fd, 0500), 0);
    close(fd);
    snprintf(below, sizeof below, "%s/below", place->path);
    removed = dt_removetree(below);
    assert_int_equal(seteuid(me), 0);
    assert_true(removed);
    assert_true(dt_removetree(place->path));
}

/* Binds or mounts something there in a namespace of its own. Returns 0, or 77 if that is not
 * allowed. */
static int remove_beside_mounts(const char *path, const char *kept)
{
    char bound[64], mounted[64], file[96];

    snprintf(bound, sizeof bound, "%s/bound", path);
    snprintf(mounted, sizeof mounted, "%s/deep/mounted", path);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(kept, bound, NULL, MS_BIND, NULL) != 0 || mount("t", mounted, "tmpfs", 0, NULL) != 0)
        return 77;
    snprintf(file, sizeof file, "%s/file", mounted);
    if (mknod(file, S_IFREG | 0600, 0) != 0)
        return 77;
    if (dt_removetree(path) || access(file, F_OK) != 0)
        return 1;
    if (umount(mounted) != 0 || umount(bound) != 0 || !dt_removetree(path))
        return 2;
    return 0;
}

/* What is mounted there is not the job's: data, or files of another host. */
static void mounted_directories_stay(void **state)
{
    const struct place *place = *state;
    char kept[] = "/tmp/removetree-kept-XXXXXX", file[64];
    int status, fd;
    pid_t pid;

    assert_non_null(mkdtemp(kept));
    snprintf(file, sizeof file, "%s/file", kept);
    add_file(AT_FDCWD, file);
    assert_int_equal(mkdirat(place->fd, "bound", 0700), 0);
    fd = descend(descend(fcntl(place->fd, F_DUPFD_CLOEXEC, 0), "deep"), "mounted");
    close(fd);
    pid = fork();
    if (pid == 0)
        _exit(remove_beside_mounts(place->path, kept));
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(kept), 0);
    dt_removetree(place->path);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

/* A process that cannot open the directory says so, and may try again. */
static void files_that_cannot_be_removed_are_reported(void **state)
{
    const struct place *place = *state;
    struct rlimit before, none;

    add_file(place->fd, "file");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_false(dt_removetree(place->path));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(dt_removetree(place->path));
    assert_true(dt_removetree(place->path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(trees_deeper_than_any_path_are_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(links_are_not_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(directories_without_permissions_are_removed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(mounted_directories_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(files_that_cannot_be_removed_are_reported, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
