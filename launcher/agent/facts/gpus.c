#include "launcher/agent/facts/gpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/agent/facts/smi.h"
#include "launcher/base/mem.h"
#include "launcher/base/nvidia.h"
#include "launcher/base/slurp.h"

enum { FILE_MAX = 64 * 1024 };

static void add_index(void *gpus, const char *information)
{
    struct dt_strs *list = gpus;
    char text[16];

    (void)information;
    snprintf(text, sizeof text, "%u", list->n);
    dt_xstrs_add(list, text);
}

static bool has_device(const char *root, const char *name)
{
    char *path = dt_xasprintf("%s/dev/%s", root, name);
    bool has = access(path, F_OK) == 0;

    free(path);
    return has;
}

/* A driver without such files (in the Windows Subsystem for Linux) has the tool nvidia-smi, which
 * prints a line for each GPU, as in "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-...)". */
static void list_with_smi(struct dt_strs *gpus, const char *root, struct dt_groups *groups)
{
    static const char *const argv[] = { "nvidia-smi", "-L", NULL };
    struct dt_strbuf out = { 0 };

    if (!has_device(root, "dxg") && !has_device(root, "nvidiactl"))
        return;
    dt_smi_run(&out, argv, groups);
    for (const char *line = dt_strbuf_text(&out); line && *line;) {
        if (strncmp(line, "GPU ", 4) == 0)
            add_index(gpus, line);
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    dt_strbuf_free(&out);
}

void dt_gpus_detect(struct dt_strs *gpus, const char *root, struct dt_groups *groups)
{
    if (!dt_nvidia_each(root, add_index, gpus))
        list_with_smi(gpus, root, groups);
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
