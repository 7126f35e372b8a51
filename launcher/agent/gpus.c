#include "launcher/agent/gpus.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/agent/clock.h"
#include "launcher/base/mem.h"
#include "launcher/base/nvidia.h"
#include "launcher/base/slurp.h"

enum { FILE_MAX = 64 * 1024, SMI_MS = 5000, REAP_MS = 1000 };

static void add_index(void *gpus, const char *information)
{
    struct dt_strs *list = gpus;
    char text[16];

    (void)information;
    snprintf(text, sizeof text, "%u", list->n);
    dt_xstrs_add(list, text);
}

/* Starts nvidia-smi -L; *out is the reading end of its output. Returns its id, or -1. */
static pid_t start_smi(int *out)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);

        dup2(null, STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execlp("nvidia-smi", "nvidia-smi", "-L", (char *)NULL);
        _exit(DT_EXIT_NOT_FOUND);
    }
    close(ends[1]);
    *out = ends[0];
    if (pid < 0)
        close(ends[0]);
    return pid;
}

/* What comes before the deadline. */
static void read_smi(struct dt_strbuf *text, int fd)
{
    uint64_t begun = dt_clock_ns();
    struct pollfd p = { .fd = fd, .events = POLLIN };
    char buffer[4096];
    ssize_t n = 1;

    while (n > 0 && poll(&p, 1, (int)dt_clock_ms_left(begun, dt_clock_ns(), SMI_MS)) > 0) {
        n = read(fd, buffer, sizeof buffer);
        if (n > 0)
            dt_strbuf_add(text, buffer, (size_t)n);
    }
}

/* One that waits for the driver inside the kernel cannot be ended. It is left to be reaped by
 * whoever reaps the caller's children. */
static void end_smi(pid_t pid)
{
    struct pollfd p = { .fd = pidfd_open(pid, 0), .events = POLLIN };

    kill(pid, SIGKILL);
    if (p.fd >= 0) /* not before Linux 5.3 */
        poll(&p, 1, REAP_MS);
    if (p.fd >= 0 && waitpid(pid, NULL, WNOHANG) == 0)
        fprintf(stderr,
                "dtrun-agent: nvidia-smi (pid %d) does not end although it was killed; it waits "
                "for the GPU driver (see /proc/%d/stack)\n",
                (int)pid, (int)pid);
    if (p.fd >= 0)
        close(p.fd);
}

static bool has_device(const char *root, const char *name)
{
    char *path = dt_xasprintf("%s/dev/%s", root, name);
    bool has = access(path, F_OK) == 0;

    free(path);
    return has;
}

/* Where the driver has no such files (Windows' subsystem for Linux), its tool is asked: a line for
 * each GPU, as in "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-...)". */
static void for_each_of_smi(const char *root, void (*see)(void *arg, const char *line), void *arg)
{
    struct dt_strbuf out = { 0 };
    pid_t pid;
    int fd;

    if (!has_device(root, "dxg") && !has_device(root, "nvidiactl"))
        return;
    pid = start_smi(&fd);
    if (pid < 0)
        return;
    read_smi(&out, fd);
    close(fd);
    end_smi(pid);
    for (const char *line = dt_strbuf_text(&out); line && *line;) {
        if (strncmp(line, "GPU ", 4) == 0)
            see(arg, line);
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    dt_strbuf_free(&out);
}

void dt_gpus_detect(struct dt_strs *gpus)
{
    if (!dt_nvidia_each("", add_index, gpus))
        for_each_of_smi("", add_index, gpus);
}

static void add_text(struct dt_strs *list, const char *text, size_t n)
{
    char *copy = dt_xstrndup(text, n);

    dt_xstrs_add(list, copy);
    free(copy);
}

static void add_model(void *models, const char *information)
{
    const char *model = dt_nvidia_value(information, "Model:");

    if (model)
        add_text(models, model, strcspn(model, "\n"));
}

static void add_model_of_smi(void *models, const char *line)
{
    const char *model = line + strcspn(line, ":\n");
    const char *end = strstr(model, " (UUID");

    model += strspn(model, ": ");
    add_text(models, model, end > model ? (size_t)(end - model) : strcspn(model, "\n"));
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19": the first word that
 * begins with a digit and has a point. */
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
    if (!dt_nvidia_each(root, add_model, models))
        for_each_of_smi(root, add_model_of_smi, models);
    *version = read_version(root);
}
