/* Transport over OpenSSH's ssh, for what libssh2 cannot do: RSA keys before libssh2 1.11, jump
 * hosts, hardware keys, certificates, GSSAPI. All settings of the user apply, except those that
 * would ask a question, start another program or share a connection. */
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/remote/ssh/ssherror.h"
#include "launcher/remote/sshlogin.h"
#include "launcher/remote/transport.h"
#include "launcher/remote/transport_child.h"

enum {
    GRACE_MS = 500,
    SSH_FAILED = 255, /* exit code with which ssh reports its own errors */
};

struct dt_transport {
    struct dt_transport_child base;
    const struct dt_remote *remote;
    bool talks;           /* the remote command has written something */
    bool mute;            /* ssh failed and said nothing */
    struct dt_strbuf err; /* standard error until then, after that only its last piece; bounded */
};

/* Messages that arrive before the remote command has written anything come from ssh itself or from
 * the host's start-up files. Which of the two is known only when ssh has failed or the command has
 * written something. */
static void release_noise(struct dt_transport *t)
{
    if (t->err.len)
        dt_pass_noise(t, t->err.data, t->err.len);
    dt_strbuf_free(&t->err);
}

static void on_ssh_data(void *arg, const void *bytes, size_t n)
{
    struct dt_transport *t = arg;

    if (!t->talks) {
        t->talks = true;
        release_noise(t);
    }
    dt_pass_data(t, bytes, n);
}

static void on_ssh_noise(void *arg, const void *bytes, size_t n)
{
    struct dt_transport *t = arg;

    if (t->talks) {
        dt_pass_noise(t, bytes, n);
        dt_strbuf_free(&t->err);
    }
    if (t->err.len < 64 * 1024)
        dt_strbuf_add(&t->err, bytes, n);
}

static void explain_ssh_error(const struct dt_transport *t, struct dt_error *why)
{
    const struct dt_sshlogin *login = t->remote->login;
    struct dt_strbuf keyscan = { 0 }, copy_id = { 0 };
    struct dt_ssherror_host host;

    dt_knownhosts_keyscan(&login->known, &login->config, "ed25519", &keyscan);
    dt_sshconfig_copy_id(t->remote->host, &copy_id);
    host = (struct dt_ssherror_host){ t->remote->host->name, login->known.name,
                                      dt_strbuf_text(&keyscan), dt_strbuf_text(&copy_id) };
    dt_ssherror_explain(why, dt_strbuf_text(&t->err), &host);
    dt_strbuf_free(&copy_id);
    dt_strbuf_free(&keyscan);
}

static void explain_ssh_end(struct dt_transport *t, const struct dt_child_end *end,
                            struct dt_error *why)
{
    if (end->spawn_error)
        dt_error_set(why, "ssh: %s; %s", uv_strerror(end->spawn_error),
                     dt_child_remedy(end->spawn_error, "install openssh-client"));
    else if (end->signo)
        dt_error_set(why, "connection: ssh was killed by signal %d (%s)", end->signo,
                     strsignal(end->signo));
    else if (end->code == SSH_FAILED && t->err.len == 0)
        dt_error_set(why,
                     "agent: the command there was killed, or ssh failed and did not say why; "
                     "try: ssh %s true",
                     t->remote->host->name);
    else if (end->code == SSH_FAILED && t->talks)
        dt_error_set(why, "connection: it was lost (ssh: %.*s)",
                     (int)strcspn(dt_strbuf_text(&t->err), "\r\n"), dt_strbuf_text(&t->err));
    else if (end->code == SSH_FAILED)
        explain_ssh_error(t, why);
    else if (end->code)
        dt_child_explain_code(why, "the command there", (int)end->code);
}

static void on_ssh_ended(void *arg, const struct dt_child_end *end)
{
    struct dt_transport *t = arg;
    struct dt_error why = { 0 };

    if (!end->closed) {
        t->mute = end->code == SSH_FAILED && t->err.len == 0;
        explain_ssh_end(t, end, &why);
        if (!t->talks && end->code != SSH_FAILED)
            release_noise(t);
    }
    t->base.pass.events.closed(t->base.pass.arg, &why);
    dt_strbuf_free(&t->err);
    free(t);
}

static void add_options(struct dt_strs *argv, const struct dt_remote *remote)
{
    static const char *const options[] = {
        "BatchMode=yes",         "RemoteCommand=none",
        "RequestTTY=no",         "ClearAllForwardings=yes",
        "ControlMaster=no",      "ControlPath=none",
        "PermitLocalCommand=no", "LogLevel=ERROR",
        "ServerAliveInterval=0", /* dtrun itself notices when a host falls silent */
        "StdinNull=no",          "SessionType=default", /* these only if has_stdinnull */
    };
    size_t n = sizeof options / sizeof *options - (remote->login->config.has_stdinnull ? 0 : 2);
    char *timeout;

    for (size_t i = 0; i < n; i++) {
        dt_xstrs_add(argv, "-o");
        dt_xstrs_add(argv, options[i]);
    }
    dt_xstrs_add(argv, "-o");
    dt_xstrs_add(argv, remote->accept_new ? "StrictHostKeyChecking=accept-new"
                                          : "StrictHostKeyChecking=yes");
    timeout = dt_xasprintf("ConnectTimeout=%d", remote->login->config.connecttimeout);
    dt_xstrs_add(argv, "-o");
    dt_xstrs_add(argv, timeout);
    free(timeout);
    dt_xstrs_add(argv, "-T");
}

static struct dt_transport *ssh_open(uv_loop_t *loop, const struct dt_remote *remote,
                                     const struct dt_transport_events *events, void *arg)
{
    static const struct dt_child_events child_events = { on_ssh_data, on_ssh_noise, dt_pass_drained,
                                                         on_ssh_ended };
    struct dt_transport *t = dt_xcalloc(1, sizeof *t);
    struct dt_strs argv = { 0 };

    t->remote = remote;
    t->base.pass = (struct dt_pass){ *events, arg };
    dt_xstrs_add(&argv, "ssh");
    add_options(&argv, remote);
    dt_sshconfig_add_host_args(&argv, remote->host);
    dt_xstrs_add(&argv, remote->command);
    dt_transport_child_shield(&argv);
    t->base.child =
        dt_child_open(loop, (const char *const *)argv.v, NULL, GRACE_MS, &child_events, t);
    dt_strs_free(&argv);
    return t;
}

/* From OpenSSH 10 on ssh says nothing, at the log level that dtrun sets, if it is turned away. */
static bool ssh_turned_away(const struct dt_transport *t)
{
    return !t->talks && (t->mute || dt_ssherror_turned_away(dt_strbuf_text(&t->err)));
}

/* ssh does not report its progress before it fails. */
static const char *ssh_phase(const struct dt_transport *t)
{
    return t->talks ? "agent start" : "connect or authenticate (ssh does not tell which)";
}

const struct dt_transport_ops dti_carrier_ssh = {
    .name = "ssh",
    .open = ssh_open,
    .write = dt_transport_child_write,
    .phase = ssh_phase,
    .pending = dt_transport_child_pending,
    .close = dt_transport_child_close,
    .turned_away = ssh_turned_away,
};
