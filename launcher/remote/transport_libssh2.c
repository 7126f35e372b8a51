/* Transport over libssh2: one session, one channel, never blocking. */
#include <libssh2.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/bytequeue.h"
#include "launcher/base/mem.h"
#include "launcher/remote/child.h"
#include "launcher/remote/dial.h"
#include "launcher/remote/limit.h"
#include "launcher/remote/logon.h"
#include "launcher/remote/ssh/base64.h"
#include "launcher/remote/ssh/ssherror.h"
#include "launcher/remote/sshlogin.h"
#include "launcher/remote/sshsocket.h"
#include "launcher/remote/transport.h"

enum {
    /* the most time from the connection to the running command, in units of ConnectTimeout */
    LOGIN_FACTOR = 3,
    WIRE_MAX = 128 * 1024,
};

enum phase { DIALLING, HANDSHAKE, LOGIN, CHANNEL, EXEC, RUNNING, ENDING, OVER };

static const char *const phase_names[] = {
    [DIALLING] = "connect",    [HANDSHAKE] = "handshake", [LOGIN] = "authenticate",
    [CHANNEL] = "agent start", [EXEC] = "agent start",    [RUNNING] = "connection",
    [ENDING] = "connection",   [OVER] = "connection",
};

struct dt_transport {
    const struct dt_remote *remote;
    struct dt_transport_events events;
    void *arg;
    enum phase phase;
    bool driving;
    bool released; /* session and handles are being closed */
    bool owes_drained;
    bool turned_away; /* the SSH server closed the connection during the handshake */
    int holds;        /* how many parts must end before this can be freed */
    struct dt_dial *dial;
    struct dt_limit limit;
    struct dt_sshsocket socket;
    LIBSSH2_SESSION *session;
    struct dt_logon logon;
    LIBSSH2_CHANNEL *channel;
    struct dt_bytequeue out; /* application data for the channel */
    struct dt_error why;
};

static void drive(struct dt_transport *t);

/* ---- ending ---- */

static void release_hold(void *arg)
{
    struct dt_transport *t = arg;

    if (--t->holds > 0)
        return;
    t->events.closed(t->arg, &t->why);
    dt_sshsocket_free(&t->socket);
    dt_bytequeue_free(&t->out);
    free(t);
}

static void on_transport_timer_closed(uv_handle_t *handle)
{
    release_hold(handle->data);
}

/* Sends the disconnect message as far as that does not block. */
static void release(struct dt_transport *t)
{
    if (t->released)
        return;
    t->released = true;
    if (t->session) {
        if (t->channel && !t->socket.hung_up)
            libssh2_session_disconnect(t->session, "done");
        dt_sshsocket_hang_up(&t->socket);
        libssh2_session_free(t->session);
        t->session = NULL;
    }
    if (t->socket.tcp)
        dt_sshsocket_close(&t->socket);
    if (t->dial)
        dt_dial_cancel(t->dial);
    dt_logon_close(&t->logon);
    uv_close((uv_handle_t *)&t->limit.timer, on_transport_timer_closed);
}

static __attribute__((format(printf, 2, 3))) void fail_transport(struct dt_transport *t,
                                                                 const char *fmt, ...)
{
    va_list ap;

    if (t->phase == OVER)
        return;
    va_start(ap, fmt);
    dt_error_vset(&t->why, fmt, ap);
    va_end(ap);
    t->phase = OVER;
}

/* The other side has not read what this side sent, so the kernel may also reset the connection. */
static bool is_closed_early(const struct dt_transport *t)
{
    return t->phase == HANDSHAKE && t->socket.hung_up &&
           (t->socket.error == 0 || t->socket.error == UV_ECONNRESET);
}

/* What sshd sends to a client that it turns away, or its usual first line. */
static bool is_from_sshd(const char *greeting)
{
    static const char *const lines[] = { "SSH-", "Exceeded MaxStartups",
                                         "Not allowed at this time" };

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (strncmp(greeting, lines[i], strlen(lines[i])) == 0)
            return true;
    }
    return false;
}

static void fail_stranger(struct dt_transport *t)
{
    int port = t->remote->login->config.port;

    if (t->socket.greeting[0])
        fail_transport(t, "handshake: what answers at port %d is no SSH server; see --ssh-port",
                       port);
    else
        fail_transport(t,
                       "handshake: what answers at port %d closed the connection without a word; "
                       "if it is no SSH server, see --ssh-port; if it is one, look at its log",
                       port);
}

