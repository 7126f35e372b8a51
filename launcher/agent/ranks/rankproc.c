#include "launcher/agent/ranks/rankproc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/agent/facts/topology.h"
#include "launcher/base/closefrom.h"
#include "launcher/base/mem.h"
#include "launcher/base/process.h"
#include "launcher/base/program/horovodneeds.h"
#include "launcher/base/program/mpineeds.h"
#include "launcher/base/program/program.h"
#include "launcher/place/envlist.h"
#include "launcher/place/envrules.h"
#include "launcher/place/frameworks.h"
#include "launcher/place/gpu.h"
#include "runtime/wire/ncclfile.h"

enum { FIRST_PRIVATE_FD = DT_SPAWN_PMI_FD + 1 };

_Static_assert(sizeof(struct dt_rank_report) <= PIPE_BUF, "reports would mix in the pipe");

static void send_report(int errors, const struct dt_rank_report *report)
{
    ssize_t n;

    do
        n = write(errors, report, sizeof *report);
    while (n < 0 && errno == EINTR);
}

static __attribute__((noreturn)) void
exit_with_report(int errors, uint32_t index, enum dt_spawn_step step, int error, const char *what)
{
    struct dt_rank_report report = {
        .index = index,
        .step = (uint8_t)step,
        .error = error,
    };

    snprintf(report.what, sizeof report.what, "%s", what);
    send_report(errors, &report);
    _exit(DT_EXIT_NOT_FOUND);
}

/* An ignored signal stays ignored across exec, so this undoes what our own parents ignore. glibc
 * reserves two signals (32 and 33), which other runtimes may leave ignored; only the system call
 * can reset them. A zeroed action is SIG_DFL. */
static void default_signals(void)
{
    static const unsigned long zero[16];

    /* Drops what is pending: no program could have handled it before it ran. */
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    for (int signo = 1; signo < _NSIG; signo++)
        syscall(SYS_rt_sigaction, signo, zero, NULL, (_NSIG - 1) / 8);
}

struct private_fds { /* as in struct dt_rankproc, but with numbers that no target needs */
    int gate, errors, go;
};

/* The number of one socket may be the target of the other. */
static int pass_sockets(const struct dt_rankproc *p)
{
    int socket = fcntl(p->socket, F_DUPFD_CLOEXEC, FIRST_PRIVATE_FD);
    int pmi = fcntl(p->pmi, F_DUPFD_CLOEXEC, FIRST_PRIVATE_FD);

    if (socket < 0 || pmi < 0 || dup2(socket, DT_SPAWN_SOCKET_FD) < 0)
        return -1;
    return dup2(pmi, DT_SPAWN_PMI_FD);
}

/* Moves the descriptors away from the target numbers, then to them. */
static int arrange(const struct dt_rankproc *p, struct private_fds *fds)
{
    fds->errors = fcntl(p->errors, F_DUPFD_CLOEXEC, FIRST_PRIVATE_FD);
    fds->gate = fcntl(p->gate, F_DUPFD_CLOEXEC, FIRST_PRIVATE_FD);
    fds->go = fcntl(p->go, F_DUPFD_CLOEXEC, FIRST_PRIVATE_FD);
    if (fds->errors < 0 || fds->gate < 0 || fds->go < 0)
        return -1;
    if (dup2(p->in, STDIN_FILENO) < 0 || dup2(p->out, STDOUT_FILENO) < 0 ||
        dup2(p->err, STDERR_FILENO) < 0)
        return -1;
    dt_close_from(STDERR_FILENO + 1, true);
    return p->socket < 0 ? 0 : pass_sockets(p);
}

static const char *value_of(const struct dt_strs *env, const char *name)
{
    const char *entry = dt_envlist_find(env, name, strlen(name));

    return entry ? entry + strlen(name) + 1 : NULL;
}

/* The directory of pushed files comes first, because libdtrun may be there beside the program. */
static void add_library_dir(struct dt_strs *env, const char *dir)
{
    static const char name[] = "LD_LIBRARY_PATH";
    const char *old = value_of(env, name);
    char *dirs = dt_xasprintf("%s%s%s", dir, old && *old ? ":" : "", old ? old : "");

    dt_envlist_put_text(env, name, dirs);
    free(dirs);
}

static bool is_rank(const struct dt_spawn_config *config, uint32_t index)
{
    return index < config->start->ranks.n;
}

