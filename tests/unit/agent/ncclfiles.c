#include "tests/unit/unit.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/agent/sweep/ncclfiles.h"

enum { SIZE = 8192 };

static char dir[] = "/dev/shm/dtrun-ncclfiles.XXXXXX";

static bool is_tmpfs(const char *path)
{
    struct statfs fs;

    return statfs(path, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

static int enter_directory(void **state)
{
    (void)state;
    return mkdtemp(dir) ? chdir(dir) : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(dir);
}

static size_t remove_files(void)
{
    return dt_ncclfiles_remove(dir, NULL, NULL);
}

/* Makes a file as NCCL does, of which count ranks have not mapped their part yet. */
static int make(const char *name, int count)
{
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, SIZE), 0);
    assert_int_equal(pwrite(fd, &count, sizeof count, SIZE - (off_t)sizeof count), sizeof count);
    return fd;
}

static void leave(const char *name, int count)
{
    close(make(name, count));
}

/* Asserts that it is not removed, and removes it. */
static void stays(const char *name)
{
    assert_int_equal(remove_files(), 0);
    assert_int_equal(unlinkat(AT_FDCWD, name, 0), 0);
}

static void names_are_those_of_nccl(void **state)
{
    (void)state;
    assert_true(dt_ncclfiles_is_name("nccl-aZ09bc"));
    assert_false(dt_ncclfiles_is_name("nccl-"));
    assert_false(dt_ncclfiles_is_name("nccl-aZ09b"));
    assert_false(dt_ncclfiles_is_name("nccl-aZ09bcd"));
    assert_false(dt_ncclfiles_is_name("nccl-aZ09b."));
    assert_false(dt_ncclfiles_is_name("nccl_aZ09bc"));
    assert_false(dt_ncclfiles_is_name("xnccl-aZ09bc"));
    assert_false(dt_ncclfiles_is_name("aZ09bc"));
    assert_false(dt_ncclfiles_is_name(""));
}

static void files_that_nobody_has_are_removed(void **state)
{
    (void)state;
    leave("nccl-AAAAAA", 1);
    leave("nccl-BBBBBB", 8);
    leave("nccl-CCCCCC", 0); /* its last rank died before it removed the name */
    assert_int_equal(remove_files(), 3);
    assert_int_equal(remove_files(), 0);
}

static void files_of_others_stay(void **state)
{
    int fd;

    (void)state;
    leave("nccl-report.txt", 1);
    stays("nccl-report.txt");
    leave("nccl-report", 0x0a646e65); /* text */
    stays("nccl-report");
    leave("nccl-report", 1);
    assert_int_equal(chmod("nccl-report", 0644), 0);
    stays("nccl-report");
    fd = open("nccl-AAAAAA", O_RDWR | O_CREAT | O_EXCL, 0600); /* may have been made just now */
    close(fd);
    stays("nccl-AAAAAA");
    assert_int_equal(symlink("elsewhere", "nccl-AAAAAA"), 0);
    leave("elsewhere", 1);
    stays("nccl-AAAAAA");
    stays("elsewhere");
    assert_int_equal(mkfifo("nccl-AAAAAA", 0600), 0);
    stays("nccl-AAAAAA");
}

static void files_of_other_users_stay(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("SKIP: needs root\n");
        skip();
    }
    leave("nccl-AAAAAA", 1);
    assert_int_equal(chown("nccl-AAAAAA", 64321, 64321), 0);
    stays("nccl-AAAAAA");
}

/* Lets go of what it has when the parent closes its end. */
static __attribute__((noreturn)) void hold(int end, int fd, bool open, bool map)
{
    char byte = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0); /* other processes of this user cannot see in /proc what it has */
    if (map && mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
        _exit(1);
    if (!open)
        close(fd);
    _exit(write(end, &byte, 1) == 1 && read(end, &byte, 1) == 0 ? 0 : 1);
}

static void stays_while_held(bool open, bool map)
{
    int fd = make("nccl-AAAAAA", 1), ends[2], status;
    char byte;
    pid_t pid;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pid = fork();
    if (pid == 0) {
        close(ends[0]);
        hold(ends[1], fd, open, map);
    }
    assert_true(pid > 0);
    close(ends[1]);
    close(fd);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(remove_files(), 0);
    assert_int_equal(access("nccl-AAAAAA", F_OK), 0);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(remove_files(), 1);
}

static void a_file_stays_while_a_process_has_it_open(void **state)
{
    (void)state;
    stays_while_held(true, false);
}

static void a_file_stays_while_a_process_has_it_mapped(void **state)
{
    (void)state;
    stays_while_held(false, true);
}

static void count_call(void *arg)
{
    ++*(int *)arg;
}

static void it_shows_signs_of_life(void **state)
{
    int calls = 0;

    (void)state;
    leave("nccl-AAAAAA", 1);
    leave("nccl-BBBBBB", 1);
    assert_int_equal(dt_ncclfiles_remove(dir, count_call, &calls), 2);
    assert_int_equal(calls, 2);
}

static void other_file_systems_are_left_alone(void **state)
{
    char other[] = "/tmp/dtrun-ncclfiles.XXXXXX";

    (void)state;
    if (is_tmpfs("/tmp")) {
        print_message("SKIP: /tmp is a tmpfs\n");
        skip();
    }
    assert_non_null(mkdtemp(other));
    assert_int_equal(chdir(other), 0);
    leave("nccl-AAAAAA", 1);
    assert_int_equal(dt_ncclfiles_remove(other, NULL, NULL), 0);
    assert_int_equal(unlink("nccl-AAAAAA"), 0);
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(rmdir(other), 0);
}

static void a_directory_that_does_not_exist_has_no_files(void **state)
{
    (void)state;
    assert_int_equal(dt_ncclfiles_remove("/nowhere", NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_those_of_nccl),
        cmocka_unit_test(files_that_nobody_has_are_removed),
        cmocka_unit_test(files_of_others_stay),
        cmocka_unit_test(files_of_other_users_stay),
        cmocka_unit_test(a_file_stays_while_a_process_has_it_open),
        cmocka_unit_test(a_file_stays_while_a_process_has_it_mapped),
        cmocka_unit_test(it_shows_signs_of_life),
        cmocka_unit_test(other_file_systems_are_left_alone),
        cmocka_unit_test(a_directory_that_does_not_exist_has_no_files),
    };

    if (!is_tmpfs("/dev/shm") || access("/dev/shm", W_OK) != 0) {
        puts("SKIP: /dev/shm is no tmpfs that this user may write");
        return 77;
    }
    return cmocka_run_group_tests(tests, enter_directory, remove_directory);
}
