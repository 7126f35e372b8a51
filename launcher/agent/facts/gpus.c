#include "launcher/agent/facts/gpus.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/agent/facts/smi.h"
#include "launcher/base/mem.h"
#include "launcher/base/nvidia.h"
#include "launcher/base/slurp.h"

enum { FILE_MAX = 64 * 1024 };

struct seen {
    struct dt_strs *gpus;
    const char *root;
    bool divided; /* into MIG devices */
};

static void add_index(struct dt_strs *gpus)
{
    char text[16];

    snprintf(text, sizeof text, "%u", gpus->n);
    dt_xstrs_add(gpus, text);
}

static int is_gpu_instance(const struct dirent *entry)
{
    return strncmp(entry->d_name, "gi", 2) == 0;
}

static bool is_divided(const char *root, const char *minor)
{
    char *dir = dt_xasprintf("%s/proc/driver/nvidia/capabilities/gpu%d/mig", root, atoi(minor));
    struct dirent **instances;
    int n = scandir(dir, &instances, is_gpu_instance, NULL);

    for (int i = 0; i < n; i++)
        free(instances[i]);
    if (n >= 0)
        free(instances);
    free(dir);
    return n > 0;
}

static void see_gpu(void *arg, const char *information)
{
    const char *minor = dt_nvidia_value(information, "Device Minor:");
    struct seen *seen = arg;

    add_index(seen->gpus);
    seen->divided = seen->divided || (minor && is_divided(seen->root, minor));
}

static bool has_file(const char *root, const char *name)
{
    char *path = dt_xasprintf("%s%s", root, name);
    bool has = access(path, F_OK) == 0;

    free(path);
    return has;
}

static bool is_mig(const char *line)
{
    return strncmp(line, "  MIG ", 6) == 0;
}

static void add_uuid(struct dt_strs *gpus, const char *line)
{
    static const char before[] = "(UUID: ";
    const char *uuid = strstr(line, before);

    if (uuid && uuid < line + strcspn(line, "\n")) {
        uuid += strlen(before);
        dt_xstrs_add_n(gpus, uuid, strcspn(uuid, ")\n"));
    }
}

/* Adds what "nvidia-smi -L" lists, as in
 *     GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-...)
 *       MIG 3g.20gb     Device  0: (UUID: MIG-...)
 * By its index, CUDA shows only the first MIG device of a GPU. Therefore all have their UUIDs here
 * if there is a MIG device, which takes the place of its GPU. */
static void add_listed(struct dt_strs *gpus, const char *text)
{
    bool divided = strstr(text, "\n  MIG ");

    for (const char *line = text, *next; *line; line = next) {
        bool gpu = strncmp(line, "GPU ", 4) == 0;

        next = line + strcspn(line, "\n");
        next += *next == '\n';
        if (gpu && !divided)
            add_index(gpus);
        else if (is_mig(line) || (gpu && !is_mig(next)))
            add_uuid(gpus, line);
    }
}

static void list_with_smi(struct dt_strs *gpus, struct dt_groups *groups)
{
    static const char *const argv[] = { "nvidia-smi", "-L", NULL };
    struct dt_strbuf out = { 0 };
    struct dt_strs listed = { 0 };

    dt_smi_run(&out, argv, groups);
    add_listed(&listed, dt_strbuf_text(&out));
    dt_strbuf_free(&out);
    if (listed.n) {
        dt_strs_free(gpus);
        *gpus = listed;
    }
}

/* "nvidia0", but not "nvidiactl", "nvidia-uvm" or "nvidia-caps" */
static int is_gpu_file(const struct dirent *entry)
{
    static const char name[] = "nvidia";
    const char *number = entry->d_name + strlen(name);

    return strncmp(entry->d_name, name, strlen(name)) == 0 && *number &&
           number[strspn(number, "0123456789")] == '\0';
}

static void count_files(struct dt_strs *gpus, const char *root)
{
    char *dir = dt_xasprintf("%s/dev", root);
    struct dirent **files;
    int n = scandir(dir, &files, is_gpu_file, NULL);

    for (int i = 0; i < n; i++) {
        add_index(gpus);
        free(files[i]);
    }
    if (n >= 0)
        free(files);
    free(dir);
}

/* A driver without files of GPUs in /proc (in the Windows Subsystem for Linux, and in gVisor) may
 * have the tool nvidia-smi. Without it, gVisor still has a file for each GPU of the container. Such
 * files also stay when the driver is unloaded. After the start of a host they may be missing until
 * the first program uses a GPU: nvidia-smi makes them, as CUDA does. */
void dt_gpus_detect(struct dt_strs *gpus, const char *root, struct dt_groups *groups)
{
    struct seen seen = { gpus, root, false };
    bool files = dt_nvidia_each(root, see_gpu, &seen);

    if (files ? seen.divided || gpus->n == 0
              : has_file(root, "/dev/dxg") || has_file(root, "/dev/nvidiactl"))
        list_with_smi(gpus, groups);
    if (!files && gpus->n == 0 && has_file(root, "/proc/driver/nvidia"))
        count_files(gpus, root);
}

static void add_model(void *models, const char *information)
{
    const char *model = dt_nvidia_value(information, "Model:");

    if (model)
        dt_xstrs_add_n(models, model, strcspn(model, "\n"));
}

/* Finds the version in "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19":
 * the first word that begins with a digit and has a point. */
static char *read_version(const char *root)
{
    char *path = dt_xasprintf("%s/proc/driver/nvidia/version", root);
    struct dt_strbuf text = { 0 };
    const char *word = "";
    size_t n = 0;
    char *version;

    if (dt_slurp(&text, path, FILE_MAX, NULL) == 0)
        word = dt_strbuf_text(&text);
    for (; *word; word += n) {
        word += strspn(word, " \t\n");
        n = strcspn(word, " \t\n");
        if (*word >= '0' && *word <= '9' && memchr(word, '.', n))
            break;
    }
    version = dt_xstrndup(word, *word ? n : 0);
    dt_strbuf_free(&text);
    free(path);
    return version;
}

void dt_gpus_describe(struct dt_strs *models, char **version, const char *root)
{
    dt_nvidia_each(root, add_model, models);
    *version = read_version(root);
}
