/* dtrun: from the user's command line to a running job. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/buildinfo.h"
#include "cmd/completion.h"
#include "cmd/config.h"
#include "cmd/dryrun.h"
#include "cmd/firstprocess.h"
#include "cmd/options.h"
#include "cmd/request.h"
#include "launcher/base/ckptdir.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/base/number.h"
#include "launcher/base/openfiles.h"
#include "launcher/base/printed.h"
#include "launcher/base/process.h"
#include "launcher/base/program/installed.h"
#include "launcher/base/program/mpineeds.h"
#include "launcher/base/program/program.h"
#include "launcher/check/check.h"
#include "launcher/driver/driver.h"
#include "launcher/driver/reportfile.h"
#include "launcher/io/json.h"
#include "launcher/io/outname.h"
#include "launcher/place/envrules.h"
#include "launcher/place/frameworks.h"
#include "launcher/remote/rshcommand.h"
#include "launcher/remote/ssh/sshconfig.h"
#include "runtime/wire/env.h"

enum {
    COLLECTIVE_TIMEOUT_S = 600, /* the default of --collective-timeout */
    PATH_BYTES_MAX = 4000,      /* PATH_MAX, less the names that a job appends */
    /* files that dtrun has open at a time, with room to spare */
    FILES_PER_HOST = 4,
    FILES_OTHER = 64, /* for everything but hosts */
};

static const struct dt_transport_ops *transport_of(const struct dt_host *host, void *arg)
{
    const struct dt_options *o = arg;

    switch (o->transport) {
    case DT_TRANSPORT_LIBSSH2:
        return &dti_transport_libssh2;
    case DT_TRANSPORT_SSH:
        return &dti_transport_ssh;
    case DT_TRANSPORT_LOCAL:
        return &dti_transport_local;
    case DT_TRANSPORT_SRUN:
        return &dti_transport_srun;
    default:
        if (host->local)
            return &dti_transport_local;
        if (o->rsh)
            return &dti_transport_rsh;
        return dt_request_reached_by_srun(host) ? &dti_transport_srun : &dti_transport_auto;
    }
}

static char *absolute(const char *base, const char *path)
{
    return *path == '/' ? dt_xstrdup(path) : dt_xpath(base, path);
}

static int check_checkpoints(const struct dt_options *o, bool has_checkpoints, struct dt_error *err)
{
    if (!has_checkpoints || o->job.resume || o->job.fresh)
        return 0;
    return dt_error_usage(
        err,
        "--checkpoint-dir %s holds checkpoints of an earlier job: --resume continues "
        "from the newest, --fresh starts afresh",
        o->checkpoint_dir);
}

static int check_identities(const struct dt_options *o, const struct dt_hostlist *hosts,
                            struct dt_error *err)
{
    for (size_t i = 0; i < hosts->n; i++) {
        const struct dt_host *h = &hosts->v[i];

        if (h->identity && transport_of(h, (void *)(uintptr_t)o) != &dti_transport_local &&
            dt_sshconfig_check_identity(h->identity, err) < 0)
            return dt_error_prefix(err, "%s: ", h->name);
    }
    return 0;
}

/* Rejects a path that is too long for the agents. */
static int check_path(const char *what, const char *path, struct dt_error *err)
{
    if (!path || strlen(path) <= PATH_BYTES_MAX)
        return 0;
    return dt_error_usage(err, "%s %.60s...: the path is longer than %d bytes", what, path,
                          PATH_BYTES_MAX);
}

static int check_config(const struct dt_options *o, const struct dt_driver_config *d,
                        struct dt_error *err)
{
    const struct dt_job_config *c = &d->job;

