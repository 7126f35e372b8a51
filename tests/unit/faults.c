#include "tests/unit/faults.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/comm/comm.h"
#include "runtime/kernels/reduce.h"
#include "runtime/shm/pipe.h"
#include "runtime/shm/rounds.h"
#include "runtime/shm/segment.h"
#include "runtime/shm/stream.h"

const struct fault faults[] = {
    { "malloc", ENOMEM, false },
    { "calloc", ENOMEM, false },
    { "realloc", ENOMEM, false },
    { "strdup", ENOMEM, false },
    { "mmap", ENOMEM, false },
    { "socket", EMFILE, false },
    { "accept4", EMFILE, false },
    { "accept4", ECONNABORTED, true },
    { "accept4", EINTR, true },
    { "bind", EADDRINUSE, false },
    { "listen", EADDRINUSE, false },
    { "connect", ECONNREFUSED, true },
    { "connect", EADDRNOTAVAIL, true },
    { "getsockname", ENOBUFS, false },
    { "getsockopt", ENOBUFS, false },
    { "setsockopt", ENOBUFS, false },
    { "eventfd", EMFILE, false },
    { "poll", EINTR, true },
    { "poll", ENOMEM, true },
    { "recv", 0, true },
    { "recv", EINTR, true },
    { "recv", ECONNRESET, false },
    { "recvmsg", 0, true },
    { "recvmsg", EINTR, true },
    { "recvmsg", ECONNRESET, false },
    { "recvmsg", EMFILE, false },
    { "send", 0, true },
    { "send", EINTR, true },
    { "send", ECONNRESET, false },
    { "sendmsg", 0, true },
    { "sendmsg", EINTR, true },
    { "sendmsg", EPIPE, false },
    { "sendmsg", ENOBUFS, false },
    { "read", 0, true },
    { "read", EINTR, true },
    { "read", EIO, false },
    { "write", 0, true },
    { "write", EINTR, true },
    { "write", ENOSPC, false },
    { "open", EMFILE, false },
    { "openat", EMFILE, false },
    { "openat", ENOSPC, false },
    { "fcntl", ENOLCK, false },
    { "fstat", ENOMEM, false },
    { "fstatat", EIO, false },
    { "close", EINTR, true },
    { "fsync", EIO, false },
    { "renameat", EIO, false },
    { "mkdir", ENOSPC, false },
    { "mkdirat", ENOSPC, false },
    { "unlinkat", EIO, false },
    { "fdopendir", ENOMEM, false },
    { "readdir", EIO, false },
    { "ftruncate", ENOSPC, false },
    { "memfd_create", EMFILE, false },
    { "sched_getaffinity", EPERM, true },
    { "pthread_create", EAGAIN, false },
    { "pthread_atfork", ENOMEM, false },
    { "process_vm_readv", 0, true },
    { "process_vm_readv", EPERM, true },
    { "process_vm_readv", EFAULT, true },
    { "process_vm_writev", 0, true },
    { "process_vm_writev", ESRCH, true },
    { "syscall", EINTR, true }, /* futex(2) to wait */
};
const size_t faults_n = sizeof faults / sizeof *faults;

static const struct fault *armed;
static unsigned trigger_at;
static void (*at_passage)(void);
static atomic_bool watching, triggered;
static atomic_uint passed;

void faults_arm(const struct fault *f, unsigned k)
{
    armed = f;
    trigger_at = k;
    triggered = false;
    passed = 0;
    watching = true;
}

void faults_arm_passage(unsigned k, void (*there)(void))
{
    armed = NULL;
    trigger_at = k;
    at_passage = there;
    passed = 0;
    watching = true;
}

static void die(void)
{
    raise(SIGKILL);
}

void faults_arm_death(unsigned k)
{
    faults_arm_passage(k, die);
}

unsigned faults_disarm(void)
{
    watching = false;
    return passed;
}

bool faults_triggered(void)
{
    return triggered;
}

static void pass(void)
{
    if (atomic_fetch_add(&passed, 1) + 1 == trigger_at)
        at_passage();
}

/* Whether this call of a function is the one that fails. */
static bool is_due(const char *call)
{
    if (!watching)
        return false;
    if (!armed) {
        pass();
        return false;
    }
    if (strcmp(call, armed->call) != 0 || atomic_fetch_add(&passed, 1) + 1 != trigger_at)
        return false;
    triggered = true;
    errno = armed->error;
    return true;
}

