#include "runtime/checkpoint/registry.h"

#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/api/context.h"
#include "runtime/base/error.h"
#include "runtime/gpu/device/memory.h"
#include "runtime/gpu/device/transfer.h"

/* Only the thread that holds DT_WORLD's slot uses this. */
static struct {
    struct dt_buffers buffers;
    void *names; /* of the buffers, as a tree */
    bool closed;
    struct dt_comm *comm; /* of the call that reads or writes the buffers */
    const char *call;     /* its name */
} dti_registry;

const struct dt_buffers *dt_registry_buffers(struct dt_comm *world, enum dt_call_kind call)
{
    dti_registry.comm = world;
    dti_registry.call = dt_hostshm_call_name(call);
    return &dti_registry.buffers;
}

void dt_registry_close(void)
{
    dti_registry.closed = true;
}

static void keep_name(void *name)
{
    (void)name; /* it belongs to its buffer */
}

void dt_registry_free(void)
{
    tdestroy(dti_registry.names, keep_name);
    dti_registry.names = NULL;
    dt_buffers_free(&dti_registry.buffers);
}

/* ---- GPU memory ---- */

static enum dt_memory memory_of(const void *buf, size_t bytes)
{
    return dt_memory_of(buf, (const uint8_t *)buf + bytes - 1);
}

static dt_result_t read_device(const void *data, uint64_t bytes, dt_gpu_chunk_f f, void *arg)
{
    return dt_gpu_fetch(dti_registry.comm, dti_registry.call, data, bytes, f, arg);
}

static dt_result_t write_device(void *data, uint64_t bytes, dt_gpu_chunk_f f, void *arg)
{
    return dt_gpu_store(dti_registry.comm, dti_registry.call, data, bytes, f, arg);
}

static dt_result_t copy_device(const void *data, uint64_t bytes, struct dt_gpu_hostmem *m,
                               void *place)
{
    return dt_gpu_fetch_to(dti_registry.comm, dti_registry.call, data, bytes, m, place);
}

/* Managed memory is copied by the GPU too, which knows when it has been written. */
static const struct dt_device_access *device_access_of(const void *buf, size_t bytes)
{
    static const struct dt_device_access on_gpu = { read_device, write_device, copy_device };

    return bytes && memory_of(buf, bytes) != DT_MEMORY_HOST ? &on_gpu : NULL;
}

/* ---- registering ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

static dt_result_t check_buffer(const char *name, const void *buf, size_t bytes)
{
    size_t len = name ? strlen(name) : 0;

    if (len < 1 || len > DT_SHARD_NAME_MAX)
        return dt_fail(DT_ERR_ARG, "dt_checkpoint_register: a name has 1 to %d bytes, not %zu",
                       DT_SHARD_NAME_MAX, len);
    if (bytes && (!buf || buf == DT_IN_PLACE))
        return dt_fail(DT_ERR_ARG, "dt_checkpoint_register: \"%s\": no buffer was given", name);
    if (bytes > PTRDIFF_MAX)
        return dt_fail(DT_ERR_ARG,
                       "dt_checkpoint_register: \"%s\": %zu bytes are more than memory can hold",
                       name, bytes);
    if (tfind(name, &dti_registry.names, compare_names))
        return dt_fail(DT_ERR_ARG, "dt_checkpoint_register: \"%s\" is registered already", name);
    if (!dt_buffers_have_room(&dti_registry.buffers, name))
        return dt_fail(DT_ERR_ARG,
                       "dt_checkpoint_register: \"%s\": the names of this rank's buffers, with 12 "
                       "bytes for each buffer, would be longer than %d MiB",
                       name, DT_SHARD_HEAD_MAX >> 20);
    if (bytes && memory_of(buf, bytes) == DT_MEMORY_MIXED)
        return dt_fail(DT_ERR_ARG,
                       "dt_checkpoint_register: \"%s\" lies in the memory of a GPU only in part",
                       name);
    return DT_OK;
}

static dt_result_t add_buffer(const char *name, void *buf, size_t bytes)
{
    struct dt_buffers *b = &dti_registry.buffers;
    struct dt_buffer *added;

    if (dt_buffers_add(b, name, buf, bytes) != 0)
        return dt_fail(DT_ERR_NOMEM, "dt_checkpoint_register: out of memory");
    added = &b->v[b->n - 1];
    if (!tsearch(added->name, &dti_registry.names, compare_names)) {
        dt_buffers_remove_last(b);
        return dt_fail(DT_ERR_NOMEM, "dt_checkpoint_register: out of memory");
    }
    added->device = device_access_of(buf, bytes);
    return DT_OK;
}

dt_result_t dt_checkpoint_register(const char *name, void *buf, size_t bytes)
{
    struct dt_comm *c;
    dt_result_t result = dt_context_enter("dt_checkpoint_register", DT_WORLD, &c);

    if (result != DT_OK)
        return result;
    if (dti_registry.closed)
        result = dt_fail(DT_ERR_STATE,
                         "dt_checkpoint_register: \"%.255s\" is registered too late: register all "
                         "buffers before the first save or restore",
                         name ? name : "");
    else
        result = check_buffer(name, buf, bytes);
    if (result == DT_OK)
        result = add_buffer(name, buf, bytes);
    dt_context_leave(c);
    return result;
}
