#include "cmd/buildinfo.h"

#include <cjson/cJSON.h>
#include <libssh2.h>
#include <sodium/version.h>
#include <stddef.h>
#include <stdio.h>
#include <uv/version.h>

#ifdef HAVE_NCCL
#include <cuda_runtime_api.h>
#include <nccl.h>
#endif

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
#ifdef HAVE_NCCL
    { "NCCL", JOIN3(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), "collectives on GPU memory" },
    { "CUDA", NUMBER(CUDART_VERSION), "collectives on GPU memory" },
#else
    { "NCCL", "no", "collectives on GPU memory" },
    { "CUDA", "no", "collectives on GPU memory" },
#endif
    { "PMI-1", "yes", "programs built with MPICH or its kin" },
#ifdef HAVE_PMIX
    { "PMIx", "yes", "programs built with Open MPI" },
#else
    { "PMIx", "no", "programs built with Open MPI" },
#endif
};

void dt_buildinfo_print(void)
{
    puts("dtrun " PACKAGE_VERSION);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        printf("  %-10s %-10s %s\n", parts[i].name, parts[i].version, parts[i].use);
}
