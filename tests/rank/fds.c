/* Prints the descriptors, signals and session that a rank starts with. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    const char *agent = getenv("DTRUN_AGENT_FD"), *pmi = getenv("PMI_FD");
    struct dirent *e;

    printf("fds");
    for (int fd = 0; fd < 1024; fd++) {
        rewinddir(d);
        while ((e = readdir(d))) {
            if (e->d_name[0] == '.' || atoi(e->d_name) != fd || fd == dirfd(d))
                continue;
            if (agent && atoi(agent) == fd)
                printf(" agent");
            else if (pmi && atoi(pmi) == fd)
                printf(" pmi");
            else
                printf(" %d", fd);
        }
    }
    printf("\n");
    closedir(d);
}

static void print_signals(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];

    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "SigBlk:", 7) == 0 || strncmp(line, "SigIgn:", 7) == 0)
            printf("%.6s %s", line, line + 8);
    }
    if (f)
        fclose(f);
}

int main(void)
{
    print_fds();
    print_signals();
    printf("group %s, session %s, %s\n", getpgrp() == getpid() ? "own" : "foreign",
           getsid(0) == getsid(getppid()) ? "the agent's" : "another",
           open("/dev/tty", O_RDWR) < 0 && errno == ENXIO ? "no terminal" : "a terminal");
    return 0;
}
