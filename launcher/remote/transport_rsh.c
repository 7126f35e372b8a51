/* Transport over any command that runs another command on a host and passes on its input and output
 * unchanged: the one of --rsh, or Slurm's srun. Steps of srun appear in the accounting of the Slurm
 * job and obey its limits. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/remote/quickack.h"
#include "launcher/remote/rshcommand.h"
#include "launcher/remote/sruncommand.h"
#include "launcher/remote/transport.h"
#include "launcher/remote/transport_child.h"

enum { GRACE_MS = 500 };

struct dt_transport {
    struct dt_transport_child base;
    char *program;               /* the first word of the command */
    bool as_list;                /* the command has no %c */
    bool talks;                  /* it has written something */
    struct dt_quickack quickack; /* for srun */
};

static void explain_rsh_end(const struct dt_transport *t, const struct dt_child_end *end,
                            struct dt_error *why)
{
    char *what;

    if (end->spawn_error) {
        dt_error_set(why, "%s: %s; %s", t->program, uv_strerror(end->spawn_error),
                     dt_child_remedy(end->spawn_error, "install it, or choose another --rsh or "
                                                       "--transport"));
    } else if (end->signo) {
        dt_error_set(why, "connection: %s was killed by signal %d (%s)", t->program, end->signo,
                     strsignal(end->signo));
    } else if (end->code) {
        what = dt_xasprintf("%s, or the command there,", t->program);
        dt_child_explain_code(why, what, (int)end->code);
        free(what);
    } else if (t->as_list && !t->talks) {
        dt_error_set(why,
                     "agent: %s exited with code 0, and nothing came back; if it joins its "
                     "arguments for a shell, --rsh needs %%c",
                     t->program);
    }
}

static void on_rsh_ended(void *arg, const struct dt_child_end *end)
{
    struct dt_transport *t = arg;
    struct dt_error why = { 0 };

    if (!end->closed)
        explain_rsh_end(t, end, &why);
    t->base.pass.events.closed(t->base.pass.arg, &why);
    dt_quickack_close(&t->quickack);
    free(t->program);
    free(t);
}

static void on_rsh_data(void *arg, const void *bytes, size_t n)
{
    struct dt_transport *t = arg;

    t->talks = true;
    dt_quickack_now(&t->quickack);
    dt_pass_data(arg, bytes, n);
}

static struct dt_transport *open_with(uv_loop_t *loop, const struct dt_remote *remote,
                                      const struct dt_transport_events *events, void *arg,
                                      const struct dt_strs *words, const char *const env[],
                                      bool shield)
{
    static const struct dt_child_events child_events = { on_rsh_data, dt_pass_noise,
                                                         dt_pass_drained, on_rsh_ended };
    struct dt_transport *t = dt_xcalloc(1, sizeof *t);
    struct dt_strs argv = { 0 };

    t->base.pass = (struct dt_pass){ *events, arg };
    t->quickack.pidfd = -1;
    dt_rsh_argv(&argv, words, remote->host->name, remote->command);
    t->program = dt_xstrdup(argv.v[0]);
    t->as_list = dt_rsh_takes_list(words);
    if (shield)
        dt_transport_child_shield(&argv);
    t->base.child =
        dt_child_open(loop, (const char *const *)argv.v, env, GRACE_MS, &child_events, t);
    dt_strs_free(&argv);
    return t;
}

static struct dt_transport *rsh_open(uv_loop_t *loop, const struct dt_remote *remote,
                                     const struct dt_transport_events *events, void *arg)
{
    return open_with(loop, remote, events, arg, remote->rsh, NULL, true);
}

/* srun itself handles the signals of Slurm. */
static struct dt_transport *srun_open(uv_loop_t *loop, const struct dt_remote *remote,
                                      const struct dt_transport_events *events, void *arg)
{
    struct dt_strs words = { 0 }, env = { 0 };
    struct dt_transport *t;

    dt_srun_words(&words, remote->host);
    dt_srun_env(&env, environ);
    t = open_with(loop, remote, events, arg, &words, (const char *const *)env.v, false);
    dt_strs_free(&env);
    dt_strs_free(&words);
    return t;
}

static const char *rsh_phase(const struct dt_transport *t)
{
    return t->talks ? "agent start" : "connection";
}

/* srun is connected to the agent's step by now. */
static void srun_greeted(struct dt_transport *t)
{
    dt_quickack_open(&t->quickack, dt_child_pid(t->base.child));
}

const struct dt_transport_ops dti_transport_rsh = {
    .name = "rsh",
    .open = rsh_open,
    .write = dt_transport_child_write,
    .phase = rsh_phase,
    .pending = dt_transport_child_pending,
    .close = dt_transport_child_close,
};

const struct dt_transport_ops dti_transport_srun = {
    .name = "srun",
    .open = srun_open,
    .write = dt_transport_child_write,
    .phase = rsh_phase,
    .pending = dt_transport_child_pending,
    .close = dt_transport_child_close,
    .greeted = srun_greeted,
};