/* Returns how many cores the rank has for itself. Auxiliaries may run on any CPU. */
static uint32_t bind_to_cpus(const struct dt_spawn_config *config, uint32_t index, int *error)
{
    uint32_t ranks = config->start->ranks.n, cores;
    uint32_t share = config->cores > ranks ? config->cores / ranks : 1;
    struct dt_u32s own = { 0 };

    *error = 0;
    if (config->start->bind_to == DT_BIND_NONE || !is_rank(config, index))
        return share;
    own.v = dt_xcalloc(config->cpus.n, sizeof *own.v);
    cores = dt_bind(&own, (enum dt_bind_to)config->start->bind_to, &config->cpus, index, ranks);
    *error = dt_topology_bind(&own);
    free(own.v);
    return config->cores_limited && share < cores ? share : cores;
}

/* If each rank has its own device, none is left for auxiliaries. */
static const char *device_of(const struct dt_spawn_config *config, uint32_t index)
{
    if (!config->has_mask)
        return NULL;
    if (!is_rank(config, index) && config->start->gpu_bind == DT_GPU_BIND_RANK)
        return "";
    return dt_gpu_of(&config->devices, index);
}

static struct dt_env_rank env_rank(const struct dt_spawn_config *config, uint32_t index)
{
    return (struct dt_env_rank){
        .start = config->start,
        .number = config->numbers.v[index],
        .local_rank = index,
        .device = device_of(config, index),
        .agent_fd = DT_SPAWN_SOCKET_FD,
        .pmi_fd = DT_SPAWN_PMI_FD,
        .ras_port = config->ras_port,
    };
}

static void make_environment(struct dt_strs *env, const struct dt_spawn_config *config,
                             uint32_t index, uint32_t threads)
{
    struct dt_env_rank rank = env_rank(config, index);

    rank.threads = threads;
    dt_env_for_rank(env, environ, &rank);
    if (config->start->file_dir[0])
        add_library_dir(env, config->start->file_dir);
}

/* Other launchers look in the working directory, too, some split a quoted command line, and a shell
 * takes variables before a program. */
static int find_in_path(char *path, size_t size, const char *name, const char *search)
{
    int rc = dt_program_find(path, size, name, search);

    if (rc == ENOENT && !strchr(name, '/') && access(name, X_OK) == 0)
        snprintf(path, size, "%s is not in PATH, but ./%s exists", name, name);
    else if (rc == ENOENT && name[strcspn(name, "=/ ")] == '=')
        snprintf(path, size, "%s is not a program (write -x %s to set a variable)", name, name);
    else if (rc == ENOENT && strchr(name, ' '))
        snprintf(path, size, "\"%s\" is one word (are there quotes around all of it?)", name);
    return rc;
}

/* Whether the program was pushed, as a file or in a directory: --push src src/train. */
static bool find_pushed(char *path, size_t size, const char *dir, const char *name)
{
    snprintf(path, size, "%s/%s", dir, basename(name));
    if (access(path, F_OK) == 0)
        return true;
    snprintf(path, size, "%s/%s", dir, name);
    return name[0] != '/' && strchr(name, '/') && access(path, F_OK) == 0;
}

static void note_noexec(char *path, size_t size)
{
    size_t n = strlen(path);
    struct statvfs fs;

    if (statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOEXEC))
        snprintf(path + n, size - n, " is on a file system that is mounted noexec");
}

/* A pushed program runs from where it was put, whatever path the user gave. */
static int find_program(char *path, size_t size, const struct dt_msg_start *start,
                        const struct dt_strs *env)
{
    const char *name = start->argv.v[0];

    if (start->file_dir[0] && find_pushed(path, size, start->file_dir, name))
        return dt_program_find(path, size, dt_xstrdup(path), NULL);
    return find_in_path(path, size, name, value_of(env, "PATH"));
}

static void inspect_program(struct dt_rank_report *report, const struct dt_msg_start *start,
                            const char *path, const struct dt_strs *env)
{
    if (!dt_mpi_needs_pmix(path, &start->argv, value_of(env, "PATH"),
                           value_of(env, "LD_LIBRARY_PATH"), report->what, sizeof report->what))
        snprintf(report->what, sizeof report->what, "%s",
                 start->frameworks & DT_FRAMEWORK_MPI ? "--env mpi" : "");
    dt_horovod_is_used(path, &start->argv, report->horovod, sizeof report->horovod);
}

