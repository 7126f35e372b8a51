/* What an agent reports about its host, from trees of files that stand for /proc, /sys and /dev. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/agent/facts/gpus.h"
#include "launcher/agent/facts/gpustate.h"
#include "launcher/agent/facts/hostfacts.h"
#include "launcher/base/granted/limits.h"
#include "tests/unit/unit.h"

static char root[] = "/tmp/dtrun-hostfacts-XXXXXX";

static int make_root(void **state)
{
    (void)state;
    strcpy(root + strlen(root) - 6, "XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static void make_dirs(char *path)
{
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(path, 0755);
        *at = '/';
    }
}

/* Valid until the next call. */
static char *root_of(const char *name)
{
    static char path[256];

    snprintf(path, sizeof path, "%s%s", root, name);
    return path;
}

static void put(const char *name, const char *content)
{
    char *path = root_of(name);
    FILE *f;

    make_dirs(path);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(content, f);
    fclose(f);
}

struct file {
    const char *name, *content;
};

#define V2                                                                                         \
    {                                                                                              \
        "/proc/self/mountinfo", "1 2 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"                \
    }
#define V1                                                                                         \
    {                                                                                              \
        "/proc/self/mountinfo", "1 2 0:3 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n" \
                                "1 2 0:4 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"   \
    }
#define HYBRID                                                                                     \
    {                                                                                              \
        "/proc/self/mountinfo", "1 2 0:3 / /sys/fs/cgroup/unified rw - cgroup2 cgroup rw\n"        \
                                "1 2 0:4 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"   \
    }

