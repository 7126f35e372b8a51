#include "tests/standin/nccl/inject.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/standin/nccl/errors.h"

enum { MAX_FAULTS = 16 };

static _Atomic int dti_calls[MAX_FAULTS]; /* for each entry of the list */

static bool matches(const char *entry, int index, const char *fault, int rank)
{
    char name[32] = "";
    int of = -1, number = 1;

    if (sscanf(entry, "%31[^:]:%d:%d", name, &of, &number) < 2 || of != rank ||
        strcmp(name, fault) != 0)
        return false;
    return atomic_fetch_add(&dti_calls[index], 1) + 1 == number || number == 0;
}

static bool is_asked_for(const char *fault, int rank)
{
    const char *setting = getenv("STANDIN_NCCL_FAULTS");
    char *list = setting ? strdup(setting) : NULL, *rest = list, *entry;
    bool found = false;

    for (int i = 0; i < MAX_FAULTS && (entry = strsep(&rest, ",")); i++)
        found |= matches(entry, i, fault, rank);
    free(list);
    return found;
}

static _Noreturn void hang_forever(void)
{
    for (;;)
        pause();
}

ncclResult_t standin_inject_id(void)
{
    return is_asked_for("id-error", 0) ? standin_warn(ncclSystemError, "id-error was asked for")
                                       : ncclSuccess;
}

ncclResult_t standin_inject_init(struct ncclComm *comm)
{
    if (is_asked_for("init-hang", comm->rank)) {
        standin_hang(comm);
        return ncclInternalError;
    }
    if (is_asked_for("init-error", comm->rank))
        return standin_warn(ncclSystemError, "init-error was asked for");
    return ncclSuccess;
}

static void tell_of_hang(void)
{
    const char *name = getenv("STANDIN_NCCL_HANGS");
    FILE *file = name ? fopen(name, "a") : NULL;

    if (!file)
        return;
    fputc('.', file);
    fclose(file);
}

static void tell_and_hang(struct ncclComm *comm)
{
    tell_of_hang();
    standin_hang(comm);
}

void standin_inject_launch(struct ncclComm *comm)
{
    if (is_asked_for("launch-hang", comm->rank))
        tell_and_hang(comm);
}

void standin_inject_submit(struct ncclComm *comm)
{
    if (is_asked_for("queue-hang", comm->rank)) {
        tell_of_hang();
        hang_forever();
    }
    if (!is_asked_for("submit-hang", comm->rank))
        return;
    tell_and_hang(comm);
    /* The driver's part, during which an abort that does not wait for it would return. */
    usleep(20 * 1000);
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
        if (is_asked_for(faults[i].name, comm->rank)) {
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
    if (is_asked_for("abort-hang", comm->rank))
        hang_forever();
}

void standin_inject_destroy(const struct ncclComm *comm)
{
    if (is_asked_for("destroy-hang", comm->rank))
        hang_forever();
}
