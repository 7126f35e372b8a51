/* The agent on this machine: a child process. It may pretend to be another host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/agentargs.h"
#include "launcher/base/mem.h"
#include "launcher/base/openfiles.h"
#include "launcher/remote/transport.h"
#include "launcher/remote/transport_child.h"
#include "runtime/wire/env.h"

enum { GRACE_MS = 5000 }; /* the keeper may have many processes to end */

struct dt_transport {
    struct dt_transport_child base;
    const struct dt_remote *remote;
};

static void on_local_ended(void *arg, const struct dt_child_end *end)
{
    struct dt_transport *t = arg;
    struct dt_error why = { 0 };

    if (end->spawn_error)
        dt_error_set(&why, "agent start: %s: %s; %s", t->remote->agent_path,
                     uv_strerror(end->spawn_error),
                     dt_child_remedy(end->spawn_error, "reinstall dtrun, or set DTRUN_AGENT"));
    else if (end->signo && !end->closed)
        dt_error_set(&why, "agent: dtrun-agent was killed by signal %d (%s)", end->signo,
                     strsignal(end->signo));
    else if (end->code && !end->closed)
        dt_child_explain_code(&why, "dtrun-agent", (int)end->code);
    t->base.pass.events.closed(t->base.pass.arg, &why);
    free(t);
}

/* Returns this process's environment, preceded by a variable that tells several agents on one
 * machine apart. */
static const char **environment_with(const char *identity)
{
    size_t n = 0;
    const char **env;

    while (environ[n])
        n++;
    env = dt_xcalloc(n + 2, sizeof *env);
    env[0] = identity;
    memcpy(env + 1, environ, n * sizeof *env);
    return env;
}

static struct dt_transport *local_open(uv_loop_t *loop, const struct dt_remote *remote,
                                       const struct dt_transport_events *events, void *arg)
{
    static const struct dt_child_events child_events = { dt_pass_data, dt_pass_noise,
                                                         dt_pass_drained, on_local_ended };
    struct dt_transport *t = dt_xcalloc(1, sizeof *t);
    char files[sizeof DT_AGENT_OPEN_FILES + 20];
    const char *argv[4] = { remote->agent_path };
    size_t n = 1;
    const char **env = NULL;
    char *identity = NULL;

    snprintf(files, sizeof files, DT_AGENT_OPEN_FILES "%llu",
             (unsigned long long)dt_openfiles_before());
    if (dt_openfiles_before())
        argv[n++] = files;
    if (remote->alone)
        argv[n++] = DT_AGENT_ALONE;
    t->remote = remote;
    t->base.pass = (struct dt_pass){ *events, arg };
    if (!remote->host->local) {
        identity = dt_xasprintf(DT_ENV_HOSTID "=%s", remote->host->name);
        env = environment_with(identity);
    }
    t->base.child = dt_child_open(loop, argv, env, GRACE_MS, &child_events, t);
    free(env);
    free(identity);
    return t;
}

static const char *local_phase(const struct dt_transport *t)
{
    (void)t;
    return "agent start";
}

const struct dt_transport_ops dti_transport_local = {
    .name = "local",
    .open = local_open,
    .write = dt_transport_child_write,
    .phase = local_phase,
    .pending = dt_transport_child_pending,
    .close = dt_transport_child_close,
};
