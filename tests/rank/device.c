/* A rank whose "device memory" comes from tests/fake/libcuda.so.1 (the first argument). The second
 * one says what it does:
 *
 * - sum: adds up on the device and on the host, broadcasts, meets; prints the sums
 * - mixed: gives host memory in, device memory out
 * - die: rank 1 dies when all have met on the device; the others reduce there */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/dtrun.h"

static void need(dt_result_t result)
{
    if (result == DT_OK)
        return;
    printf("%d: %s\n", (int)result, dt_last_error());
    exit(result == DT_ERR_PEER ? 3 : 1);
}

static float *device_memory(const char *library)
{
    void *lib = dlopen(library, RTLD_NOW);
    void *(*memory)(void);

    if (!lib) {
        printf("%s\n", dlerror());
        exit(1);
    }
    *(void **)&memory = dlsym(lib, "fake_device_memory");
    return memory();
}

int main(int argc, char **argv)
{
    float *device, host;

    if (argc != 3)
        return 2;
    if (strcmp(argv[2], "die") == 0)
        signal(SIGTERM, SIG_IGN); /* to have time to say what the call returned */
    device = device_memory(argv[1]);
    need(dt_init());
    host = device[0] = (float)dt_rank() + 1;
    if (strcmp(argv[2], "mixed") == 0)
        need(dt_all_reduce(DT_WORLD, &host, device, 1, DT_F32, DT_SUM));
    need(dt_all_reduce(DT_WORLD, device, device + 1, 1, DT_F32, DT_SUM));
    if (strcmp(argv[2], "die") == 0) {
        if (dt_rank() == 1)
            raise(SIGKILL);
        need(dt_all_reduce(DT_WORLD, device, device + 1, 1, DT_F32, DT_SUM));
    }
    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &host, 1, DT_F32, DT_SUM));
    need(dt_broadcast(DT_WORLD, device, 1, DT_F32, dt_size() - 1));
    need(dt_barrier(DT_WORLD));
    printf("device %g host %g from the last %g\n", device[1], host, device[0]);
    need(dt_finalize());
    return 0;
}
