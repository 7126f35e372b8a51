#include "runtime/gpu/nvidia/ncclapi.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/gpu/nvidia/ncclconf.h"
#include "runtime/wire/nccllib.h"

enum {
    OLDEST = 21800,        /* the oldest version of NCCL that can be used */
    OWNS_ITS_JOBS = 22700, /* the first whose nonblocking calls are safe */
    WHY = 2 * DT_NCCLCONF_TEXT,
};

static struct {
    pthread_once_t once;
    bool usable;
    char why[WHY];
    struct dt_ncclapi api;
} dti_nccl = { .once = PTHREAD_ONCE_INIT };

static bool open_file(void *library, const char *file)
{
    *(void **)library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    return *(void **)library != NULL;
}

/* NVIDIA's packages for Python are installed side by side:
 * .../nvidia/cuda_runtime/lib/libcudart.so.12 and .../nvidia/nccl/lib/libnccl.so.2.
 *
 * Only finds the file: a thread that opened it here would wait for one that is opening a library,
 * and that one for the lock that dl_iterate_phdr holds. */
static int find_beside(struct dl_phdr_info *info, size_t size, void *file)
{
    const char *at = info->dlpi_name ? strstr(info->dlpi_name, "/nvidia/") : NULL;

    (void)size;
    if (!at)
        return 0;
    snprintf(file, PATH_MAX, "%.*s/" DT_NCCLLIB_PIP, (int)(at - info->dlpi_name), info->dlpi_name);
    return access(file, R_OK) == 0;
}

/* Opens the library that the program has loaded, or one beside another NVIDIA package that it has
 * loaded. */
static bool open_own(void *library)
{
    char beside[PATH_MAX];

    *(void **)library = dlopen(DT_NCCLLIB_NAME, RTLD_NOW | RTLD_NOLOAD);
    return *(void **)library ||
           (dl_iterate_phdr(find_beside, beside) && open_file(library, beside));
}

static void *open_library(void)
{
    void *library = NULL;
    const struct dt_nccllib_search search = {
        .root = "", .own = open_own, .take = open_file, .arg = &library
    };

    dt_nccllib_find(&search);
    return library;
}

/* The name of a function that the library lacks, or NULL. */
static const char *find_functions(void *library)
{
    const char *lacks = NULL;

#define FIND(result, name, arguments)                                                              \
    *(void **)&dti_nccl.api.name = dlsym(library, #name);                                          \
    if (!dti_nccl.api.name)                                                                        \
        lacks = #name;
    DT_NCCL_NEWER_FUNCTIONS(FIND)
    lacks = NULL;
    DT_NCCL_FUNCTIONS(FIND)
#undef FIND
    return lacks;
}

/* With NCCL_COMM_ID several communicators would meet at one address. */
static bool has_fixed_id(const struct dt_ncclapi *api, char why[WHY])
{
    char value[DT_NCCLCONF_TEXT], where[DT_NCCLCONF_TEXT];

    if (!dt_ncclconf_find("NCCL_COMM_ID", api->version, value, where))
        return false;
    snprintf(why, WHY, "NCCL_COMM_ID is set (in %s), which fits only one communicator", where);
    return true;
}

/* Calls block by default, because NCCL starts a thread for each nonblocking call.
 * NCCL_COMM_BLOCKING overrides what dtrun asks NCCL for, so dtrun reads it as NCCL does. Before
 * 2.27, the thread that NCCL starts uses thread-local variables of the calling thread, which may
 * have ended. */
static bool choose_mode(struct dt_ncclapi *api, char why[WHY])
{
    char value[DT_NCCLCONF_TEXT], where[DT_NCCLCONF_TEXT];
    bool is_set = dt_ncclconf_find("NCCL_COMM_BLOCKING", api->version, value, where) && *value;
    long asked = is_set ? strtol(value, NULL, 0) : -1;

    api->blocks = asked != 0 || api->version < OWNS_ITS_JOBS;
    if (asked != 0 || !api->blocks)
        return true;
    snprintf(why, WHY,
             "NCCL_COMM_BLOCKING=0 (in %s) makes NCCL before 2.27 use memory of threads that have "
             "ended",
             where);
    return false;
}

/* A communicator that shares its parent's resources must not be used at the same time, and the
 * abort of one ends both. When calls do not block, only an abort of the parent ends a split that
 * hangs. */
static bool can_split(const struct dt_ncclapi *api)
{
    char value[DT_NCCLCONF_TEXT], where[DT_NCCLCONF_TEXT];

    return api->blocks &&
           !(dt_ncclconf_find("NCCL_COMM_SPLIT_SHARE_RESOURCES", api->version, value, where) &&
             strtol(value, NULL, 0) != 0);
}

static void load(void)
{
    const char *lacks;
    void *library;

    library = open_library();
    if (!library) {
        snprintf(dti_nccl.why, sizeof dti_nccl.why, "%s; DTRUN_NCCL names the file", dlerror());
        return;
    }
    lacks = find_functions(library);
    if (lacks || dti_nccl.api.ncclGetVersion(&dti_nccl.api.version) != ncclSuccess ||
        dti_nccl.api.version < OLDEST)
        snprintf(dti_nccl.why, sizeof dti_nccl.why, DT_NCCLLIB_NAME " is older than NCCL 2.18%s%s",
                 lacks ? ": it lacks " : "", lacks ? lacks : "");
    else
        dti_nccl.usable =
            !has_fixed_id(&dti_nccl.api, dti_nccl.why) && choose_mode(&dti_nccl.api, dti_nccl.why);
    dti_nccl.api.splits = dti_nccl.usable && can_split(&dti_nccl.api);
}

const struct dt_ncclapi *dt_ncclapi(const char **why)
{
    pthread_once(&dti_nccl.once, load);
    *why = dti_nccl.why;
    return dti_nccl.usable ? &dti_nccl.api : NULL;
}
