/* A rank that loads libdtrun at run time. Rank 0 starts a barrier and closes the library while one
 * of its threads still uses it. Then rank 1 joins the barrier, after a signal through the FIFO.
 * Arguments: LIBRARY FIFO. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "runtime/dtrun.h"

static struct {
    void *handle;
    dt_result_t (*init)(void);
    int (*rank)(void);
    dt_result_t (*ibarrier)(dt_comm_t *comm, dt_request_t *request);
    dt_result_t (*wait)(dt_request_t *request);
    dt_result_t (*finalize)(void);
} lib;

static int load(const char *path)
{
    lib.handle = dlopen(path, RTLD_NOW);
    if (!lib.handle) {
        fprintf(stderr, "%s\n", dlerror());
        return -1;
    }
    *(void **)&lib.init = dlsym(lib.handle, "dt_init");
    *(void **)&lib.rank = dlsym(lib.handle, "dt_rank");
    *(void **)&lib.ibarrier = dlsym(lib.handle, "dt_ibarrier");
    *(void **)&lib.wait = dlsym(lib.handle, "dt_wait");
    *(void **)&lib.finalize = dlsym(lib.handle, "dt_finalize");
    return 0;
}

/* Opening a FIFO blocks until the other side opens it, too. */
static int meet(const char *fifo, int flags)
{
    int fd = open(fifo, flags | O_CLOEXEC);

    return fd < 0 ? -1 : close(fd);
}

int main(int argc, char **argv)
{
    dt_request_t request;

    if (argc < 3 || load(argv[1]) < 0 || lib.init() != DT_OK)
        return 2;
    if (lib.rank() == 1 && meet(argv[2], O_RDONLY) < 0)
        return 3;
    if (lib.ibarrier(DT_WORLD, &request) != DT_OK)
        return 4;
    if (lib.rank() == 0 &&
        (dlclose(lib.handle) != 0 || meet(argv[2], O_WRONLY) < 0 || load(argv[1]) < 0))
        return 5;
    if (lib.wait(&request) != DT_OK || lib.finalize() != DT_OK)
        return 6;
    printf("rank %d is done\n", lib.rank());
    return 0;
}
