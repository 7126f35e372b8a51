/* libssh2 as transport: one session, one channel, never blocking.
 *
 * libssh2 does not touch the socket. What arrives is put into `in`, from which its RECV callback
 * takes; its SEND callback appends whole packets to `wire` and always succeeds. (On a link that
 * takes only part of a packet libssh2 1.10 confuses itself: a window adjustment that must wait is
 * lost, and reading while a write is half done fails.) What bounds `wire` is that no application
 * data is given to libssh2 while much of it waits. */
#include <errno.h>
#include <libssh2.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/remote/base64.h"
#include "launcher/remote/child.h"
#include "launcher/remote/dial.h"
#include "launcher/remote/outbox.h"
#include "launcher/remote/sshagent.h"
#include "launcher/remote/ssherror.h"
#include "launcher/remote/sshlogin.h"
#include "launcher/remote/transport.h"

enum {
    LOGIN_FACTOR = 3, /* of ConnectTimeout: from the connection to the running command */
    WIRE_MAX = 128 * 1024,
    READ_SIZE = 64 * 1024,
};

enum phase { DIALLING, HANDSHAKE, LOGIN, METHODS, CHANNEL, EXEC, RUNNING, ENDING, OVER };

static const char *const phase_names[] = {
    [DIALLING] = "connect",     [HANDSHAKE] = "handshake", [LOGIN] = "authenticate",
    [METHODS] = "authenticate", [CHANNEL] = "agent start", [EXEC] = "agent start",
    [RUNNING] = "connection",   [ENDING] = "connection",   [OVER] = "connection",
};

struct dt_transport {
    uv_loop_t *loop;
    const struct dt_remote *remote;
    struct dt_transport_events events;
    void *arg;
    enum phase phase;
    bool driving;
    bool released; /* session and handles are on their way out */
    bool paused;
    bool owes_drained;
    bool hung_up;     /* the host closed the connection, or it broke */
    int hangup_error; /* libuv's, or 0 */
    int holds;        /* what must end before this can be freed */
    struct dt_dial *dial;
    uv_tcp_t *tcp;
    uv_timer_t timer;
    uv_write_t write;
    LIBSSH2_SESSION *session;
    LIBSSH2_CHANNEL *channel;
    struct dt_outbox in;     /* from the socket */
    struct dt_outbox wire;   /* to the socket */
    struct dt_outbox flying; /* what libuv is writing of it */
    struct dt_outbox out;    /* application data for the channel */
    size_t key;              /* the next to offer */
    struct dt_sshagent_call *agent_call;
    struct dt_strbuf signature;
    const char *agent_why; /* the agent would not sign */
    bool signed_;
    struct dt_error why;
};

static void drive(struct dt_transport *t);

/* ---- ending ---- */

static void release_hold(struct dt_transport *t)
{
    if (--t->holds > 0)
        return;
    t->events.closed(t->arg, &t->why);
    dt_outbox_free(&t->in);
    dt_outbox_free(&t->wire);
    dt_outbox_free(&t->flying);
    dt_outbox_free(&t->out);
    dt_strbuf_free(&t->signature);
    free(t);
}

static void on_timer_closed(uv_handle_t *handle)
{
    release_hold(handle->data);
}

static void on_tcp_closed(uv_handle_t *handle)
{
    struct dt_transport *t = handle->data;

    free(handle);
    release_hold(t);
}

/* Says goodbye as far as that goes without waiting. */
static void release(struct dt_transport *t)
{
    uv_buf_t buf;

    if (t->released)
        return;
    t->released = true;
    if (t->session) {
        if (t->channel && !t->hung_up)
            libssh2_session_disconnect(t->session, "done");
        t->hung_up = true; /* libssh2 waits for nothing more */
        dt_outbox_consume(&t->in, t->in.len);
        libssh2_session_free(t->session);
        t->session = NULL;
    }
    if (t->tcp) {
        buf = uv_buf_init((char *)(uintptr_t)dt_outbox_head(&t->wire), (unsigned)t->wire.len);
        if (t->flying.len == 0 && t->wire.len)
            uv_try_write((uv_stream_t *)t->tcp, &buf, 1);
        uv_close((uv_handle_t *)t->tcp, on_tcp_closed);
    }
    if (t->dial)
        dt_dial_cancel(t->dial);
    if (t->agent_call)
        dt_sshagent_cancel(t->agent_call);
    uv_close((uv_handle_t *)&t->timer, on_timer_closed);
}

