/* For LD_PRELOAD: while the process opens NCCL from pip's packages, another thread is opening a
 * library. If that thread cannot go on, the process exits with status 99. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 10 };

static void *open_as_the_linker_does(const char *file, int flags)
{
    void *(*open)(const char *, int);

    *(void **)&open = dlsym(RTLD_NEXT, "dlopen");
    return open(file, flags);
}

static void *open_another(void *arg)
{
    open_as_the_linker_does("libresolv.so.2", RTLD_NOW);
    return arg;
}

static void await_another(void)
{
    pthread_t thread;
    struct timespec until;

    if (pthread_create(&thread, NULL, open_another, NULL))
        _exit(98);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    if (pthread_timedjoin_np(thread, NULL, &until))
        _exit(99);
}

__attribute__((visibility("default"))) void *dlopen(const char *file, int flags)
{
    if (file && strstr(file, "/nvidia/nccl/lib/"))
        await_another();
    return open_as_the_linker_does(file, flags);
}
