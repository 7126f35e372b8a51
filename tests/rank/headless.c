/* headless FILE: locks FILE and leaves a process behind that holds the lock. The process's main
 * thread has ended, so it is listed as a zombie, but another of its threads still runs. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

static void *run_on(void *arg)
{
    (void)arg;
    alarm(60); /* in case no test ends it */
    for (;;)
        pause();
    return NULL;
}

int main(int argc, char **argv)
{
    int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
    pthread_t thread;

    if (fd < 0 || flock(fd, LOCK_EX) < 0) {
        perror("headless");
        return 1;
    }
    if (fork() != 0)
        return 0;
    setsid();
    if (pthread_create(&thread, NULL, run_on, NULL) != 0)
        return 1;
    pthread_exit(NULL); /* ends this thread only */
    return 0;
}