static void over(struct dt_transport *t)
{
    t->phase = OVER;
}

static void fail(struct dt_transport *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void fail(struct dt_transport *t, const char *fmt, ...)
{
    va_list ap;

    if (t->phase == OVER)
        return;
    va_start(ap, fmt);
    vsnprintf(t->why.text, sizeof t->why.text, fmt, ap);
    va_end(ap);
    over(t);
}

/* libssh2 gave up; a broken connection is the better reason. */
static void fail_session(struct dt_transport *t)
{
    char *text = NULL;
    const char *phase = phase_names[t->phase];

    libssh2_session_last_error(t->session, &text, NULL, 0);
    if (t->hung_up && t->phase >= RUNNING)
        fail(t, "connection: it was lost (%s)",
             t->hangup_error ? strerror(-t->hangup_error) : "the host closed it");
    else if (t->hangup_error)
        fail(t, "%s: the connection broke: %s; is the host up? try: ssh %s true", phase,
             strerror(-t->hangup_error), t->remote->host->name);
    else if (t->hung_up)
        fail(t, "%s: the host closed the connection; " DT_SSHERROR_CLOSED, phase);
    else
        fail(t, "%s: libssh2: %s; try --transport ssh", phase, text && *text ? text : "error");
}

/* ---- the socket ---- */

static void on_written(uv_write_t *req, int status)
{
    struct dt_transport *t = req->data;

    dt_outbox_free(&t->flying);
    if (t->phase == OVER)
        return;
    if (status < 0 && !t->hung_up) {
        t->hung_up = true;
        t->hangup_error = status;
    }
    drive(t);
    if (t->phase == RUNNING && t->owes_drained && t->out.len + t->wire.len + t->flying.len == 0) {
        t->owes_drained = false;
        t->events.drained(t->arg);
    }
}

static void flush(struct dt_transport *t)
{
    uv_buf_t buf;

    if (t->released || !t->tcp || t->flying.len || t->wire.len == 0)
        return;
    t->flying = t->wire;
    t->wire = (struct dt_outbox){ 0 };
    t->write.data = t;
    buf = uv_buf_init((char *)(uintptr_t)dt_outbox_head(&t->flying), (unsigned)t->flying.len);
    if (uv_write(&t->write, (uv_stream_t *)t->tcp, &buf, 1, on_written))
        dt_outbox_free(&t->flying);
}

static LIBSSH2_SEND_FUNC(take_packet)
{
    struct dt_transport *t = *abstract;

    (void)socket;
    (void)flags;
    dt_outbox_add(&t->wire, buffer, length);
    return (ssize_t)length;
}

static LIBSSH2_RECV_FUNC(give_bytes)
{
    struct dt_transport *t = *abstract;
    size_t n = t->in.len < length ? t->in.len : length;

    (void)socket;
    (void)flags;
    if (n == 0)
        return t->hung_up ? 0 : -EAGAIN;
    memcpy(buffer, dt_outbox_head(&t->in), n);
    dt_outbox_consume(&t->in, n);
    return (ssize_t)n;
}

/* The host says that it will close the connection. */
static LIBSSH2_DISCONNECT_FUNC(note_goodbye)
{
    struct dt_transport *t = *abstract;

    (void)session;
    (void)reason;
    (void)message;
    (void)message_len;
    (void)language;
    (void)language_len;
    t->hung_up = true;
}

/* One for all: what was read is used up before the loop reads again. */
static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    static char buffer[READ_SIZE];

    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(buffer, sizeof buffer);
}

/* sshd leaves Nagle's algorithm on: a short packet of it waits until the one before has been
 * acknowledged, with which the kernel here would take its time (40 ms). */
static void acknowledge(struct dt_transport *t)
{
    static const int yes = 1;
    uv_os_fd_t fd;

    if (!t->released && uv_fileno((uv_handle_t *)t->tcp, &fd) == 0)
        setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &yes, sizeof yes);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct dt_transport *t = stream->data;

    if (n < 0) {
        uv_read_stop(stream);
        t->hung_up = true;
        t->hangup_error = n == UV_EOF ? 0 : (int)n;
    } else {
        dt_outbox_add(&t->in, buf->base, (size_t)n);
    }
    drive(t);
    acknowledge(t);
}