/* A call of libssh2 has failed. If the connection broke, reports that as the reason. */
static void fail_session(struct dt_transport *t)
{
    char *text = NULL;
    const char *phase = phase_names[t->phase];
    bool early = is_closed_early(t);

    t->turned_away = early && is_from_sshd(t->socket.greeting);
    libssh2_session_last_error(t->session, &text, NULL, 0);
    if (early && !t->turned_away)
        fail_stranger(t);
    else if (t->socket.hung_up && t->phase >= RUNNING)
        fail_transport(t, "connection: it was lost (%s)",
                       t->socket.error ? strerror(-t->socket.error) : "the host closed it");
    else if (t->socket.error && !t->turned_away)
        fail_transport(
            t, "%s: the connection broke: %s; did the host go down%s? try: ssh %s true", phase,
            strerror(-t->socket.error),
            t->socket.error == UV_ETIMEDOUT ? ", or does the network drop large packets (MTU)" : "",
            t->remote->host->name);
    else if (t->socket.hung_up)
        fail_transport(t, "%s: the host closed the connection; " DT_SSHERROR_CLOSED, phase);
    else
        fail_transport(t, "%s: libssh2: %s; try --transport ssh", phase,
                       text && *text ? text : "error");
}

/* ---- connecting ---- */

static size_t ssh2_pending(const struct dt_transport *t)
{
    return t->out.len + dt_sshsocket_pending(&t->socket);
}

static void on_moved(void *arg)
{
    struct dt_transport *t = arg;

    drive(t);
    if (t->phase == RUNNING && t->owes_drained && ssh2_pending(t) == 0) {
        t->owes_drained = false;
        t->events.drained(t->arg);
    }
}

static int login_seconds(const struct dt_transport *t)
{
    int seconds = t->remote->login->config.connecttimeout;

    return seconds < INT_MAX / LOGIN_FACTOR ? LOGIN_FACTOR * seconds : INT_MAX;
}

static void on_login_timeout(uv_timer_t *timer)
{
    struct dt_transport *t = timer->data;

    /* Servers may send lines before the one that begins with "SSH-", so libssh2 waits for it. */
    if (t->phase == HANDSHAKE && t->socket.greeting[0] && !is_from_sshd(t->socket.greeting))
        fail_stranger(t);
    else
        fail_transport(t, "%s: no answer for %d s; try: ssh %s true", phase_names[t->phase],
                       login_seconds(t), t->remote->host->name);
    drive(t);
}

static int begin_session(struct dt_transport *t)
{
    static const char ciphers[] = "aes128-ctr,aes256-ctr,aes192-ctr";
    static const char macs[] = "hmac-sha2-256,hmac-sha2-512,hmac-sha1";
    struct dt_strbuf methods = { 0 };

    t->session = dt_sshsocket_session(&t->socket);
    if (!t->session) {
        fail_transport(t, "handshake: libssh2: out of memory");
        return -1;
    }
    libssh2_session_method_pref(t->session, LIBSSH2_METHOD_CRYPT_CS, ciphers);
    libssh2_session_method_pref(t->session, LIBSSH2_METHOD_CRYPT_SC, ciphers);
    libssh2_session_method_pref(t->session, LIBSSH2_METHOD_MAC_CS, macs);
    libssh2_session_method_pref(t->session, LIBSSH2_METHOD_MAC_SC, macs);
    /* A host that has several keys presents only one. Asks for one of a type that known_hosts
     * lists. */
    dt_knownhosts_methods(&t->remote->login->known, &methods);
    libssh2_session_method_pref(t->session, LIBSSH2_METHOD_HOSTKEY,
                                methods.len ? methods.data
                                            : "ssh-ed25519,ecdsa-sha2-nistp256,"
                                              "ecdsa-sha2-nistp384,ecdsa-sha2-nistp521,"
                                              "rsa-sha2-512,rsa-sha2-256,ssh-rsa");
    dt_strbuf_free(&methods);
    return 0;
}

static void on_dialled(void *arg, uv_tcp_t *tcp, const struct dt_error *err)
{
    struct dt_transport *t = arg;

    t->dial = NULL;
    if (tcp) /* the socket takes over the dial's hold */
        dt_sshsocket_take(&t->socket, tcp, on_moved, release_hold, t);
    if (t->phase == OVER) {
        if (tcp)
            dt_sshsocket_close(&t->socket);
        else
            release_hold(t);
        return;
    }
    if (!tcp) {
        fail_transport(t, "%s", err->text);
        release(t);
        release_hold(t);
        return;
    }
    dt_sshsocket_end_when_silent(&t->socket, t->remote->login->config.connecttimeout);
    dt_limit_start(&t->limit, on_login_timeout, (uint64_t)login_seconds(t) * 1000);
    if (begin_session(t) == 0) {
        t->phase = HANDSHAKE;
        dt_sshsocket_read(&t->socket);
    }
    drive(t);
}

