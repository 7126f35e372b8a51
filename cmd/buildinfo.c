#include "cmd/buildinfo.h"

#include <cjson/cJSON.h>
#include <dlfcn.h>
#include <libssh2.h>
#include <sodium/version.h>
#include <stddef.h>
#include <stdio.h>
#include <uv/version.h>

#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/nvidia/ncclapi.h"

#define TEXT(number)   #number
#define NUMBER(macro)  TEXT(macro)
#define JOIN3(a, b, c) NUMBER(a) "." NUMBER(b) "." NUMBER(c)

struct part {
    const char *name;
    const char *version;
    const char *use;
};

static const struct part parts[] = {
    { "libssh2", LIBSSH2_VERSION, "connections to hosts" },
    { "libuv", JOIN3(UV_VERSION_MAJOR, UV_VERSION_MINOR, UV_VERSION_PATCH), "event loops" },
    { "cJSON", JOIN3(CJSON_VERSION_MAJOR, CJSON_VERSION_MINOR, CJSON_VERSION_PATCH),
      "--json and --report" },
    { "libsodium", SODIUM_VERSION_STRING, "authentication between hosts" },
    { "PMI-1", "yes", "programs built with MPICH or a compatible library" },
#ifdef HAVE_PMIX
    { "PMIx", "yes", "programs built with Open MPI" },
#else
    { "PMIx", "no", "programs built with Open MPI" },
#endif
};

static void print(const char *name, const char *version, const char *use)
{
    printf("  %-10s %-10s %s\n", name, version, use);
}

/* Prints what libdtrun would find here, now, in a program without libraries of its own. */
static void print_found(void)
{
    static const char use[] = "collectives on GPU memory, found at run time";
    char nccl_version[32] = "no", cuda_version[32] = "no";
    const char *why;
    const struct dt_ncclapi *nccl = dt_ncclapi(&why);
    const struct dt_cuda *cuda = dlopen("libcuda.so.1", RTLD_NOW) ? dt_cuda() : NULL;
    int version;

    if (nccl)
        snprintf(nccl_version, sizeof nccl_version, "%d.%d.%d", nccl->version / 10000,
                 nccl->version / 100 % 100, nccl->version % 100);
    if (cuda && !cuda->lacks && cuda->cuDriverGetVersion(&version) == CUDA_SUCCESS)
        snprintf(cuda_version, sizeof cuda_version, "%d.%d", version / 1000, version % 1000 / 10);
    print("NCCL", nccl_version, use);
    print("CUDA", cuda_version, use);
}

void dt_buildinfo_print(void)
{
    puts("dtrun " PACKAGE_VERSION);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        print(parts[i].name, parts[i].version, parts[i].use);
    print_found();
}