static int login_seconds(const struct dt_transport *t)
{
    int seconds = t->remote->login->config.connecttimeout;

    return seconds < INT_MAX / LOGIN_FACTOR ? LOGIN_FACTOR * seconds : INT_MAX;
}

/* The connection breaks when the host's kernel has not answered for so long; 0: when the system
 * finds so. One that is slow is not silent. */
static void end_when_silent(struct dt_transport *t, int seconds)
{
    int probe = seconds > 1 ? seconds / 2 : 1, again = 1, on = seconds > 0;
    int ms = seconds < INT_MAX / 1000 ? seconds * 1000 : INT_MAX;
    uv_os_fd_t fd;

    if (uv_fileno((uv_handle_t *)t->tcp, &fd) != 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &probe, sizeof probe);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &again, sizeof again);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

static void on_login_timeout(uv_timer_t *timer)
{
    struct dt_transport *t = timer->data;

    fail(t, "%s: no answer for %d s; try: ssh %s true", phase_names[t->phase], login_seconds(t),
         t->remote->host->name);
    drive(t);
}

static int begin_session(struct dt_transport *t)
{
    static const char ciphers[] = "aes128-ctr,aes256-ctr,aes192-ctr";
    static const char macs[] = "hmac-sha2-256,hmac-sha2-512,hmac-sha1";
    struct dt_strbuf methods = { 0 };

    t->session = libssh2_session_init_ex(NULL, NULL, NULL, t);
    if (!t->session) {
        fail(t, "handshake: libssh2: out of memory");
        return -1;
    }
    libssh2_session_set_blocking(t->session, 0);
    libssh2_session_callback_set(t->session, LIBSSH2_CALLBACK_SEND, (void *)take_packet);
    libssh2_session_callback_set(t->session, LIBSSH2_CALLBACK_RECV, (void *)give_bytes);
    libssh2_session_callback_set(t->session, LIBSSH2_CALLBACK_DISCONNECT, (void *)note_goodbye);
    libssh2_session_method_pref(t->session, LIBSSH2_METHOD_CRYPT_CS, ciphers);
    libssh2_session_method_pref(t->session, LIBSSH2_METHOD_CRYPT_SC, ciphers);
    libssh2_session_method_pref(t->session, LIBSSH2_METHOD_MAC_CS, macs);
    libssh2_session_method_pref(t->session, LIBSSH2_METHOD_MAC_SC, macs);
    /* A host offers one key of several: it must be of a type that can be compared. */
    dt_knownhosts_methods(&t->remote->login->known, &methods);
    libssh2_session_method_pref(t->session, LIBSSH2_METHOD_HOSTKEY,
                                methods.len ? methods.data
                                            : "ssh-ed25519,ecdsa-sha2-nistp256,"
                                              "ecdsa-sha2-nistp384,ecdsa-sha2-nistp521,ssh-rsa");
    dt_strbuf_free(&methods);
    return 0;
}

static void on_dialled(void *arg, uv_tcp_t *tcp, const struct dt_error *err)
{
    struct dt_transport *t = arg;
    const struct dt_sshconfig *config = &t->remote->login->config;

    t->dial = NULL;
    if (tcp) { /* the dial's hold becomes the socket's */
        t->tcp = tcp;
        tcp->data = t;
    }
    if (t->phase == OVER) {
        if (tcp)
            uv_close((uv_handle_t *)tcp, on_tcp_closed);
        else
            release_hold(t);
        return;
    }
    if (!tcp) {
        fail(t, "%s", err->text);
        release(t);
        release_hold(t);
        return;
    }
    uv_tcp_nodelay(tcp, 1);
    end_when_silent(t, config->connecttimeout);
    uv_timer_start(&t->timer, on_login_timeout, (uint64_t)login_seconds(t) * 1000, 0);
    if (begin_session(t) == 0) {
        t->phase = HANDSHAKE;
        uv_read_start((uv_stream_t *)tcp, give_buffer, on_read);
    }
    drive(t);
}

/* ---- the phases: each returns true when the next one can be tried at once ---- */

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
        fail(t, "host key: the host presented none");
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
        fail(t, "%s", err.text);
    dt_strbuf_free(&blob);
    dt_strbuf_free(&fingerprint);
    return verdict == DT_HOSTKEY_KNOWN;
}

