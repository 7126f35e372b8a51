/* A rank that never forks and prints which signals it gets: "RANK TERM", and on standard error the
 * sender: "RANK: TERM from slurmstepd (pid 12, code 0)". After SIGTERM it waits a while for a
 * second one, and exits with $CODE, or 0. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { AFTER_TERM_MS = 2000 }; /* enough for dtrun to hear of the signal on a crowded machine */

static const char *rank;

static void read_name(char *name, size_t size, pid_t pid)
{
    char path[64];
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    snprintf(name, size, "a process that has ended");
    f = pid > 0 ? fopen(path, "re") : NULL;
    if (!f)
        return;
    if (fgets(name, (int)size, f))
        name[strcspn(name, "\n")] = '\0';
    fclose(f);
}

static void print_signal(const siginfo_t *info)
{
    const char *signal = info->si_signo == SIGTERM ? "TERM" : "USR1";
    char sender[64];

    read_name(sender, sizeof sender, info->si_pid);
    fprintf(stderr, "%s: %s from %s (pid %d, code %d)\n", rank, signal, sender, (int)info->si_pid,
            info->si_code);
    printf("%s %s\n", rank, signal);
    fflush(stdout);
}

/* Signals that arrive while one is being printed wait in the kernel, which keeps one of each
 * kind. */
int main(void)
{
    const struct timespec rest = { AFTER_TERM_MS / 1000, AFTER_TERM_MS % 1000 * 1000000 };
    const char *code = getenv("CODE");
    siginfo_t info = { 0 };
    sigset_t set;

    rank = getenv("RANK");
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    printf("%s up\n", rank);
    fflush(stdout);
    do {
        if (sigwaitinfo(&set, &info) > 0)
            print_signal(&info);
    } while (info.si_signo != SIGTERM);
    while (sigtimedwait(&set, &info, &rest) > 0 || errno == EINTR)
        print_signal(&info);
    return code ? atoi(code) : 0;
}
