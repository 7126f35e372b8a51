/* dtrun-agent: started by dtrun on each host of a job; see dtrun-agent(8) and PROTOCOL.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/agent/agent.h"
#include "launcher/agent/lease.h"
#include "launcher/base/error.h"
#include "launcher/base/openfiles.h"
#include "launcher/base/process.h"

static int refuse(void)
{
    fprintf(stderr, "dtrun-agent is started by dtrun on the hosts of a job, not by hand; "
                    "see dtrun-agent(8)\n");
    return DT_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    dt_process_init();
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("dtrun-agent %s\n", PACKAGE_VERSION);
        return 0;
    }
    if (argc == 2 && strncmp(argv[1], DT_AGENT_OPEN_FILES, strlen(DT_AGENT_OPEN_FILES)) == 0)
        dt_openfiles_set(strtoull(argv[1] + strlen(DT_AGENT_OPEN_FILES), NULL, 10));
    else if (argc != 1)
        return refuse();
    if (isatty(STDIN_FILENO))
        return refuse();
    return dt_keeper_run(DT_LEASE_DEFAULT_MS, dt_agent_work);
}
