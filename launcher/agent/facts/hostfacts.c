#include "launcher/agent/facts/hostfacts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include "launcher/agent/facts/savedir.h"
#include "launcher/base/clock.h"
#include "launcher/base/granted/limits.h"
#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"

enum { FILE_MAX = 1024 * 1024 };

/* Returns the file's text, which the caller frees, or "" if it cannot be read. */
static char *text_of(const char *root, const char *path)
{
    char *whole = dt_xasprintf("%s%s", root, path);
    struct dt_strbuf text = { 0 };

    dt_slurp(&text, whole, FILE_MAX, NULL);
    free(whole);
    return dt_strbuf_take(&text);
}

static void fill_system(struct dt_msg_facts *f)
{
    struct utsname u;

    uname(&u);
    f->kernel = dt_xstrdup(u.release);
    f->machine = dt_xstrdup(u.machine);
}

/* Matches cpu0, cpu1 and so on, but not cpufreq. */
static int is_cpu(const struct dirent *entry)
{
    unsigned n;
    char rest;

    return sscanf(entry->d_name, "cpu%u%c", &n, &rest) == 1;
}

/* Hardware threads of one core have the same list of siblings. An offline CPU has no topology. */
static void fill_cores(struct dt_msg_facts *f, const char *root)
{
    char *dir = dt_xasprintf("%s/sys/devices/system/cpu", root);
    struct dirent **entries = NULL;
    int n = scandir(dir, &entries, is_cpu, NULL);
    struct dt_strs cores = { 0 };

    for (int i = 0; i < n; i++) {
        char *path = dt_xasprintf("/sys/devices/system/cpu/%s/topology/thread_siblings_list",
                                  entries[i]->d_name);
        char *siblings = text_of(root, path);
        uint32_t k = 0;

        f->cpus += *siblings != '\0';
        while (k < cores.n && strcmp(cores.v[k], siblings) != 0)
            k++;
        if (*siblings && k == cores.n)
            dt_xstrs_add(&cores, siblings);
        free(siblings);
        free(path);
        free(entries[i]);
    }
    f->physical_cores = cores.n;
    dt_strs_free(&cores);
    free(entries);
    free(dir);
}

static void fill_load(struct dt_msg_facts *f, const char *root)
{
    char *text = text_of(root, "/proc/loadavg");
    double load = strtod(text, NULL);

    f->load = load > 0 && load < 1e6 ? (uint32_t)(load * 100 + 0.5) : 0;
    free(text);
}

static void fill_memory(struct dt_msg_facts *f, const char *root)
{
    char *text = text_of(root, "/proc/meminfo");
    const char *line = strstr(text, "MemAvailable:");
    unsigned long long kib;

    if (line && sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
        f->memory_available = kib * 1024;
    free(text);
}

static void fill_disk(struct dt_msg_facts *f, const char *dir)
{
    char at[PATH_MAX];
    struct statvfs fs;

    f->disk_error = dt_savedir_check(dir, at);
    f->disk_dir = dt_xstrdup(at);
    if (statvfs(at, &fs) == 0)
        f->disk_free = (uint64_t)fs.f_bavail * fs.f_frsize;
}

void dt_hostfacts_fill(struct dt_msg_facts *facts, const char *root, const char *dir)
{
    struct dt_limits limits;

    dt_limits_read(&limits, root);
    facts->cpu_limit = limits.cpu;
    facts->memory_limit = limits.memory;
    fill_system(facts);
    fill_cores(facts, root);
    fill_load(facts, root);
    fill_memory(facts, root);
    fill_disk(facts, dir);
    facts->wall_ahead_ns = dt_wall_ahead_ns();
}
