#include "runtime/device.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From cuda.h, which is not needed to build this: the driver's ABI does not change. */
#define CU_POINTER_ATTRIBUTE_MEMORY_TYPE 2
#define CU_POINTER_ATTRIBUTE_IS_MANAGED  8
#define CU_MEMORYTYPE_DEVICE             2

typedef int (*pointer_attribute)(void *data, int attribute, unsigned long long ptr);

static struct {
    _Atomic unsigned long long seen; /* how many objects had been loaded at the last look */
    _Atomic(pointer_attribute) attribute;
} dti_driver;

struct dt_device_hosts dti_device_hosts;

static int first_object(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    *(unsigned long long *)out = info->dlpi_adds;
    return 1;
}

/* The program may load CUDA at any time; asking the linker again is worth it only when something
 * has been loaded since. */
static pointer_attribute driver_attribute(void)
{
    pointer_attribute found = dti_driver.attribute;
    unsigned long long loaded = 0;
    void *lib;

    if (found)
        return found;
    dl_iterate_phdr(first_object, &loaded);
    if (dti_driver.seen == loaded)
        return NULL;
    lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (lib)
        *(void **)&found = dlsym(lib, "cuPointerGetAttribute");
    if (found) /* else another thread, that has looked since, may have found it */
        dti_driver.attribute = found;
    dti_driver.seen = loaded;
    return found;
}

static enum dt_memory memory_of(pointer_attribute attribute, const void *ptr)
{
    unsigned long long address = (unsigned long long)(uintptr_t)ptr;
    unsigned type = 0, managed = 0;

    if (attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != 0 ||
        type != CU_MEMORYTYPE_DEVICE)
        return DT_MEMORY_HOST;
    if (attribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == 0 && managed)
        return DT_MEMORY_HOST;
    return DT_MEMORY_DEVICE;
}

enum dt_memory dt_device_memory(const void *a, const void *b)
{
    pointer_attribute attribute = driver_attribute();
    enum dt_memory memory;

    atomic_store_explicit(&dti_device_hosts.a, attribute ? NULL : a, memory_order_relaxed);
    atomic_store_explicit(&dti_device_hosts.b, attribute ? NULL : b, memory_order_relaxed);
    if (!attribute)
        return DT_MEMORY_HOST;
    memory = memory_of(attribute, a);
    return a == b || memory == memory_of(attribute, b) ? memory : DT_MEMORY_MIXED;
}

/* Unless the user names one: the plugin of this very build lies beside libdtrun; else wherever the
 * linker finds it. It is never unloaded: NCCL's threads may outlive every communicator. */
static void *load_plugin(void)
{
    static const char name[] = DT_DEVICE_PLUGIN;
    const char *named = secure_getenv(DT_DEVICE_PLUGIN_ENV);
    char path[PATH_MAX];
    const char *slash;
    Dl_info self;
    void *lib = NULL;

    if (named && *named)
        return dlopen(named, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (dladdr((void *)&dti_driver, &self) && (slash = strrchr(self.dli_fname, '/')) &&
        (size_t)snprintf(path, sizeof path, "%.*s/%s", (int)(slash - self.dli_fname),
                         self.dli_fname, name) < sizeof path)
        lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return lib ? lib : dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

static dt_result_t load(struct dt_device *d, const struct dt_device_host *host)
{
    char text[512];
    dt_device_entry entry = NULL;
    void *lib = load_plugin();

    if (lib)
        *(void **)&entry = dlsym(lib, DT_DEVICE_ENTRY);
    if (!entry) {
        const char *why = dlerror();

        snprintf(text, sizeof text,
                 "rank %d: device memory needs %s, which cannot be loaded: %s; it is built when "
                 "configure finds CUDA and NCCL",
                 host->rank, DT_DEVICE_PLUGIN, why ? why : "unknown reason");
        return host->fail(host->ctx, DT_ERR_UNSUPPORTED, text);
    }
    d->ops = entry();
    if (d->ops->abi == DT_DEVICE_ABI)
        return DT_OK;
    snprintf(text, sizeof text,
             "rank %d: %s is of another version than libdtrun: install them together", host->rank,
             DT_DEVICE_PLUGIN);
    d->ops = NULL;
    return host->fail(host->ctx, DT_ERR_VERSION, text);
}

/* Ranks that can must not wait in NCCL for one that cannot: all say first whether they are able. */
static dt_result_t agree(const struct dt_device_host *host, dt_result_t mine)
{
    int32_t unable = mine == DT_OK ? host->size : host->rank;
    dt_result_t result = host->min(host->ctx, &unable);
    char text[128];

    if (result != DT_OK || unable == host->size)
        return result;
    if (mine != DT_OK)
        return mine;
    snprintf(text, sizeof text, "rank %d: rank %d cannot use its device; its own error says why",
             host->rank, (int)unable);
    return host->fail(host->ctx, DT_ERR_CUDA, text);
}

static dt_result_t ensure_open(struct dt_device *d, const struct dt_device_host *host,
                               const void *ptr)
{
    dt_result_t result = DT_OK;
    int device = -1;

    if (d->state)
        return DT_OK;
    if (!d->ops)
        result = load(d, host);
    if (result == DT_OK)
        result = d->ops->probe(host, ptr, &device);
    result = agree(host, result);
    return result == DT_OK ? d->ops->open(host, device, &d->state) : result;
}

dt_result_t dt_device_all_reduce(struct dt_device *d, const struct dt_device_host *host,
                                 const void *in, void *out, size_t count, dt_dtype_t dtype,
                                 dt_op_t op)
{
    dt_result_t result = ensure_open(d, host, out);

    return result == DT_OK ? d->ops->all_reduce(d->state, in, out, count, dtype, op) : result;
}

dt_result_t dt_device_broadcast(struct dt_device *d, const struct dt_device_host *host, void *buf,
                                size_t count, dt_dtype_t dtype, int root)
{
    dt_result_t result = ensure_open(d, host, buf);

    return result == DT_OK ? d->ops->broadcast(d->state, buf, count, dtype, root) : result;
}

dt_result_t dt_device_barrier(struct dt_device *d)
{
    return d->ops->barrier(d->state);
}

void dt_device_close(struct dt_device *d)
{
    if (d->ops)
        d->ops->close(d->state);
    d->state = NULL;
}
