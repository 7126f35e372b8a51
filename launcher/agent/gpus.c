#include "launcher/agent/gpus.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/agent/clock.h"
#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"

enum { FILE_MAX = 64 * 1024, SMI_MS = 5000 };

static const char driver[] = "/proc/driver/nvidia/gpus";

static int is_entry(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Whether the GPU on this bus has a device file here. */
static bool is_visible(const char *bus)
{
    static const char key[] = "Device Minor:";
    char *path = dt_xasprintf("%s/%s/information", driver, bus);
    struct dt_strbuf text = { 0 };
    const char *at = NULL;
    bool visible = false;

    if (dt_slurp(&text, path, FILE_MAX, NULL) == 0)
        at = strstr(dt_strbuf_text(&text), key);
    free(path);
    if (at) {
        path = dt_xasprintf("/dev/nvidia%d", atoi(at + sizeof key - 1));
        visible = access(path, F_OK) == 0;
        free(path);
    }
    dt_strbuf_free(&text);
    return visible;
}

static void add_index(struct dt_strs *gpus, unsigned index)
{
    char text[16];

    snprintf(text, sizeof text, "%u", index);
    dt_strs_add(gpus, text);
}

/* In the order of the bus, as CUDA counts with CUDA_DEVICE_ORDER=PCI_BUS_ID. False: no such driver.
 */
static bool from_driver(struct dt_strs *gpus)
{
    struct dirent **entries;
    int n = scandir(driver, &entries, is_entry, alphasort);
    unsigned index = 0;

    for (int i = 0; i < n; i++) {
        if (is_visible(entries[i]->d_name))
            add_index(gpus, index++);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return n >= 0;
}

/* Runs nvidia-smi -L; its output, as far as it came before the deadline. */
static void ask_smi(struct dt_strbuf *out)
{
    uint64_t deadline = dt_clock_ns() + SMI_MS * 1000000ull;
    int ends[2];
    char buffer[4096];
    ssize_t n = 1;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
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
    while (pid > 0 && n > 0) {
        struct pollfd p = { .fd = ends[0], .events = POLLIN };
        uint64_t now = dt_clock_ns();

        if (poll(&p, 1, now < deadline ? (int)((deadline - now) / 1000000) : 0) <= 0)
            break;
        n = read(ends[0], buffer, sizeof buffer);
        if (n > 0)
            dt_strbuf_add(out, buffer, (size_t)n);
    }
    close(ends[0]);
    if (pid > 0 && kill(pid, SIGKILL) == 0)
        waitpid(pid, NULL, 0);
}

/* Where the driver has no such files (Windows' subsystem for Linux), its tool is asked. */
static void from_smi(struct dt_strs *gpus)
{
    struct dt_strbuf out = { 0 };
    unsigned index = 0;

    if (access("/dev/dxg", F_OK) < 0 && access("/dev/nvidiactl", F_OK) < 0)
        return;
    ask_smi(&out);
    for (const char *line = dt_strbuf_text(&out); line && *line;) {
        if (strncmp(line, "GPU ", 4) == 0)
            add_index(gpus, index++);
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    dt_strbuf_free(&out);
}

void dt_gpus_detect(struct dt_strs *gpus)
{
    if (!from_driver(gpus))
        from_smi(gpus);
}
