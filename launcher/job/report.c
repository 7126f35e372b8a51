#include "launcher/job/report.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/base/writeall.h"
#include "launcher/job/engine.h"
#include "launcher/job/exitpolicy.h"
#include "launcher/job/json.h"

/* null for a job that did not fail; rank, code and signal are null where no rank was the cause. */
static void add_cause(const struct dt_job *j, cJSON *to)
{
    const struct dt_death *d = j->has_final_cause ? &j->final_cause : NULL;
    bool process = d && !d->host, rank = process && !d->auxiliary;
    char role[DT_ROLE_NAME_MAX];
    const struct dt_plan_node *node = d ? dt_plan_node_of(&j->plan, (int)d->rank) : NULL;
    cJSON *cause;

    if (!j->cause_text) {
        cJSON_AddNullToObject(to, "cause");
        return;
    }
    cause = cJSON_AddObjectToObject(to, "cause");
    dt_json_add_number(cause, "rank", rank, rank ? d->rank : 0);
    if (j->nprocs > j->np)
        dt_json_add_text(cause, "role", process ? dt_role_name(role, d->rank, j->np) : NULL);
    dt_json_add_text(cause, "host", node ? dt_job_host_name(j, node->host) : NULL);
    dt_json_add_number(cause, "code", process && d->signo == 0 && !d->hung, process ? d->code : 0);
    dt_json_add_number(cause, "signal", process && d->signo != 0, process ? d->signo : 0);
    dt_json_add_text(cause, "message", j->cause_text);
}

static void add_recoveries(const struct dt_job *j, cJSON *to)
{
    cJSON *list = cJSON_AddArrayToObject(to, "recoveries");

    for (size_t i = 0; i < j->nrecoveries; i++) {
        const struct dt_recovery *r = &j->recoveries[i];
        cJSON *item = cJSON_CreateObject();

        cJSON_AddNumberToObject(item, "generation", r->generation);
        cJSON_AddStringToObject(item, "mode", "restart");
        dt_json_add_text(item, "cause", r->cause);
        dt_json_add_number(item, "from_step", r->from_step >= 0, (double)r->from_step);
        cJSON_AddStringToObject(item, "source", r->from_step >= 0 ? "checkpoint" : "none");
        cJSON_AddNumberToObject(item, "delay_seconds", r->delay_s);
        cJSON_AddNumberToObject(item, "detect_seconds", r->detect_seconds);
        dt_json_add_number(item, "seconds", r->seconds >= 0, r->seconds);
        cJSON_AddItemToArray(list, item);
    }
}

static void add_absences(const struct dt_job *j, cJSON *to)
{
    cJSON *list = cJSON_AddArrayToObject(to, "left_out");

    for (size_t i = 0; i < j->nabsences; i++) {
        const struct dt_absence *absence = &j->absences[i];
        cJSON *item = cJSON_CreateObject();

        dt_json_add_text(item, "host", dt_job_host_name(j, absence->host));
        cJSON_AddNumberToObject(item, "from_generation", absence->from);
        dt_json_add_number(item, "until_generation", absence->until != 0, absence->until);
        cJSON_AddItemToArray(list, item);
    }
}

static void add_process(const struct dt_rank *r, cJSON *to)
{
    bool known = r->ended && (r->end.code >= 0 || r->end.signo);

    dt_json_add_number(to, "pid", r->pid != 0, r->pid);
    dt_json_add_number(to, "exit_code", known,
                       known ? dt_exit_of_rank(r->end.code, r->end.signo) : 0);
}

static void add_ranks(const struct dt_job *j, cJSON *to)
{
    cJSON *list = cJSON_AddArrayToObject(to, "ranks");

    for (uint32_t i = 0; i < j->np; i++) {
        const struct dt_rank *r = &j->ranks[i];
        const struct dt_plan_node *node = dt_plan_node_of(&j->plan, (int)i);
        cJSON *item = cJSON_CreateObject();

        cJSON_AddNumberToObject(item, "rank", i);
        dt_json_add_text(item, "host", dt_job_host_name(j, node->host));
        cJSON_AddNumberToObject(item, "local_rank", dt_plan_local_rank(node, (int)i));
        dt_json_add_text(item, "device", r->device);
        add_process(r, item);
        cJSON_AddItemToArray(list, item);
    }
}

static void add_auxiliaries(const struct dt_job *j, cJSON *to)
{
    cJSON *list = j->nprocs > j->np ? cJSON_AddArrayToObject(to, "auxiliaries") : NULL;
    char role[DT_ROLE_NAME_MAX];

    for (uint32_t i = j->np; i < j->nprocs; i++) {
        const struct dt_plan_node *node = dt_plan_node_of(&j->plan, (int)i);
        cJSON *item = cJSON_CreateObject();

        cJSON_AddStringToObject(item, "role", dt_role_name(role, i, j->np));
        dt_json_add_text(item, "host", dt_job_host_name(j, node->host));
        add_process(&j->ranks[i], item);
        cJSON_AddItemToArray(list, item);
    }
}