/* ---- functions that fail or succeed completely ---- */

#define WRAP(type, name, parameters, arguments, failed)                                            \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return is_due(#name) ? (failed) : __real_##name arguments;                                 \
    }

WRAP(void *, malloc, (size_t n), (n), NULL)
WRAP(void *, calloc, (size_t n, size_t size), (n, size), NULL)
WRAP(void *, realloc, (void *p, size_t n), (p, n), NULL)
WRAP(char *, strdup, (const char *text), (text), NULL)
WRAP(void *, mmap, (void *at, size_t n, int prot, int flags, int fd, off_t offset),
     (at, n, prot, flags, fd, offset), MAP_FAILED)
WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1)
WRAP(int, accept4, (int fd, struct sockaddr *a, socklen_t *n, int flags), (fd, a, n, flags), -1)
WRAP(int, bind, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), -1)
WRAP(int, listen, (int fd, int n), (fd, n), -1)
WRAP(int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), -1)
WRAP(int, getsockname, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n), -1)
WRAP(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *n),
     (fd, level, name, value, n), -1)
WRAP(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t n),
     (fd, level, name, value, n), -1)
WRAP(int, eventfd, (unsigned count, int flags), (count, flags), -1)
WRAP(int, poll, (struct pollfd * p, nfds_t n, int ms), (p, n, ms), -1)
WRAP(int, fstat, (int fd, struct stat *st), (fd, st), -1)
WRAP(int, fstatat, (int dir, const char *path, struct stat *st, int flags), (dir, path, st, flags),
     -1)
WRAP(int, fsync, (int fd), (fd), -1)
WRAP(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), -1)
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), -1)
WRAP(int, mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode), -1)
WRAP(int, unlinkat, (int dir, const char *path, int flags), (dir, path, flags), -1)
WRAP(DIR *, fdopendir, (int fd), (fd), NULL)
WRAP(struct dirent *, readdir, (DIR * dir), (dir), NULL)
WRAP(int, ftruncate, (int fd, off_t n), (fd, n), -1)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1)
WRAP(int, sched_getaffinity, (pid_t pid, size_t n, cpu_set_t *set), (pid, n, set), -1)
WRAP(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg),
     (thread, attr, run, arg), armed->error)
WRAP(int, pthread_atfork, (void (*before)(void), void (*parent)(void), void (*child)(void)),
     (before, parent, child), armed->error)

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    int r = __real_close(fd);

    return is_due("close") ? -1 : r;
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...)
{
    va_list list;
    void *arg;

    va_start(list, command);
    arg = va_arg(list, void *);
    va_end(list);
    return is_due("fcntl") ? -1 : __real_fcntl(fd, command, arg);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    return is_due("open")
               ? -1
               : __real_open(path, flags); /* the library does not create files this way */
}

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...)
{
    unsigned mode = 0;
    va_list list;

    if (flags & O_CREAT) {
        va_start(list, flags);
        mode = va_arg(list, unsigned);
        va_end(list);
    }
    return is_due("openat") ? -1 : __real_openat(dir, path, flags, mode);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long arg[6];
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        arg[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_futex && (arg[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && is_due("syscall"))
        return -1;
    return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

/* ---- functions that may do less than they were asked ---- */

/* Returns how much the call may ask for. -1: it fails. */
static ssize_t allowed(const char *call, size_t n)
{
    if (n == 0 || !is_due(call))
        return (ssize_t)n;
    return armed->error ? -1 : 1;
}

#define WRAP_TRANSFER(name, parameters, type, n, arguments)                                        \
    ssize_t __real_##name parameters;                                                              \
    ssize_t __wrap_##name parameters;                                                              \
    ssize_t __wrap_##name parameters                                                               \
    {                                                                                              \
        ssize_t most = allowed(#name, n);                                                          \
                                                                                                   \
        n = (size_t)most;                                                                          \
        return most < 0 ? -1 : __real_##name arguments;                                            \
    }

WRAP_TRANSFER(read, (int fd, void *p, size_t n), void, n, (fd, p, n))
WRAP_TRANSFER(write, (int fd, const void *p, size_t n), const void, n, (fd, p, n))
WRAP_TRANSFER(recv, (int fd, void *p, size_t n, int flags), void, n, (fd, p, n, flags))
WRAP_TRANSFER(send, (int fd, const void *p, size_t n, int flags), const void, n, (fd, p, n, flags))

#define WRAP_CROSS(name)                                                                           \
    ssize_t __real_##name(pid_t pid, const struct iovec *here, unsigned long n,                    \
                          const struct iovec *there, unsigned long m, unsigned long flags);        \
    ssize_t __wrap_##name(pid_t pid, const struct iovec *here, unsigned long n,                    \
                          const struct iovec *there, unsigned long m, unsigned long flags);        \
    ssize_t __wrap_##name(pid_t pid, const struct iovec *here, unsigned long n,                    \
                          const struct iovec *there, unsigned long m, unsigned long flags)         \
    {                                                                                              \
        ssize_t most = allowed(#name, here->iov_len);                                              \
        struct iovec piece = { here->iov_base, (size_t)most };                                     \
                                                                                                   \
        return most < 0 ? -1 : __real_##name(pid, &piece, n, there, m, flags);                     \
    }

WRAP_CROSS(process_vm_readv)
WRAP_CROSS(process_vm_writev)

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *n);

static bool is_stream(int fd)
{
    int type = 0;
    socklen_t n = sizeof type;

    return __real_getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM;
}

/* Only a stream can transfer less than was asked. */
static bool can_be_short(int fd)
{
    return !watching || !armed || armed->error || is_stream(fd);
}

static struct msghdr first_byte(const struct msghdr *msg, struct iovec *piece)
{
    struct msghdr part = *msg;

    for (size_t i = 0; i < msg->msg_iovlen; i++) {
        if (msg->msg_iov[i].iov_len == 0)
            continue;
        *piece = (struct iovec){ msg->msg_iov[i].iov_base, 1 };
        part.msg_iov = piece;
        part.msg_iovlen = 1;
        break;
    }
    return part;
}

ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    struct iovec piece;
    struct msghdr part;

    if (!can_be_short(fd) || !is_due("sendmsg"))
        return __real_sendmsg(fd, msg, flags);
    if (armed->error)
        return -1;
    part = first_byte(msg, &piece);
    return __real_sendmsg(fd, &part, flags);
}

ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);

