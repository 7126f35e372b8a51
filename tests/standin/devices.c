/* The devices of the stand-in, and which threads may call the driver.
 *
 * Rules: no call works before cuInit, in a process forked after it (CUDA C++ Programming Guide,
 * "Initialization"), in a host function (cuLaunchHostFunc), or once the process is exiting.
 * CUDA_VISIBLE_DEVICES lists indices or prefixes of UUIDs. The first wrong entry hides its device
 * and all after it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/standin/driver.h"

static struct {
    _Atomic pid_t process; /* the one that called cuInit */
    _Atomic bool ended;    /* by its exit */
    int count, physical[STANDIN_MOST_DEVICES];
} dti_devices;
static _Thread_local bool dti_in_host_function;

pthread_mutex_t standin_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t standin_changed = PTHREAD_COND_INITIALIZER;

long standin_setting(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

CUresult standin_refused(const char *function)
{
    const char *list = getenv("STANDIN_REFUSES");
    size_t length = strlen(function);

    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, function, length) != 0 || at[length] != ':')
            continue;
        while (strncmp(at + length, ":hang", 5) == 0)
            pause();
        return (CUresult)strtol(at + length + 1, NULL, 10);
    }
    return CUDA_SUCCESS;
}

void standin_log(const char *format, ...)
{
    const char *path = getenv("STANDIN_LOG");
    FILE *log = path && *path ? fopen(path, "ae") : NULL;
    char line[256];
    va_list args;

    if (!log)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    fprintf(log, "%s\n", line);
    fclose(log);
}

/* A hash (FNV-1a). */
unsigned long long standin_host(void)
{
    char name[512] = "";
    const char *given = getenv("STANDIN_HOST");
    unsigned long long hash = 0xcbf29ce484222325u;

    if (given) {
        snprintf(name, sizeof(name), "%s", given);
    } else {
        gethostname(name, 255);
        (void)!readlink("/proc/self/ns/net", name + strlen(name), 200);
    }
    for (const char *at = name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    return hash;
}

static void uuid_of(int physical, CUuuid *uuid)
{
    unsigned long long host = standin_host(), number = (unsigned long long)physical + 1;

    memcpy(uuid->bytes, &number, 8); /* first, so that a short prefix tells devices apart */
    memcpy(uuid->bytes + 8, &host, 8);
}

static void uuid_text(int physical, char *text, size_t size)
{
    CUuuid uuid;
    int used = snprintf(text, size, "GPU-");

    uuid_of(physical, &uuid);
    for (int i = 0; i < 16; i++)
        used += snprintf(text + used, size - (size_t)used, "%s%02x",
                         i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                         (unsigned char)uuid.bytes[i]);
}

static int named_device(const char *name, int count)
{
    char text[64], *end;
    long index = strtol(name, &end, 10);

    if (*name && !*end)
        return index >= 0 && index < count ? (int)index : -1;
    for (int i = 0; i < count && strlen(name) > 4; i++) {
        uuid_text(i, text, sizeof(text));
        if (strncmp(text, name, strlen(name)) == 0)
            return i;
    }
    return -1;
}

static void find_devices(void)
{
    int count = (int)standin_setting("STANDIN_DEVICES", 2), found;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    char *list, *rest, *name;

    count = count < STANDIN_MOST_DEVICES ? count : STANDIN_MOST_DEVICES;
    dti_devices.count = 0;
    if (!visible) {
        for (; dti_devices.count < count; dti_devices.count++)
            dti_devices.physical[dti_devices.count] = dti_devices.count;
        return;
    }
    list = rest = strdup(visible);
    while ((name = strsep(&rest, ",")) && dti_devices.count < STANDIN_MOST_DEVICES) {
        if ((found = named_device(name, count)) < 0)
            break;
        dti_devices.physical[dti_devices.count++] = found;
    }
    free(list);
}

static void end(void)
{
    dti_devices.ended = true;
    usleep((useconds_t)standin_setting("STANDIN_EXIT_MS", 0) * 1000);
}

CUresult cuInit(unsigned flags)
{
    CUresult result = standin_refused(__func__);

    if (result)
        return result;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (dti_in_host_function)
        return CUDA_ERROR_NOT_PERMITTED;
    pthread_mutex_lock(&standin_mutex);
    if (!dti_devices.process) {
        find_devices();
        if (dti_devices.count) {
            dti_devices.process = getpid();
            atexit(end);
        } else {
            result = CUDA_ERROR_NO_DEVICE;
        }
    } else if (dti_devices.process != getpid()) {
        result = CUDA_ERROR_NOT_INITIALIZED;
    }
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUresult standin_ready(void)
{
    if (dti_in_host_function)
        return CUDA_ERROR_NOT_PERMITTED;
    if (dti_devices.process != getpid())
        return CUDA_ERROR_NOT_INITIALIZED;
    return dti_devices.ended ? CUDA_ERROR_DEINITIALIZED : CUDA_SUCCESS;
}

void standin_in_host_function(bool inside)
{
    dti_in_host_function = inside;
}

bool standin_device_exists(CUdevice device)
{
    return device >= 0 && device < dti_devices.count;
}

static CUresult check_device(CUdevice device)
{
    CUresult result = standin_ready();

    return result || standin_device_exists(device) ? result : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetCount(int *count)
{
    CUresult result = standin_ready();

    if (!result)
        *count = dti_devices.count;
    return result;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult result = check_device(ordinal);

    if (!result)
        *device = ordinal;
    return result;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    CUresult result = check_device(device);

    if (!result)
        snprintf(name, (size_t)size, "dtrun's stand-in for a GPU%s",
                 standin_setting("STANDIN_MIG", 0) ? " MIG 1g.10gb" : "");
    return result;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    CUresult result = check_device(device);

    if (!result)
        uuid_of(dti_devices.physical[device], uuid);
    return result;
}

CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
    CUresult result = check_device(device);

    if (!result)
        snprintf(id, (size_t)size, "0000:%02x:00.0", dti_devices.physical[device] + 1);
    return result;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CUresult result = check_device(device);

    if (!result)
        *bytes = (size_t)standin_setting("STANDIN_MEMORY", 1L << 30);
    return result;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    CUresult result = check_device(device);

    if (result)
        return result;
    *value = 0;
    if (standin_setting("STANDIN_LACKS", 0) == (long)attribute)
        return CUDA_SUCCESS;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = 9;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = 0;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
        *value = 1;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}