/* Steps that were lost for sure; null when a restart happened of which that is not known. */
static void add_lost_steps(const struct dt_job *j, cJSON *to)
{
    bool known = true;
    int64_t lost = dt_job_lost_steps(j, &known);

    dt_json_add_number(to, "lost_steps", known || lost > 0, (double)lost);
}

static char *print(const struct dt_job *j)
{
    cJSON *root = cJSON_CreateObject();
    char *text;

    cJSON_AddStringToObject(root, "version", PACKAGE_VERSION);
    dt_json_add_texts(root, "command", &j->config->argv);
    cJSON_AddNumberToObject(root, "np", j->np);
    cJSON_AddNumberToObject(root, "exit_code", j->exit_code);
    cJSON_AddNumberToObject(root, "seconds", (double)(j->ended_ns - j->began_ns) / 1e9);
    add_cause(j, root);
    cJSON_AddNumberToObject(root, "restarts", j->restart.restarts);
    add_lost_steps(j, root);
    add_recoveries(j, root);
    add_absences(j, root);
    add_ranks(j, root);
    add_auxiliaries(j, root);
    text = cJSON_Print(root);
    cJSON_Delete(root);
    return text;
}

static int write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int failed, saved;

    if (fd < 0)
        return -1;
    failed =
        dt_write_all(fd, text, strlen(text)) < 0 || dt_write_all(fd, "\n", 1) < 0 || fsync(fd) < 0;
    saved = errno;
    failed |= close(fd) < 0;
    if (failed)
        unlink(path);
    errno = saved;
    return failed ? -1 : 0;
}

/* Which of our own descriptors leads there, as with /dev/stdout; -1: none. */
static int own_output(const struct stat *st)
{
    struct stat ours;

    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fstat(fd, &ours) == 0 && ours.st_dev == st->st_dev && ours.st_ino == st->st_ino)
            return fd;
    }
    return -1;
}

/* A file that is our own output has to be written to at the same offset, or who writes to it after
 * us writes over the report. O_NONBLOCK: a FIFO that nobody reads is an error, not a reason to
 * wait. */
static int open_stream(const char *path)
{
    struct stat st;
    int fd = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? own_output(&st) : -1;

    if (fd >= 0)
        return fcntl(fd, F_DUPFD_CLOEXEC, 0);
    fd = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0)
        fcntl(fd, F_SETFL, O_APPEND);
    return fd;
}

static int write_into(const char *path, const char *text)
{
    int fd = open_stream(path);
    int failed, saved;

    if (fd < 0)
        return -1;
    failed = dt_write_all(fd, text, strlen(text)) < 0 || dt_write_all(fd, "\n", 1) < 0;
    saved = errno;
    close(fd);
    errno = saved;
    return failed ? -1 : 0;
}

/* The file is there whole or not at all. */
static int replace(const char *path, const char *text)
{
    char *temporary = dt_xasprintf("%s.%d.tmp", path, (int)getpid());
    int rc = write_file(temporary, text), saved;

    if (rc == 0 && rename(temporary, path) < 0) {
        saved = errno;
        unlink(temporary);
        errno = saved;
        rc = -1;
    }
    free(temporary);
    return rc;
}

/* A device, a FIFO, or where our own output goes, as with /dev/stdout: to be written to, never
 * replaced. */
static bool is_stream(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0 || S_ISDIR(st.st_mode))
        return false;
    return !S_ISREG(st.st_mode) || own_output(&st) >= 0;
}

static int try_target(const char *path)
{
    char *copy;
    struct stat st;
    int rc;

    if (is_stream(path))
        return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    copy = dt_xstrdup(path);
    rc = faccessat(AT_FDCWD, dirname(copy), W_OK | X_OK, AT_EACCESS);
    free(copy);
    return rc;
}

int dt_report_check(const char *path, struct dt_error *err)
{
    if (try_target(path) == 0)
        return 0;
    return dt_error_usage(err, "--report %s: %s", path, strerror(errno));
}

int dt_report_write(const struct dt_job *job, const char *path, struct dt_error *err)
{
    char *target = realpath(path, NULL); /* a link stays one */
    char *text = print(job);
    int rc = is_stream(path) ? write_into(path, text) : replace(target ? target : path, text);

    if (rc < 0)
        dt_error_set(err, "--report %s: %s", path, strerror(errno));
    free(text);
    free(target);
    return rc;
}
