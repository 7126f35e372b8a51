/* A rank that starts another program after dt_init. Arguments: "child PROGRAM [ARG...]" runs the
 * program and waits for it, "exec PROGRAM [ARG...]" replaces the rank by the program. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/dtrun.h"

static int run(char **argv)
{
    int status = 1;
    pid_t pid = fork();

    if (pid == 0) {
        execv(argv[0], argv);
        _exit(127);
    }
    if (pid > 0)
        waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    if (argc < 3 || dt_init() != DT_OK)
        return 2;
    if (strcmp(argv[1], "exec") == 0) {
        execv(argv[2], argv + 2);
        return 127;
    }
    printf("the child of process %d exited with %d\n", (int)getpid(), run(argv + 2));
    return dt_finalize() == DT_OK ? 0 : 1;
}