    if (!c->wdir || !d->access.agent_path)
        return -1; /* err already says why it was not found */
    if (check_path("working directory", c->wdir, err) < 0 ||
        check_path("--checkpoint-dir", c->checkpoint_dir, err) < 0)
        return -1;
    if (check_checkpoints(o, c->has_checkpoints, err) < 0)
        return -1;
    if (check_identities(o, c->hosts, err) < 0)
        return -1;
    /* The directory may be one that --output-dir is about to create. */
    if (o->report && (!o->output_dir || dt_report_has_dir(o->report)) &&
        dt_report_check(o->report, err) < 0)
        return -1;
    return 0;
}

static bool are_all_local(const struct dt_hostlist *hosts)
{
    for (size_t i = 0; i < hosts->n; i++) {
        if (!hosts->v[i].local)
            return false;
    }
    return true;
}

/* A host without an agent has no PMIx server either. dtrun sends one with --env mpi, or if the copy
 * of the program on this machine needs it. Returns a path to free, or NULL. */
static char *pmix_for(const struct dt_options *o, const struct dt_hostlist *hosts)
{
    char path[PATH_MAX], why[PATH_MAX];
    const char *search = getenv("PATH");

    if (!o->job.argv.n || o->no_push || are_all_local(hosts))
        return NULL;
    if (!(o->job.frameworks & DT_FRAMEWORK_MPI) &&
        (dt_program_find(path, sizeof path, o->job.argv.v[0], search) != 0 ||
         !dt_mpi_needs_pmix(path, &o->job.argv, search, getenv("LD_LIBRARY_PATH"), why,
                            sizeof why)))
        return NULL;
    return dt_installed_pmix();
}

static int load_push(struct dt_push_set *set, const struct dt_options *o,
                     const struct dt_hostlist *hosts, struct dt_error *err)
{
    char *library = o->push.n ? dt_installed_library() : NULL;
    char *pmix = pmix_for(o, hosts);
    struct dt_strs paths = { 0 };
    int rc;

    for (uint32_t i = 0; i < o->push.n; i++)
        dt_xstrs_add(&paths, o->push.v[i]);
    if (pmix)
        dt_xstrs_add(&paths, pmix);
    rc = dt_push_load(set, &paths, library, err);
    set->keep = o->keep || !o->push.n; /* without --push there is only the PMIx server */
    dt_strs_free(&paths);
    free(library);
    free(pmix);
    return rc;
}

static uint64_t files_for_hosts(size_t n)
{
    return FILES_OTHER + (uint64_t)n * FILES_PER_HOST;
}

/* Ignores a failure: some hosts may still work, and each of the others reports that a file could
 * not be opened. */
static void raise_file_limit(size_t hosts)
{
    struct dt_error err = { 0 };

    dt_openfiles_need(files_for_hosts(hosts), "hosts", &err);
}

/* Opens the files of --output-dir; with --check only checks whether they could be created. Fills
 * hosts, which has room for a name for each process and must outlive the files. */
static int open_output_files(struct dt_driver_config *d, const struct dt_options *o,
                             const char **hosts, struct dt_error *err)
{
    const struct dt_job_config *c = &d->job;
    struct dt_outfiles_config config = {
        .pattern = o->output_dir,
        .np = (uint32_t)c->plan->np,
        .nprocs = (uint32_t)c->plan->nprocs,
        .hosts = hosts,
        .merged = o->job.merge_stderr,
    };
    uint64_t other_files = files_for_hosts(c->plan->nnodes);

    if (!o->output_dir)
        return 0;
    for (uint32_t i = 0; i < config.nprocs; i++)
        hosts[i] = c->hosts->v[dt_plan_node_of(c->plan, (int)i)->host].name;
    if (dt_openfiles_need(dt_outfiles_count(&config) + other_files, "--output-dir", err) < 0)
        return -1;
    if (o->check)
        return dt_outfiles_check(&config, err);
    d->streams.files = dt_outfiles_open(&config, err);
    return d->streams.files ? 0 : -1;
}

