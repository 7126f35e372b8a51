/* Makes the system refuse calls of a thread and of the threads that it starts later. */
#ifndef TESTS_UNIT_FORBID_H
#define TESTS_UNIT_FORBID_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>

/* From now on this system call fails. */
static inline bool forbid(long call, unsigned error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static inline bool choose_stacks(size_t bytes)
{
    pthread_attr_t attr;

    return pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, bytes) == 0 &&
           pthread_setattr_default_np(&attr) == 0;
}

/* From now on no thread of this process has memory for another thread. */
static inline bool forbid_threads(void)
{
    return choose_stacks((size_t)1 << 46);
}

/* Ends that. */
static inline bool allow_threads(void)
{
    return choose_stacks((size_t)1 << 20);
}

#endif