static void limits_of_the_host_are_read(void **state)
{
    static const struct {
        struct file files[6];
        struct dt_limits want;
    } cases[] = {
        { { { 0 } }, { 0, 0 } },
        { { V2, { "/proc/self/cgroup", "0::/a/b\n" } }, { 0, 0 } },
        { { V2,
            { "/proc/self/cgroup", "0::/a/b\n" },
            { "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n" },
            { "/sys/fs/cgroup/a/b/memory.max", "max\n" } },
          { 0, 0 } },
        { { V2,
            { "/proc/self/cgroup", "0::/a/b\n" },
            { "/sys/fs/cgroup/a/b/cpu.max", "250000 100000\n" },
            { "/sys/fs/cgroup/a/b/memory.max", "max\n" },
            { "/sys/fs/cgroup/a/memory.max", "1073741824\n" } },
          { 250, 1 << 30 } },
        /* the narrowest limit counts, wherever it is */
        { { V2,
            { "/proc/self/cgroup", "0::/a/b\n" },
            { "/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n" },
            { "/sys/fs/cgroup/a/cpu.max", "150000 100000\n" },
            { "/sys/fs/cgroup/cpu.max", "900000 100000\n" } },
          { 150, 0 } },
        /* a container shows its own group as the top */
        { { V2,
            { "/proc/self/cgroup", "0::/\n" },
            { "/sys/fs/cgroup/cpu.max", "50000 100000\n" },
            { "/sys/fs/cgroup/memory.max", "4096\n" } },
          { 50, 4096 } },
        { { V1,
            { "/proc/self/cgroup", "9:memory:/m\n4:cpu,cpuacct:/c\n3:cpuset:/x\n" },
            { "/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "300000\n" },
            { "/sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "200000\n" },
            { "/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "8192\n" },
            { "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n" } },
          { 150, 8192 } },
        { { V1,
            { "/proc/self/cgroup", "4:cpu,cpuacct:/c\n" },
            { "/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "-1\n" },
            { "/sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n" } },
          { 0, 0 } },
        { { HYBRID,
            { "/proc/self/cgroup", "9:memory:/m\n0::/u\n" },
            { "/sys/fs/cgroup/unified/u/cpu.max", "50000 100000\n" },
            { "/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "8192\n" } },
          { 50, 8192 } },
        { { V2, { "/proc/self/cgroup", "nonsense\n:\n\n7:cpu" } }, { 0, 0 } },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_limits l;

        for (size_t k = 0; k < 6 && cases[i].files[k].name; k++)
            put(cases[i].files[k].name, cases[i].files[k].content);
        dt_limits_read(&l, root);
        assert_int_equal(l.cpu, cases[i].want.cpu);
        assert_int_equal(l.memory, cases[i].want.memory);
        remove_root(state);
        make_root(state);
    }
}

static void the_cgroup_that_refuses_processes_is_named(void **state)
{
    static const char format[] = "the cgroup %s/sys/fs/cgroup/a allows 9 processes and threads "
                                 "(pids.max)";
    static const struct file files[] = {
        V2,
        { "/proc/self/cgroup", "0::/a/b\n" },
        { "/sys/fs/cgroup/a/b/pids.max", "max\n" },
        { "/sys/fs/cgroup/a/b/pids.current", "3\n" },
        { "/sys/fs/cgroup/a/pids.max", "9\n" },
        { "/sys/fs/cgroup/a/pids.current", "5\n" },
    };
    char want[256], *text;

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        put(files[i].name, files[i].content);
    assert_null(dt_limits_tasks(root, 4));
    text = dt_limits_tasks(root, 5);
    snprintf(want, sizeof want, format, root);
    assert_string_equal(text, want);
    free(text);
}

static void facts_of_the_host_are_read(void **state)
{
    struct dt_msg_facts f = { 0 };

    (void)state;
    put("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,2\n");
    put("/sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,3\n");
    put("/sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "0,2\n");
    put("/sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "1,3\n");
    put("/sys/devices/system/cpu/cpu4/online", "0\n");
    put("/sys/devices/system/cpu/cpufreq/boost", "1\n");
    put("/proc/loadavg", "12.34 5.00 1.00 2/345 6789\n");
    put("/proc/meminfo", "MemTotal:  100 kB\nMemFree:  50 kB\nMemAvailable:   70 kB\n");
    dt_hostfacts_fill(&f, root, "/");
    assert_int_equal(f.cpus, 4);
    assert_int_equal(f.physical_cores, 2);
    assert_int_equal(f.load, 1234);
    assert_int_equal(f.memory_available, 70 * 1024);
    assert_true(strlen(f.kernel) > 0);
    assert_true(strlen(f.machine) > 0);
    dt_msg_free(DT_MSG_FACTS, (union dt_msg *)&f);
}

static void the_disk_is_measured(void **state)
{
    static const struct {
        const char *dir, *want;
        int error;
    } cases[] = {
        { "", "", 0 },
        { "/not/here/yet", "", 0 },
        { "/data/run7", "/data", 0 },
        { "/data/file", "/data/file", ENOTDIR },
        { "/data/file/below", "/data/file/below", ENOTDIR },
    };

    (void)state;
    put("/data/file", "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_msg_facts f = { 0 };

        dt_hostfacts_fill(&f, root, root_of(cases[i].dir));
        assert_string_equal(f.disk_dir, root_of(cases[i].want));
        assert_int_equal(f.disk_error, cases[i].error);
        assert_true(cases[i].error || f.disk_free > 0);
        dt_msg_free(DT_MSG_FACTS, (union dt_msg *)&f);
    }
    assert_int_equal(access(root_of("/not"), F_OK), -1); /* looking creates nothing */
}

static void gpus_are_found(void **state)
{
    struct dt_strs models = { 0 };
    char *version = NULL;

    (void)state;
    put("/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
        "GCC version:  gcc version 12.2.0\n");
    put("/proc/driver/nvidia/gpus/0000:17:00.0/information",
        "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 100\nDevice Minor: \t 1\n");
    put("/proc/driver/nvidia/gpus/0000:65:00.0/information",
        "Model: \t\t NVIDIA A100\nDevice Minor: \t 0\n");
    put("/proc/driver/nvidia/gpus/0000:b3:00.0/information",
        "Model: \t\t another container's\nDevice Minor: \t 2\n");
    put("/dev/nvidia0", "");
    put("/dev/nvidia1", "");
    dt_gpus_describe(&models, &version, root);
    assert_int_equal(models.n, 2);
    assert_string_equal(models.v[0], "NVIDIA H100 80GB HBM3");
    assert_string_equal(models.v[1], "NVIDIA A100");
    assert_string_equal(version, "580.65.06");
    free(version);
    put("/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC\n");
    dt_gpus_describe(&models, &version, root);
    assert_string_equal(version, "535.104.05");
    free(version);
    dt_strs_free(&models);
}

/* Joins the elements, with a bar after each. */
static const char *joined(const struct dt_strs *list)
{
    static char text[512];

    text[0] = '\0';
    for (uint32_t i = 0; i < list->n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s|", list->v[i]);
    return text;
}

/* Detects GPUs while nvidia-smi prints this text. */
static const char *detected_with(const char *text)
{
    static struct dt_groups groups;
    struct dt_strs gpus = { 0 };
    char *path = strdup(getenv("PATH")), script[1024];
    const char *found;

    snprintf(script, sizeof script, "#!/bin/sh\nprintf '%s'\n", text);
    put("/bin/nvidia-smi", script);
    assert_int_equal(chmod(root_of("/bin/nvidia-smi"), 0755), 0);
    setenv("PATH", root_of("/bin"), 1);
    dt_gpus_detect(&gpus, root, &groups);
    setenv("PATH", path, 1);
    free(path);
    found = joined(&gpus);
    dt_strs_free(&gpus);
    return found;
}

static void gpus_have_indexes_and_mig_devices_uuids(void **state)
{
    static const char whole[] = "GPU 0: NVIDIA A30 (UUID: GPU-1)\n"
                                "GPU 1: NVIDIA A30 (UUID: GPU-2)\n";
    static const char divided[] = "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\n"
                                  "  MIG 3g.20gb     Device  0: (UUID: MIG-a)\n"
                                  "  MIG 1c.3g.20gb  Device  1: (UUID: MIG-GPU-1/2/0)\n"
                                  "GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-2)\n"
                                  "GPU 2: NVIDIA A100-SXM4-40GB (UUID: GPU-3)\n"
                                  "  MIG 7g.40gb     Device  0: (UUID: MIG-c)";

    (void)state;
    assert_string_equal(detected_with(whole), ""); /* there is no driver */
    put("/dev/dxg", "");
    assert_string_equal(detected_with(whole), "0|1|");
    assert_string_equal(detected_with(divided), "MIG-a|MIG-GPU-1/2/0|GPU-2|MIG-c|");
    put("/proc/driver/nvidia/gpus/0000:17:00.0/information", "Device Minor: \t 4\n");
    put("/proc/driver/nvidia/capabilities/mig/config", "");
    put("/proc/driver/nvidia/capabilities/gpu4/mig/README", "");
    put("/dev/nvidia4", "");
    assert_string_equal(detected_with(divided), "0|"); /* the kernel knows of no MIG device */
    put("/proc/driver/nvidia/capabilities/gpu4/mig/gi2/ci0/access", "");
    assert_string_equal(detected_with(divided), "MIG-a|MIG-GPU-1/2/0|GPU-2|MIG-c|");
    assert_string_equal(detected_with("no driver\n"), "0|");
}

/* As in gVisor, where /proc has one file of the driver. */
static void gpus_without_a_tool_are_counted(void **state)
{
    static const char *const others[] = { "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools",
                                          "nvidia-modeset", "nvidia-caps/nvidia-cap1" };
    char name[64];

    (void)state;
    put("/proc/driver/nvidia/params", "");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(name, sizeof name, "/dev/%s", others[i]);
        put(name, "");
    }
    assert_string_equal(detected_with(""), "");
    put("/dev/nvidia3", "");
    put("/dev/nvidia12", "");
    assert_string_equal(detected_with(""), "0|1|");
    assert_string_equal(detected_with("GPU 0: NVIDIA H200 (UUID: GPU-1)\n"), "0|");
    put("/proc/driver/nvidia/gpus/0000:17:00.0/information", "Device Minor: \t 3\n");
    assert_string_equal(detected_with(""), "0|");
}

/* A container without GPUs sees those of its host in /proc, too, but has no nvidia-smi. */
static void gpus_without_device_files_are_those_of_nvidia_smi(void **state)
{
    (void)state;
    put("/proc/driver/nvidia/gpus/0000:17:00.0/information", "Device Minor: \t 0\n");
    put("/proc/driver/nvidia/gpus/0000:65:00.0/information", "Device Minor: \t 1\n");
    assert_string_equal(detected_with(""), "");
    assert_string_equal(detected_with("GPU 0: NVIDIA H200 (UUID: GPU-1)\n"
                                      "GPU 1: NVIDIA H200 (UUID: GPU-2)\n"),
                        "0|1|");
}

static void files_that_an_unloaded_driver_left_are_no_gpus(void **state)
{
    (void)state;
    put("/dev/nvidiactl", "");
    put("/dev/nvidia0", "");
    assert_string_equal(detected_with("no driver\n"), "");
}

static void nvidia_smi_reports_models_driver_and_memory_errors(void **state)
{
    static const struct {
        const char *text, *models, *driver, *ecc;
    } cases[] = {
        { "NVIDIA H100 80GB HBM3, 580.65.06, 0\nNVIDIA H100 80GB HBM3, 580.65.06, 3\n",
          "NVIDIA H100 80GB HBM3|NVIDIA H100 80GB HBM3|", "580.65.06", "0|3|" },
        { "NVIDIA GeForce RTX 4090, 551.86, [N/A]\n", "NVIDIA GeForce RTX 4090|", "551.86", "|" },
        { "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "", "",
          "" },
        { "No devices were found\n", "", "", "" },
        { "", "", "", "" },
        { "NVIDIA A30, 535.1", "NVIDIA A30|", "535.1", "|" }, /* truncated */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_msg_facts f = { .gpu_driver = strdup("") };

        dt_gpustate_parse_query(&f, cases[i].text);
        assert_string_equal(joined(&f.gpu_models), cases[i].models);
        assert_string_equal(f.gpu_driver, cases[i].driver);
        assert_string_equal(joined(&f.gpu_ecc), cases[i].ecc);
        dt_gpustate_parse_query(&f, cases[i].text); /* the kernel has already reported them */
        if (*cases[i].models)
            assert_string_equal(joined(&f.gpu_models), cases[i].models);
        dt_msg_free(DT_MSG_FACTS, (union dt_msg *)&f);
    }
}

static void nvidia_smi_reports_how_gpus_are_linked(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "\t\033[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\033[0m\n"
          "GPU0\t X \tNV18\tPIX\t0-47\t0\t\tN/A\n"
          "GPU1\tNV18\t X \tSYS\t48-95\t1\t\tN/A\n"
          "NIC0\tPIX\tSYS\t X \t\t\t\t\n\n"
          "Legend:\n\n  X    = Self\n",
          "NV18" },
        { "\tGPU0\tGPU1\tGPU2\tCPU Affinity\n"
          "GPU0\t X \tNV4\tSYS\t0-7\nGPU1\tNV4\t X \tSYS\t0-7\nGPU2\tSYS\tSYS\t X \t8-15\n",
          "NV4, SYS" },
        { "\tGPU0\tCPU Affinity\nGPU0\t X \t0-7\n", "" },
        { "\tGPU0\tGPU1\nGPU0", "" },
        { "Failed to initialize NVML\n", "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_msg_facts f = { 0 };

        dt_gpustate_parse_topology(&f, cases[i].text);
        assert_string_equal(f.gpu_links, cases[i].want);
        dt_msg_free(DT_MSG_FACTS, (union dt_msg *)&f);
    }
}

static void fill_linkers_cache(void)
{
    static const char strings[] = "glibc-ld.so.cache1.1\0libnccl.so.2\0/usr/lib/libnccl.so.2\0libz";
    FILE *cache;

    put("/usr/lib/libnccl.so.2", "\177ELF NCCL version %d\nNCCL version 2.28.9+cuda13.0 ...");
    put("/etc/ld.so.cache", "");
    cache = fopen(root_of("/etc/ld.so.cache"), "w");
    assert_non_null(cache);
    fwrite(strings, 1, sizeof strings, cache);
    fclose(cache);
}

static void xids_come_from_the_kernels_log_and_nccl_from_the_linkers_cache(void **state)
{
    struct dt_msg_facts f = { 0 };

    (void)state;
    put("/dev/kmsg", "4,1,2,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=12, GPU has fallen off the bus.\n"
                     "6,2,3,-;eth0: link up\n"
                     "4,3,4,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', GPU ...\n"
                     "4,4,5,-;NVRM: Xid (PCI:0000:65:00): 31, pid=9, MMU Fault\n"
                     "4,4,5,-;NVRM: Xid (PCI:");
    fill_linkers_cache();
    dt_gpustate_read(&f, root);
    assert_string_equal(joined(&f.gpu_xids), "Xid 79 x 2 (0000:3b:00)|Xid 31 x 1 (0000:65:00)|");
    assert_string_equal(f.nccl, "2.28.9");
    dt_msg_free(DT_MSG_FACTS, (union dt_msg *)&f);
    put("/etc/ld.so.cache", "");
    assert_int_equal(unlink(root_of("/dev/kmsg")), 0);
    dt_gpustate_read(&f, root);
    assert_int_equal(f.gpu_xids.n, 0);
    assert_string_equal(f.nccl, "");
    dt_msg_free(DT_MSG_FACTS, (union dt_msg *)&f);
}

/* The library is read in parts of 1 MiB. */
static void a_version_on_the_border_of_two_parts_is_whole(void **state)
{
    static const char says[] = "NCCL version 2.28.9+cuda13.0";
    const size_t border = 1024 * 1024;
    char *library = malloc(border + 64);

    (void)state;
    setenv("DTRUN_NCCL", root_of("/own/nccl"), 1);
    for (size_t before = 0; before < sizeof says; before++) {
        struct dt_msg_facts f = { 0 };

        memset(library, 'x', border + 64);
        memcpy(library + border - before, says, sizeof says - 1);
        library[border + 63] = '\0';
        put("/own/nccl", library);
        dt_gpustate_read(&f, root);
        assert_string_equal(f.nccl, "2.28.9");
        dt_msg_free(DT_MSG_FACTS, (union dt_msg *)&f);
    }
    unsetenv("DTRUN_NCCL");
    free(library);
}

static void expect_nccl(const char *version)
{
    struct dt_msg_facts f = { 0 };

    dt_gpustate_read(&f, root);
    assert_string_equal(f.nccl, version);
    dt_msg_free(DT_MSG_FACTS, (union dt_msg *)&f);
}

/* Each place in turn hides the earlier ones. */
static void nccl_is_found_where_libdtrun_finds_it(void **state)
{
    (void)state;
    unsetenv("VIRTUAL_ENV");
    unsetenv("LD_LIBRARY_PATH");
    fill_linkers_cache();
    expect_nccl("2.28.9");
    put("/usr/lib/python3/dist-packages/nvidia/nccl/lib/libnccl.so.2", "NCCL version 2.20.5 ...");
    expect_nccl("2.20.5");
    put("/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2", "NCCL version 2.21.5 .");
    expect_nccl("2.20.5");
    setenv("VIRTUAL_ENV", "/venv", 1);
    expect_nccl("2.21.5");
    put("/opt/nccl/libnccl.so.2", "NCCL version 2.27.3 ...");
    setenv("LD_LIBRARY_PATH", root_of("/opt/none"), 1);
    expect_nccl("2.21.5");
    setenv("LD_LIBRARY_PATH", root_of("/opt/nccl"), 1);
    expect_nccl("2.27.3");
    put("/own/nccl", "NCCL version 2.26.2 ...");
    setenv("DTRUN_NCCL", root_of("/own/nccl"), 1);
    expect_nccl("2.26.2");
    setenv("DTRUN_NCCL", root_of("/own/none"), 1);
    expect_nccl("");
    unsetenv("DTRUN_NCCL");
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("VIRTUAL_ENV");
    put("/etc/ld.so.cache", "");
}

/* The test below runs this as nvidia-smi. While a tracer holds it, its parent does not learn of its
 * death, so it seems to wait inside the kernel. The tracer ends when the other end of the pipe
 * TEST_LEASH is closed. */
static int be_stuck_smi(void)
{
    int ready[2], leash = atoi(getenv("TEST_LEASH"));
    char byte;

    if (pipe(ready) < 0)
        return 1;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* fails where no permission is needed */
    if (fork() == 0) {
        fclose(stdout);
        if (ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) == 0 && write(ready[1], "", 1) != 1)
            _exit(1);
        close(ready[1]);
        while (read(leash, &byte, 1) > 0)
            continue;
        _exit(0);
    }
    close(ready[1]);
    puts("GPU 0: NVIDIA A30 (UUID: GPU-1)");
    if (read(ready[0], &byte, 1) != 1)
        puts("GPU 1: untraced");
    fclose(stdout);
    for (;;)
        pause();
}

static void an_nvidia_smi_that_cannot_be_killed_is_abandoned(void **state)
{
    static struct dt_groups groups;
    struct dt_strs gpus = { 0 };
    char self[512] = "", leash[16], *path = strdup(getenv("PATH"));
    int ends[2];

    (void)state;
    alarm(120); /* a watchdog */
    put("/dev/nvidiactl", "");
    put("/bin/other", "");
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    assert_int_equal(symlink(self, root_of("/bin/nvidia-smi")), 0);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFD, FD_CLOEXEC), 0);
    snprintf(leash, sizeof leash, "%d", ends[0]);
    setenv("TEST_LEASH", leash, 1);
    setenv("PATH", root_of("/bin"), 1);
    dt_gpus_detect(&gpus, root, &groups);
    setenv("PATH", path, 1);
    free(path);
    if (gpus.n == 2)
        skip(); /* ptrace is not allowed here */
    assert_int_equal(gpus.n, 1);
    assert_string_equal(gpus.v[0], "0");
    assert_int_equal(waitpid(-1, NULL, WNOHANG), 0); /* the process exists and cannot be reaped */
    assert_int_equal(groups.nabandoned, 1);
    close(ends[0]);
    close(ends[1]);
    assert_true(waitpid(-1, NULL, 0) > 0);
    alarm(0);
    dt_strs_free(&gpus);
}

/* A sweep returns the number of processes it waits for. */
static void sweeps_do_not_wait_for_abandoned_processes(void **state)
{
    static struct dt_groups groups;
    struct dt_leftover example = { 0 };
    pid_t children[2];
    int status;

    (void)state;
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0)
            for (;;)
                pause();
    }
    dt_groups_abandon(&groups, children[0]);
    assert_int_equal(dt_sweep_kill(&groups, DT_SPARE_NONE, &example, NULL, NULL), 1);
    assert_int_equal(example.pid, children[1]);
    assert_int_equal(example.error, 0);
    assert_int_equal(waitpid(children[1], &status, 0), children[1]);
    assert_int_equal(dt_sweep_kill(&groups, DT_SPARE_NONE, NULL, NULL, NULL), 0);
    groups.abandoned[0].started++; /* an earlier process with this id */
    assert_int_equal(dt_sweep_kill(&groups, DT_SPARE_NONE, NULL, NULL, NULL), 1);
    assert_int_equal(waitpid(children[0], &status, 0), children[0]);
}

static void count(void *arg)
{
    ++*(size_t *)arg;
}

/* There are at least two: this one and its child. */
static void a_sweep_shows_that_it_is_alive_for_each_process(void **state)
{
    static struct dt_groups groups;
    size_t signs = 0;
    pid_t child = fork();

    (void)state;
    if (child == 0)
        for (;;)
            pause();
    assert_int_equal(dt_sweep_kill(&groups, DT_SPARE_NONE, NULL, count, &signs), 1);
    assert_true(signs >= 2);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(limits_of_the_host_are_read, make_root, remove_root),
        cmocka_unit_test_setup_teardown(the_cgroup_that_refuses_processes_is_named, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(facts_of_the_host_are_read, make_root, remove_root),
        cmocka_unit_test_setup_teardown(the_disk_is_measured, make_root, remove_root),
        cmocka_unit_test_setup_teardown(gpus_are_found, make_root, remove_root),
        cmocka_unit_test_setup_teardown(gpus_have_indexes_and_mig_devices_uuids, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(gpus_without_a_tool_are_counted, make_root, remove_root),
        cmocka_unit_test_setup_teardown(gpus_without_device_files_are_those_of_nvidia_smi,
                                        make_root, remove_root),
        cmocka_unit_test_setup_teardown(files_that_an_unloaded_driver_left_are_no_gpus, make_root,
                                        remove_root),
        cmocka_unit_test(nvidia_smi_reports_models_driver_and_memory_errors),
        cmocka_unit_test(nvidia_smi_reports_how_gpus_are_linked),
        cmocka_unit_test_setup_teardown(
            xids_come_from_the_kernels_log_and_nccl_from_the_linkers_cache, make_root, remove_root),
        cmocka_unit_test_setup_teardown(a_version_on_the_border_of_two_parts_is_whole, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(nccl_is_found_where_libdtrun_finds_it, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(an_nvidia_smi_that_cannot_be_killed_is_abandoned, make_root,
                                        remove_root),
        cmocka_unit_test(a_sweep_shows_that_it_is_alive_for_each_process),
        cmocka_unit_test(sweeps_do_not_wait_for_abandoned_processes),
    };

    if (argc > 0 && strcmp(argv[0], "nvidia-smi") == 0)
        return be_stuck_smi();
    return cmocka_run_group_tests_name("hostfacts", tests, NULL, NULL);
}
