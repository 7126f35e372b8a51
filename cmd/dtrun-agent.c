/* dtrun-agent: dtrun starts it on each host of a job; see dtrun-agent(8) and PROTOCOL.md. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/agent/agent.h"
#include "launcher/agent/lease.h"
#include "launcher/base/agentargs.h"
#include "launcher/base/error.h"
#include "launcher/base/openfiles.h"
#include "launcher/base/process.h"

static int refuse(void)
{
    fprintf(stderr, "dtrun-agent is started by dtrun on the hosts of a job, not by hand; "
                    "see dtrun-agent(8)\n");
    return DT_EXIT_USAGE;
}

static bool alone;

/* Returns false for an argument that dtrun never passes. */
static bool take_arguments(char **argv)
{
    static const char files[] = DT_AGENT_OPEN_FILES;

    while (*++argv) {
        if (strcmp(*argv, DT_AGENT_ALONE) == 0)
            alone = true;
        else if (strncmp(*argv, files, sizeof files - 1) == 0)
            dt_openfiles_lower(strtoull(*argv + sizeof files - 1, NULL, 10));
        else
            return false;
    }
    return true;
}

static int work(struct dt_keeper *keeper, int keeper_fd)
{
    return dt_agent_work(keeper, keeper_fd, alone);
}

int main(int argc, char **argv)
{
    dt_process_init();
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("dtrun-agent %s\n", PACKAGE_VERSION);
        return 0;
    }
    if (!take_arguments(argv) || isatty(STDIN_FILENO))
        return refuse();
    return dt_keeper_run(DT_LEASE_DEFAULT_MS, work);
}