/* All ranks run the same program, so one rank of each host inspects it. */
static void wait_at_gate(int gate, int errors, const struct dt_rankproc *p, const char *path,
                         const struct dt_strs *env)
{
    struct dt_rank_report report = { .index = p->index, .ready = true };
    ssize_t n;
    char byte;

    if (p->index == 0)
        inspect_program(&report, p->config->start, path, env);
    send_report(errors, &report);
    do
        n = read(gate, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        _exit(DT_EXIT_LAUNCH); /* another rank failed */
}

/* Adds the names of those defaults that a file of NCCL sets, be it the host's or the user's. */
static void find_in_nccl_conf(struct dt_strs *names, const struct dt_strs *env)
{
    struct dt_strs files = { 0 };
    char value[DT_NCCLFILE_TEXT];

    dt_env_nccl_files(&files, env);
    for (const char *const *name = dt_env_nccl_defaults; *name; name++)
        for (uint32_t i = 0; i < files.n; i++)
            if (dt_ncclfile_find(files.v[i], *name, value))
                dt_xstrs_add(names, *name);
}

/* Returns -1, with errno, if the file does not hold GO. */
static int complete_environment(struct dt_strs *env, const struct dt_spawn_config *config,
                                uint32_t index, int file)
{
    struct dt_env_rank rank = env_rank(config, index);
    struct dt_strs in_nccl_conf = { 0 };
    struct stat st;
    union dt_msg go;
    void *payload;

    if (fstat(file, &st) < 0)
        return -1;
    payload = dt_xcalloc(1, (size_t)st.st_size + 1);
    if (pread(file, payload, (size_t)st.st_size, 0) != st.st_size ||
        dt_msg_decode(DT_MSG_GO, payload, (size_t)st.st_size, &go) < 0)
        return -1;
    find_in_nccl_conf(&in_nccl_conf, env);
    rank.in_nccl_conf = &in_nccl_conf;
    dt_env_at_go(env, &rank, &go.go);
    return 0;
}

/* The rank reports its binding itself, so that the line goes to its standard error. */
static void report_binding(const struct dt_rankproc *p)
{
    const struct dt_msg_start *start = p->config->start;
    char *cpus;

    if (!start->report_bindings || !is_rank(p->config, p->index))
        return;
    cpus = dt_topology_describe();
    dprintf(STDERR_FILENO, "dtrun: rank %u on %s may use CPUs %s\n", p->config->numbers.v[p->index],
            start->host, cpus);
    free(cpus);
}

void dt_rankproc_run(const struct dt_rankproc *p)
{
    const struct dt_msg_start *start = p->config->start;
    struct dt_strs env = { 0 };
    char path[PATH_MAX];
    char what[sizeof((struct dt_rank_report *)0)->what];
    struct private_fds fds;
    uint32_t cores;
    int rc;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != p->parent)
        _exit(DT_EXIT_LAUNCH); /* the agent died before prctl could take effect */
    setpgid(0, 0);             /* the rank stays in the agent's session: see ARCHITECTURE.md */
    if (arrange(p, &fds) < 0)
        exit_with_report(p->errors, p->index, DT_SPAWN_SYSTEM, errno, "dup2");
    setrlimit(RLIMIT_NOFILE, &p->config->files_limit);
    setrlimit(RLIMIT_FSIZE, &p->config->file_size_limit);
    if (start->wdir[0] && chdir(start->wdir) < 0)
        exit_with_report(fds.errors, p->index, DT_SPAWN_WDIR, errno, start->wdir);
    cores = bind_to_cpus(p->config, p->index, &rc);
    if (rc)
        exit_with_report(fds.errors, p->index, DT_SPAWN_SYSTEM, rc,
                         "sched_setaffinity (--bind-to)");
    make_environment(&env, p->config, p->index, cores);
    rc = find_program(path, sizeof path, start, &env);
    if (rc == EACCES)
        note_noexec(path, sizeof path);
    if (rc)
        exit_with_report(fds.errors, p->index, DT_SPAWN_EXEC, rc, path);
    wait_at_gate(fds.gate, fds.errors, p, path, &env);
    if (complete_environment(&env, p->config, p->index, fds.go) < 0)
        exit_with_report(fds.errors, p->index, DT_SPAWN_SYSTEM, errno, "the rank's environment");
    report_binding(p);
    default_signals();
    dt_process_unblock_signals();
    execve(path, start->argv.v, env.v);
    rc = dt_program_explain(what, sizeof what, path, errno);
    exit_with_report(fds.errors, p->index, DT_SPAWN_EXEC, rc, what);
}
