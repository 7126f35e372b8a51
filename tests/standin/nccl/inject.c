#include "tests/standin/nccl/inject.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/standin/nccl/errors.h"
#include "tests/standin/nccl/faults.h"

static void tell_and_hang(struct ncclComm *comm)
{
    standin_tell_of_hang();
    standin_hang(comm);
}

ncclResult_t standin_inject_id(void)
{
    return standin_is_asked_for("id-error", 0)
               ? standin_warn(ncclSystemError, "id-error was asked for")
               : ncclSuccess;
}

ncclResult_t standin_inject_init(struct ncclComm *comm)
{
    if (standin_is_asked_for("init-hang", comm->rank)) {
        tell_and_hang(comm);
        return ncclInternalError;
    }
    if (standin_is_asked_for("init-error", comm->rank))
        return standin_warn(ncclSystemError, "init-error was asked for");
    return ncclSuccess;
}

void standin_inject_launch(struct ncclComm *comm)
{
    if (standin_is_asked_for("launch-hang", comm->rank))
        tell_and_hang(comm);
}

ncclResult_t standin_inject_submit(struct ncclComm *comm)
{
    if (standin_is_asked_for("submit-error", comm->rank))
        return standin_warn(ncclSystemError, "submit-error was asked for");
    if (standin_is_asked_for("queue-hang", comm->rank))
        standin_hang_forever();
    if (!standin_is_asked_for("submit-hang", comm->rank))
        return ncclSuccess;
    tell_and_hang(comm);
    /* The driver's part, during which an abort that does not wait for it would return. */
    usleep(20 * 1000);
    return ncclSuccess;
}

bool standin_inject_kernel(struct ncclComm *comm)
{
    static const struct {
        const char *name;
        ncclResult_t error;
    } faults[] = { { "kernel-hang", ncclSuccess },
                   { "remote-error", ncclRemoteError },
                   { "system-error", ncclSystemError } };

    for (int i = 0; i < 3; i++)
        if (standin_is_asked_for(faults[i].name, comm->rank)) {
            standin_set_async(comm, faults[i].error);
            tell_and_hang(comm);
            return false;
        }
    return true;
}

void standin_inject_async(struct ncclComm *comm)
{
    const char *file = getenv("STANDIN_NCCL_BROKEN");

    if (file && access(file, F_OK) == 0)
        standin_set_async(comm, ncclSystemError);
}

void standin_inject_abort(const struct ncclComm *comm)
{
    if (standin_is_asked_for("abort-hang", comm->rank))
        standin_hang_forever();
}

void standin_inject_destroy(const struct ncclComm *comm)
{
    if (standin_is_asked_for("destroy-hang", comm->rank))
        standin_hang_forever();
}