/* rc says how the job ended. If the output is incomplete, a successful job fails. */
static int close_output_files(struct dt_outfiles *files, int rc)
{
    char *name = NULL;

    if (dt_outfiles_close(files, &name) < 0) {
        dt_say("%s cannot be written: %s", name, strerror(errno));
        rc = rc == 0 ? DT_EXIT_LAUNCH : rc;
    }
    free(name);
    return rc;
}

static int check_or_run_job(struct dt_driver_config *d, const struct dt_options *o,
                            struct dt_error *err)
{
    const char **hosts = dt_xcalloc((size_t)d->job.plan->nprocs, sizeof *hosts);
    int rc = open_output_files(d, o, hosts, err);

    if (rc == 0 && o->check)
        rc = dt_check_run(&d->job, &d->access, o->json, err);
    else if (rc == 0 && o->report && dt_report_check(o->report, err) < 0)
        rc = -1;
    else if (rc == 0)
        rc = close_output_files(d->streams.files, dt_driver_run(d));
    free(hosts);
    return rc;
}

/* Without --collective-timeout takes the environment's value, or the default. */
static int set_collective_timeout(int *seconds, struct dt_error *err)
{
    const char *text = getenv(DT_ENV_COLLECTIVE_TIMEOUT);

    if (*seconds >= 0)
        return 0;
    *seconds = COLLECTIVE_TIMEOUT_S;
    if (!text || !*text || dt_number_parse(text, 0, DT_WAIT_MAX_S, seconds, err) == 0)
        return 0;
    return dt_error_usage(err, DT_ENV_COLLECTIVE_TIMEOUT "=%s: a number from 0 to %d was expected",
                          text, DT_WAIT_MAX_S);
}

/* The table of dtrun-perf, which one rank prints, is for scripts, so it gets no labels. With
 * --check there may be no program. */
static bool wants_labels(const struct dt_options *o, int nprocs)
{
    const char *program = o->job.argv.n ? basename(o->job.argv.v[0]) : "";

    return o->tag || (nprocs > 1 && !o->no_tag && strcmp(program, "dtrun-perf") != 0);
}

/* Returns what follows from the arguments alone. launch() fills in the rest. */
static struct dt_driver_config
config_of(const struct dt_options *o, const struct dt_hostlist *hosts, const struct dt_plan *plan)
{
    struct dt_driver_config config = {
        .job = o->job,
        .access = {
            .transport = transport_of,
            .transport_arg = (void *)(uintptr_t)o,
            .push_agent = !o->no_push,
            .accept_new = o->ssh_accept_new,
        },
        .streams = {
            .tee = o->tee,
            .labels = wants_labels(o, plan->nprocs),
            .stamps = o->timestamp,
        },
        .report = o->report,
    };

    config.job.hosts = hosts;
    config.job.plan = plan;
    config.job.output_hidden = o->output_dir && !o->tee;
    return config;
}

/* Tells the ranks the directory of --output-dir, where they write flight records by default, each
 * on its own host. */
static void pass_output_dir(struct dt_job_config *c, const struct dt_options *o, const char *here)
{
    char *base, *dir, *var;

    if (!here || !o->output_dir)
        return;
    base = dt_xstrndup(o->output_dir, dt_outname_base(o->output_dir));
    dir = absolute(here, base);
    var = dt_xasprintf(DT_ENV_OUTPUT_DIR "=%s", dir);
    dt_xstrs_add(&c->env, var);
    free(var);
    free(dir);
    free(base);
}

/* Prefers the name in $PWD: other hosts may have the same link, but not the directory to which it
 * leads here. */
static char *current_directory(struct dt_error *err)
{
    char *here = get_current_dir_name();

    if (here && *here != '/') {
        free(here);
        here = getcwd(NULL, 0);
    }
    if (!here)
        dt_error_set(err, "the current directory: %s; start dtrun in another one", strerror(errno));
    return here;
}

/* Only warns if a variable of -x is not set: as with mpirun, a script can name variables that not
 * every user sets. */