/* ---- the phases: each returns true if the next step can be tried at once ---- */

static bool check_host(struct dt_transport *t)
{
    const struct dt_sshlogin *login = t->remote->login;
    const char *hash = libssh2_hostkey_hash(t->session, LIBSSH2_HOSTKEY_HASH_SHA256);
    struct dt_strbuf fingerprint = { 0 };
    struct dt_strbuf blob = { 0 };
    struct dt_error err = { 0 };
    size_t len = 0;
    const char *key = libssh2_session_hostkey(t->session, &len, NULL);
    enum dt_hostkey_verdict verdict;

    if (!key || !hash) {
        fail_transport(t, "host key: the host presented none");
        return false;
    }
    dt_strbuf_add(&blob, key, len);
    dt_strbuf_puts(&fingerprint, "SHA256:");
    dt_base64_encode(&fingerprint, hash, 32, false);
    verdict = dt_knownhosts_check(&login->known, &blob, fingerprint.data, &login->config, &err);
    if (verdict == DT_HOSTKEY_NEW && t->remote->accept_new)
        verdict = dt_knownhosts_append(&login->known, &blob, &login->config, &err)
                      ? DT_HOSTKEY_REFUSED
                      : DT_HOSTKEY_KNOWN;
    if (verdict != DT_HOSTKEY_KNOWN)
        fail_transport(t, "%s", err.text);
    dt_strbuf_free(&blob);
    dt_strbuf_free(&fingerprint);
    return verdict == DT_HOSTKEY_KNOWN;
}

static bool step_handshake(struct dt_transport *t)
{
    struct dt_strbuf methods = { 0 };
    int rc = libssh2_session_handshake(t->session, dt_sshsocket_fd(&t->socket));

    if (rc == LIBSSH2_ERROR_EAGAIN)
        return false;
    if (rc == LIBSSH2_ERROR_KEX_FAILURE && !t->socket.hung_up) {
        dt_knownhosts_methods(&t->remote->login->known, &methods);
        if (methods.len)
            fail_transport(
                t,
                "host key: the host and libssh2 have no algorithm in common; the known keys of "
                "this host are of type %s, and it may have others now; try --transport ssh",
                methods.data);
        else
            fail_transport(
                t,
                "handshake: the host and libssh2 have no algorithm in common; try --transport ssh");
        dt_strbuf_free(&methods);
        return false;
    }
    if (rc == LIBSSH2_ERROR_BANNER_RECV && !t->socket.hung_up) {
        fail_stranger(t);
        return false;
    }
    if (rc) {
        fail_session(t);
        return false;
    }
    if (check_host(t))
        t->phase = LOGIN;
    return t->phase == LOGIN;
}

static void on_wake(void *arg)
{
    drive(arg);
}

static bool step_login(struct dt_transport *t)
{
    struct dt_error err = { 0 };

    switch (dt_logon_step(&t->logon, t->session, &t->socket, &err)) {
    case DT_LOGON_WAITS:
        break;
    case DT_LOGON_IN:
        t->phase = CHANNEL;
        break;
    case DT_LOGON_REFUSED:
        fail_transport(t, "%s", err.text);
        break;
    case DT_LOGON_BROKE:
        fail_session(t);
        break;
    }
    return t->phase == CHANNEL;
}

static bool step_channel(struct dt_transport *t)
{
    t->channel = libssh2_channel_open_session(t->session);
    if (t->channel)
        t->phase = EXEC;
    else if (libssh2_session_last_errno(t->session) == LIBSSH2_ERROR_CHANNEL_FAILURE)
        fail_transport(t, "agent start: the host accepted the login, but opens no session; see "
                          "MaxSessions in its sshd_config");
    else if (libssh2_session_last_errno(t->session) != LIBSSH2_ERROR_EAGAIN)
        fail_session(t);
    return t->phase == EXEC;
}

static bool step_exec(struct dt_transport *t)
{
    int rc = libssh2_channel_exec(t->channel, t->remote->command);

    if (rc == LIBSSH2_ERROR_EAGAIN)
        return false;
    if (rc) {
        fail_session(t);
        return false;
    }
    uv_timer_stop(&t->limit.timer);
    t->phase = RUNNING;
    return true;
}