static bool step_handshake(struct dt_transport *t)
{
    uv_os_fd_t fd = -1;
    struct dt_strbuf methods = { 0 };
    int rc;

    uv_fileno((uv_handle_t *)t->tcp, &fd); /* libssh2 wants to see one */
    rc = libssh2_session_handshake(t->session, fd);
    if (rc == LIBSSH2_ERROR_EAGAIN)
        return false;
    if (rc == LIBSSH2_ERROR_KEX_FAILURE && !t->hung_up) {
        dt_knownhosts_methods(&t->remote->login->known, &methods);
        if (methods.len)
            fail(t,
                 "host key: host and libssh2 agree on no algorithm; the known keys of this host "
                 "are of type %s, perhaps it has others now; try --transport ssh",
                 methods.data);
        else
            fail(t, "handshake: host and libssh2 agree on no algorithm; try --transport ssh");
        dt_strbuf_free(&methods);
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

static void on_signed(void *arg, const struct dt_strbuf *reply, const char *why)
{
    struct dt_transport *t = arg;

    t->agent_call = NULL;
    t->signed_ = true;
    t->agent_why = why;
    if (reply && dt_sshagent_sign_reply(reply, &t->signature))
        t->agent_why = "it refused to sign";
    if (t->phase != OVER)
        drive(t);
    release_hold(t);
}

static LIBSSH2_USERAUTH_PUBLICKEY_SIGN_FUNC(sign_by_agent)
{
    struct dt_transport *t = *abstract;
    const struct dt_auth_key *key = &t->remote->login->keys.v[t->key];
    struct dt_strbuf request = { 0 };

    (void)session;
    if (t->signed_) {
        t->signed_ = false;
        if (t->agent_why)
            return -1;
        *sig = malloc(t->signature.len);
        if (!*sig)
            return -1;
        memcpy(*sig, t->signature.data, t->signature.len);
        *sig_len = t->signature.len;
        dt_strbuf_free(&t->signature);
        return 0;
    }
    if (!t->agent_call) {
        dt_sshagent_sign_request(&request, &key->key.blob, data, data_len);
        t->holds++;
        t->agent_call = dt_sshagent_ask(t->loop, t->remote->login->config.identityagent, &request,
                                        0, on_signed, t);
        dt_strbuf_free(&request);
    }
    return LIBSSH2_ERROR_EAGAIN;
}

static int offer(struct dt_transport *t, const struct dt_auth_key *key)
{
    const char *user = t->remote->login->config.user;
    void *abstract = t;

    if (key->file)
        return libssh2_userauth_publickey_fromfile_ex(t->session, user, (unsigned)strlen(user),
                                                      NULL, key->file, NULL);
    return libssh2_userauth_publickey(t->session, user,
                                      (const unsigned char *)dt_strbuf_text(&key->key.blob),
                                      key->key.blob.len, sign_by_agent, &abstract);
}

static bool step_login(struct dt_transport *t)
{
    const struct dt_sshlogin *login = t->remote->login;
    const struct dt_auth_keys *keys = &login->keys;
    int rc;

    while (t->key < keys->n && dt_auth_obstacle(&keys->v[t->key], login->rsa_works))
        t->key++;
    if (t->key == keys->n) {
        t->phase = METHODS;
        return true;
    }
    rc = offer(t, &keys->v[t->key]);
    if (rc == LIBSSH2_ERROR_EAGAIN)
        return false;
    if (rc == 0) {
        t->phase = CHANNEL;
        return true;
    }
    t->key++;
    if (!t->hung_up)
        return true;
    if (t->hangup_error) {
        fail_session(t);
        return false;
    }
    fail(t,
         "authenticate as %s: the host closed the connection after %zu of %zu keys; name "
         "the right one with identity= in the hostfile, or IdentitiesOnly in ~/.ssh/config",
         login->config.user, t->key, keys->n);
    return false;
}

/* No key has opened the door: what would? The question comes last, since a server takes it for an
 * attempt to log in without a key, and answers such attempts slowly. */
static bool step_methods(struct dt_transport *t)
{
    const struct dt_sshlogin *login = t->remote->login;
    const char *user = login->config.user;
    char *methods = libssh2_userauth_list(t->session, user, (unsigned)strlen(user));
    struct dt_error err = { 0 };

    if (!methods && libssh2_userauth_authenticated(t->session)) {
        t->phase = CHANNEL;
        return true;
    }
    if (!methods && !t->hung_up && libssh2_session_last_errno(t->session) == LIBSSH2_ERROR_EAGAIN)
        return false;
    dt_auth_explain(&err, &login->keys, &login->config, t->remote->host->name, methods,
                    login->rsa_works);
    fail(t, "%s", err.text);
    return false;
}

static bool step_channel(struct dt_transport *t)
{
    t->channel = libssh2_channel_open_session(t->session);
    if (t->channel)
        t->phase = EXEC;
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
    uv_timer_stop(&t->timer);
    t->phase = RUNNING;
    t->events.up(t->arg);
    return t->phase == RUNNING;
}

/* Reads one stream until it would block; returns whether there was something. */
static bool read_stream(struct dt_transport *t, int stream)
{
    char block[8 * 1024];
    bool some = false;

    while (t->phase == RUNNING && !(t->paused && stream == 0)) {
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

    if (t->phase != RUNNING || t->out.len == 0 || t->wire.len + t->flying.len > WIRE_MAX)
        return false;
    n = libssh2_channel_write(t->channel, dt_outbox_head(&t->out), t->out.len);
    if (n < 0 && n != LIBSSH2_ERROR_EAGAIN)
        fail_session(t);
    if (n > 0)
        dt_outbox_consume(&t->out, (size_t)n);
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
    if (t->hung_up)
        fail_session(t);
    return false;
}

static bool step_ending(struct dt_transport *t)
{
    char *signal = NULL;
    int code;

    if (libssh2_channel_wait_closed(t->channel) == LIBSSH2_ERROR_EAGAIN && !t->hung_up)
        return false;
    libssh2_channel_get_exit_signal(t->channel, &signal, NULL, NULL, NULL, NULL, NULL);
    code = libssh2_channel_get_exit_status(t->channel);
    if (signal)
        dt_error_set(&t->why, "agent: dtrun-agent was killed by signal SIG%s", signal);
    else if (code)
        dt_child_explain_code(&t->why, "the command there", code);
    over(t);
    if (signal)
        libssh2_free(t->session, signal);
    return false;
}

/* Goes on as far as that is possible now. */
static void drive(struct dt_transport *t)
{
    static bool (*const steps[])(struct dt_transport *) = {
        [HANDSHAKE] = step_handshake, [LOGIN] = step_login, [METHODS] = step_methods,
        [CHANNEL] = step_channel,     [EXEC] = step_exec,   [RUNNING] = step_running,
        [ENDING] = step_ending,
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
        flush(t);
}

/* ---- operations ---- */

static struct dt_transport *stream_open(uv_loop_t *loop, const struct dt_remote *remote,
                                        const struct dt_transport_events *events, void *arg)
{
    struct dt_transport *t = dt_xcalloc(1, sizeof *t);
    const struct dt_sshconfig *config = &remote->login->config;

    t->loop = loop;
    t->remote = remote;
    t->events = *events;
    t->arg = arg;
    t->holds = 2; /* the timer; the dial, then the socket */
    uv_timer_init(loop, &t->timer);
    t->timer.data = t;
    t->dial =
        dt_dial_open(loop, config->hostname, config->port, config->connecttimeout, on_dialled, t);
    return t;
}

static void stream_write(struct dt_transport *t, const void *data, size_t n)
{
    if (t->phase == OVER || n == 0)
        return;
    dt_outbox_add(&t->out, data, n);
    t->owes_drained = true;
    drive(t);
}

static const char *stream_phase(const struct dt_transport *t)
{
    return t->dial ? dt_dial_phase(t->dial) : phase_names[t->phase];
}

static size_t stream_pending(const struct dt_transport *t)
{
    return t->out.len + t->wire.len + t->flying.len;
}

static void stream_pause(struct dt_transport *t, bool on)
{
    t->paused = on;
    if (!on)
        drive(t);
}

static void stream_close(struct dt_transport *t)
{
    over(t);
    drive(t);
}

static void stream_greeted(struct dt_transport *t)
{
    end_when_silent(t, 0);
}

const struct dt_transport_ops dti_stream_libssh2 = {
    .name = "libssh2",
    .open = stream_open,
    .write = stream_write,
    .phase = stream_phase,
    .pending = stream_pending,
    .pause = stream_pause,
    .close = stream_close,
    .greeted = stream_greeted,
};
