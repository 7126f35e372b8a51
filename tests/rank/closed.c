/* A rank that has closed its standard descriptors. No call leaves another file with their numbers.
 * Exits with 0, or with the line of the first call that does, or that fails. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/dtrun.h"

static void check(int line)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            exit(line);
}

static void expect(dt_result_t result, int line)
{
    if (result != DT_OK)
        exit(line);
    check(line);
}

#define OK(call) expect(call, __LINE__)

int main(void)
{
    static char state[1 << 20];
    dt_request_t request;
    dt_comm_t *comm;
    int64_t step;

    for (int fd = 0; fd < 3; fd++)
        close(fd);
    OK(dt_init());
    OK(dt_comm_split(DT_WORLD, 0, 0, &comm));
    OK(dt_checkpoint_register("state", state, sizeof state));
    OK(dt_checkpoint_restore(&step));
    OK(dt_checkpoint_save(1));
    OK(dt_checkpoint_isave(2, &request));
    OK(dt_wait(&request));
    OK(dt_recorder_dump("calls.txt"));
    OK(dt_comm_free(comm));
    OK(dt_finalize());
    return 0;
}