/* Reads one stream until it would block. Returns whether it read anything. */
static bool read_stream(struct dt_transport *t, int stream)
{
    char block[8 * 1024];
    bool some = false;

    while (t->phase == RUNNING) {
        ssize_t n = libssh2_channel_read_ex(t->channel, stream, block, sizeof block);

        if (n == LIBSSH2_ERROR_EAGAIN || n == 0)
            break;
        if (n < 0) {
            fail_session(t);
            break;
        }
        some = true;
        if (stream == 0)
            t->events.data(t->arg, block, (size_t)n);
        else
            t->events.noise(t->arg, block, (size_t)n);
    }
    return some;
}

static bool write_channel(struct dt_transport *t)
{
    ssize_t n;

    if (t->phase != RUNNING || t->out.len == 0 || dt_sshsocket_pending(&t->socket) > WIRE_MAX)
        return false;
    n = libssh2_channel_write(t->channel, dt_bytequeue_head(&t->out), t->out.len);
    if (n < 0 && n != LIBSSH2_ERROR_EAGAIN)
        fail_session(t);
    if (n > 0)
        dt_bytequeue_consume(&t->out, (size_t)n);
    return n > 0;
}

static bool step_running(struct dt_transport *t)
{
    bool some = read_stream(t, 0);

    some |= read_stream(t, SSH_EXTENDED_DATA_STDERR);
    some |= write_channel(t);
    if (t->phase != RUNNING || some)
        return t->phase == RUNNING;
    if (libssh2_channel_eof(t->channel)) {
        t->phase = ENDING;
        return true;
    }
    if (t->socket.hung_up)
        fail_session(t);
    return false;
}

static bool step_ending(struct dt_transport *t)
{
    char *signal = NULL;
    int code;

    if (libssh2_channel_wait_closed(t->channel) == LIBSSH2_ERROR_EAGAIN && !t->socket.hung_up)
        return false;
    libssh2_channel_get_exit_signal(t->channel, &signal, NULL, NULL, NULL, NULL, NULL);
    code = libssh2_channel_get_exit_status(t->channel);
    if (signal)
        dt_error_set(&t->why, "agent: dtrun-agent was killed by signal SIG%s", signal);
    else if (code)
        dt_child_explain_code(&t->why, "the command there", code);
    t->phase = OVER;
    if (signal)
        libssh2_free(t->session, signal);
    return false;
}

/* Proceeds as far as possible without blocking. */
static void drive(struct dt_transport *t)
{
    static bool (*const steps[])(struct dt_transport *) = {
        [HANDSHAKE] = step_handshake, [LOGIN] = step_login,     [CHANNEL] = step_channel,
        [EXEC] = step_exec,           [RUNNING] = step_running, [ENDING] = step_ending,
    };

    if (t->driving || t->released)
        return;
    t->driving = true;
    while (t->phase > DIALLING && t->phase < OVER && steps[t->phase](t))
        ;
    t->driving = false;
    if (t->phase == OVER)
        release(t);
    else
        dt_sshsocket_flush(&t->socket);
}

/* ---- operations ---- */

static struct dt_transport *ssh2_open(uv_loop_t *loop, const struct dt_remote *remote,
                                      const struct dt_transport_events *events, void *arg)
{
    struct dt_transport *t = dt_xcalloc(1, sizeof *t);
    const struct dt_sshconfig *config = &remote->login->config;

    t->remote = remote;
    t->events = *events;
    t->arg = arg;
    t->holds = 3; /* the timer, the logon, and the dial or socket */
    dt_logon_init(&t->logon, loop, remote, on_wake, release_hold, t);
    uv_timer_init(loop, &t->limit.timer);
    t->limit.timer.data = t;
    t->dial =
        dt_dial_open(loop, config->hostname, config->port, config->connecttimeout, on_dialled, t);
    return t;
}

static void ssh2_write(struct dt_transport *t, const void *data, size_t n)
{
    if (t->phase == OVER || n == 0)
        return;
    dt_bytequeue_add(&t->out, data, n);
    t->owes_drained = true;
    drive(t);
}

static const char *ssh2_phase(const struct dt_transport *t)
{
    return t->dial ? dt_dial_phase(t->dial) : phase_names[t->phase < EXEC ? t->phase : EXEC];
}

static void ssh2_close(struct dt_transport *t)
{
    t->phase = OVER;
    drive(t);
}

static void ssh2_greeted(struct dt_transport *t)
{
    dt_sshsocket_end_when_silent(&t->socket, 0);
}

static bool ssh2_turned_away(const struct dt_transport *t)
{
    return t->turned_away;
}

const struct dt_transport_ops dti_carrier_libssh2 = {
    .name = "libssh2",
    .open = ssh2_open,
    .write = ssh2_write,
    .phase = ssh2_phase,
    .pending = ssh2_pending,
    .close = ssh2_close,
    .greeted = ssh2_greeted,
    .turned_away = ssh2_turned_away,
};