/* Does what the kernel does when the process may have no more descriptors. */
static ssize_t lose_descriptor(int fd, struct msghdr *msg, int flags)
{
    ssize_t n = __real_recvmsg(fd, msg, flags);
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(msg) : NULL;

    for (; c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        __real_close(*(int *)(void *)CMSG_DATA(c));
        c->cmsg_type = -1;
        msg->msg_flags |= MSG_CTRUNC;
    }
    return n;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
    struct iovec piece;
    struct msghdr part;
    ssize_t n;

    if (!can_be_short(fd) || !is_due("recvmsg"))
        return __real_recvmsg(fd, msg, flags);
    if (armed->error == EMFILE)
        return lose_descriptor(fd, msg, flags);
    if (armed->error)
        return -1;
    part = first_byte(msg, &piece);
    n = __real_recvmsg(fd, &part, flags);
    msg->msg_controllen = part.msg_controllen;
    msg->msg_flags = part.msg_flags;
    return n;
}

/* ---- entries of the library's own functions ---- */

#define WRAP_ENTRY(type, name, parameters, arguments)                                              \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        if (watching && !armed)                                                                    \
            pass();                                                                                \
        return __real_##name arguments;                                                            \
    }

WRAP_ENTRY(void, dt_comm_note, (struct dt_comm * c, const struct dt_call *call), (c, call))
WRAP_ENTRY(dt_result_t, dt_round_begin, (struct dt_shm * s, size_t bytes), (s, bytes))
WRAP_ENTRY(void, dt_round_publish, (struct dt_shm * s, enum dt_phase phase), (s, phase))
WRAP_ENTRY(dt_result_t, dt_round_await, (struct dt_shm * s, uint32_t peer, enum dt_phase phase),
           (s, peer, phase))
WRAP_ENTRY(void, dt_fold, (const struct dt_fold *f, dt_dtype_t dtype, dt_op_t op), (f, dtype, op))
WRAP_ENTRY(void, dt_stream_past_caches, (void *to, const void *from, size_t bytes),
           (to, from, bytes))
WRAP_ENTRY(ssize_t, dt_pipe_read,
           (const struct dt_shm *s, uint32_t peer, const struct iovec *parts, int n),
           (s, peer, parts, n))
WRAP_ENTRY(uint8_t *, dt_segment_find, (struct dt_place place), (place))
WRAP_ENTRY(void, dt_segment_release, (void), ())
