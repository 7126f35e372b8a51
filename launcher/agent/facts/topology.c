#include "launcher/agent/facts/topology.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/granted/affinity.h"
#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"

enum { CPUS_MAX = 1 << 16, FILE_MAX = 64 * 1024 };

/* Returns the number at the beginning of a file about a CPU, or "otherwise" if there is none. */
static uint32_t read_number(const char *root, uint32_t id, const char *name, uint32_t otherwise)
{
    char *path = dt_xasprintf("%s/sys/devices/system/cpu/cpu%u/%s", root, id, name);
    struct dt_strbuf text = { 0 };
    long number = -1;
    char *end;

    if (dt_slurp(&text, path, FILE_MAX, NULL) == 0 && text.len) {
        number = strtol(dt_strbuf_text(&text), &end, 10);
        if (end == dt_strbuf_text(&text))
            number = -1;
    }
    dt_strbuf_free(&text);
    free(path);
    return number >= 0 && number <= INT32_MAX ? (uint32_t)number : otherwise;
}

/* The CPU's directory has a link to its node's directory, which is named nodeN. */
static uint32_t read_node(const char *root, uint32_t id, uint32_t otherwise)
{
    char *path = dt_xasprintf("%s/sys/devices/system/cpu/cpu%u", root, id);
    DIR *dir = opendir(path);
    uint32_t node = otherwise;

    free(path);
    if (!dir)
        return otherwise;
    for (const struct dirent *e; (e = readdir(dir));)
        if (strncmp(e->d_name, "node", 4) == 0 && isdigit((unsigned char)e->d_name[4]))
            node = (uint32_t)strtoul(e->d_name + 4, NULL, 10);
    closedir(dir);
    return node;
}

/* Returns the lowest CPU that shares this CPU's level 3 cache. */
static uint32_t read_l3(const char *root, uint32_t id, uint32_t otherwise)
{
    uint32_t level = 0, l3 = otherwise;

    for (int i = 0; level != UINT32_MAX; i++) {
        char *name = dt_xasprintf("cache/index%d/level", i);
        char *cpus = dt_xasprintf("cache/index%d/shared_cpu_list", i);

        level = read_number(root, id, name, UINT32_MAX);
        if (level == 3)
            l3 = read_number(root, id, cpus, otherwise);
        free(name);
        free(cpus);
    }
    return l3;
}

static struct dt_cpu read_cpu(const char *root, uint32_t id)
{
    struct dt_cpu cpu = {
        .id = id,
        .core = read_number(root, id, "topology/thread_siblings_list", id),
        .package = read_number(root, id, "topology/physical_package_id", 0),
    };

    cpu.numa = read_node(root, id, cpu.package);
    cpu.l3 = read_l3(root, id, read_number(root, id, "topology/core_siblings_list", 0));
    return cpu;
}

void dt_topology_read(struct dt_cpus *cpus, const char *root)
{
    size_t size;
    cpu_set_t *set = dt_affinity_read(&size);

    cpus->v = dt_xcalloc(set ? (size_t)CPU_COUNT_S(size, set) : 1, sizeof *cpus->v);
    cpus->n = 0;
    for (uint32_t id = 0; set && id < size * 8; id++) {
        if (!CPU_ISSET_S(id, size, set))
            continue;
        cpus->v[cpus->n++] = read_cpu(root, id);
    }
    CPU_FREE(set);
    if (cpus->n == 0)
        cpus->n = 1;
    dt_cpus_sort(cpus);
}

char *dt_topology_describe(void)
{
    size_t size;
    cpu_set_t *set = dt_affinity_read(&size);
    struct dt_strbuf b = { 0 };

    for (size_t id = 0, end; set && id < size * 8; id = end + 1) {
        for (end = id; end < size * 8 && CPU_ISSET_S(end, size, set);)
            end++;
        if (end == id)
            continue;
        dt_strbuf_printf(&b, end == id + 1 ? "%s%zu" : "%s%zu-%zu", b.len ? "," : "", id, end - 1);
    }
    CPU_FREE(set);
    dt_strbuf_puts(&b, b.len ? "" : "?");
    return dt_strbuf_take(&b);
}

int dt_topology_bind(const struct dt_u32s *own)
{
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
    int error = 0;

    if (!set)
        return ENOMEM;
    CPU_ZERO_S(CPU_ALLOC_SIZE(CPUS_MAX), set);
    for (uint32_t i = 0; i < own->n; i++)
        CPU_SET_S(own->v[i], CPU_ALLOC_SIZE(CPUS_MAX), set);
    if (sched_setaffinity(0, CPU_ALLOC_SIZE(CPUS_MAX), set) < 0)
        error = errno;
    CPU_FREE(set);
    return error;
}