static void make_environment(struct dt_job_config *c, const struct dt_strs *rules)
{
    struct dt_strs absent = { 0 };

    dt_env_base(&c->env, &c->unset, &absent, environ, rules);
    for (uint32_t i = 0; i < absent.n; i++)
        dt_say(
            "-x %s: the variable is not set here, so it is not passed on; to set it: -x %s=VALUE",
            absent.v[i], absent.v[i]);
    dt_strs_free(&absent);
}

static int launch(const struct dt_options *o, const struct dt_hostlist *hosts,
                  const struct dt_plan *plan, struct dt_error *err)
{
    char *here = current_directory(err);
    char *wdir = here && o->wdir ? absolute(here, o->wdir) : NULL;
    char *checkpoints = here && o->checkpoint_dir ? absolute(here, o->checkpoint_dir) : NULL;
    char *agent = here ? dt_installed_agent(err) : NULL;
    struct dt_push_set push = { 0 };
    struct dt_driver_config d = config_of(o, hosts, plan);
    struct dt_job_config *c = &d.job;
    int rc;

    d.access.agent_path = agent;
    c->wdir = wdir ? wdir : here;
    c->checkpoint_dir = checkpoints;
    c->has_checkpoints = checkpoints && dt_ckptdir_is_used(checkpoints);
    d.access.push = &push;
    rc = check_config(o, &d, err);
    if (rc == 0)
        rc = set_collective_timeout(&c->collective_timeout_s, err);
    if (rc == 0 && o->rsh)
        rc = dt_rsh_parse(&d.access.rsh, o->rsh, err);
    if (rc == 0)
        rc = load_push(&push, o, hosts, err);
    if (rc == 0) {
        make_environment(c, &o->env);
        pass_output_dir(c, o, here);
        raise_file_limit(o->check ? hosts->n : plan->nnodes);
        rc = check_or_run_job(&d, o, err);
    }
    dt_strs_free(&d.access.rsh);
    dt_strs_free(&c->env);
    dt_strs_free(&c->unset);
    dt_push_free(&push);
    free(agent);
    free(checkpoints);
    free(wdir);
    free(here);
    return rc;
}

static int plan_and_launch(const struct dt_options *o, struct dt_error *err)
{
    struct dt_hostlist hosts = { 0 };
    struct dt_plan plan = { 0 };
    int rc = dt_request_make(o, &hosts, &plan, err);

    if (rc == 0 && o->dry_run)
        rc = dt_dryrun_print(&hosts, &plan, o, err);
    else if (rc == 0 && o->display_map)
        dt_dryrun_print_map(&hosts, &plan, o);
    if (rc == 0 && !o->dry_run)
        rc = launch(o, &hosts, &plan, err);
    dt_plan_free(&plan);
    dt_hostlist_free(&hosts);
    return rc;
}

static int print_text_or_launch(const struct dt_options *o, struct dt_error *err)
{
    if (!dt_options_ask_for_text(o)) {
        dt_log_set_verbose(o->verbose);
        return plan_and_launch(o, err);
    }
    if (o->help)
        dt_options_print_help();
    else if (o->version)
        puts("dtrun " PACKAGE_VERSION);
    else if (o->check_build)
        dt_buildinfo_print();
    else
        dt_completion_print(o->completion);
    return dt_printed(err);
}

int main(int argc, char **argv)
{
    static struct dt_options options; /* 10 KB: too much for a small stack */
    struct dt_error err = { 0 };
    int rc;

    dt_process_init();
    dt_first_process();
    dt_json_init();
    rc = dt_config_parse(&options, argc, argv, &err);
    if (rc == 0)
        rc = print_text_or_launch(&options, &err);
    if (rc < 0) {
        if (err.text[0])
            dt_say("%s", err.text);
        rc = err.exit_code ? err.exit_code : DT_EXIT_LAUNCH;
    }
    dt_options_free(&options);
    return dt_process_end(rc);
}
