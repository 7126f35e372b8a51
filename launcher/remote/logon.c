#include "launcher/remote/logon.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/remote/sshlogin.h"

void dt_logon_init(struct dt_logon *l, uv_loop_t *loop, const struct dt_remote *remote,
                   void (*wake)(void *arg), void (*closed)(void *arg), void *arg)
{
    *l = (struct dt_logon){
        .loop = loop, .remote = remote, .wake = wake, .closed = closed, .arg = arg
    };
}

static void on_signed(void *arg, const struct dt_strbuf *reply, const char *why)
{
    struct dt_logon *l = arg;

    l->agent_call = NULL;
    l->agent_answered = true;
    l->agent_why = why;
    if (reply && dt_sshagent_sign_reply(reply, &l->signature))
        l->agent_why = "it refused to sign";
    if (l->closing)
        dt_logon_close(l);
    else
        l->wake(l->arg);
}

static void ask_agent(struct dt_logon *l, const void *data, size_t n)
{
    const struct dt_sshlogin *login = l->remote->login;
    struct dt_strbuf request = { 0 };

    dt_sshagent_sign_request(&request, &login->keys.v[l->key].key.blob, data, n);
    l->agent_call =
        dt_sshagent_ask(l->loop, login->config.identityagent, &request, 0, on_signed, l);
    dt_strbuf_free(&request);
}

static LIBSSH2_USERAUTH_PUBLICKEY_SIGN_FUNC(sign_by_agent)
{
    struct dt_logon *l = *abstract;

    (void)session;
    if (!l->agent_answered) {
        if (!l->agent_call)
            ask_agent(l, data, data_len);
        return LIBSSH2_ERROR_EAGAIN;
    }
    l->agent_answered = false;
    if (l->agent_why)
        return -1;
    *sig = malloc(l->signature.len);
    if (!*sig)
        return -1;
    memcpy(*sig, l->signature.data, l->signature.len);
    *sig_len = l->signature.len;
    dt_strbuf_free(&l->signature);
    return 0;
}

static int offer(struct dt_logon *l, LIBSSH2_SESSION *session, const struct dt_auth_key *key)
{
    const char *user = l->remote->login->config.user;
    void *abstract = l;

    if (key->file)
        return libssh2_userauth_publickey_fromfile_ex(session, user, (unsigned)strlen(user), NULL,
                                                      key->file, NULL);
    return libssh2_userauth_publickey(session, user,
                                      (const unsigned char *)dt_strbuf_text(&key->key.blob),
                                      key->key.blob.len, sign_by_agent, &abstract);
}

/* The host accepted no key: asks which methods it accepts. The question comes last, because a
 * server takes it for an attempt to log in without a key and answers such attempts slowly. */
static enum dt_logon_verdict ask_methods(const struct dt_logon *l, LIBSSH2_SESSION *session,
                                         const struct dt_sshsocket *socket, struct dt_error *err)
{
    const struct dt_sshlogin *login = l->remote->login;
    const char *user = login->config.user;
    char *methods = libssh2_userauth_list(session, user, (unsigned)strlen(user));

    if (!methods && libssh2_userauth_authenticated(session))
        return DT_LOGON_IN;
    if (!methods && !socket->hung_up && libssh2_session_last_errno(session) == LIBSSH2_ERROR_EAGAIN)
        return DT_LOGON_WAITS;
    dt_auth_explain(err, &login->keys, &login->config, l->remote->host, methods, login->rsa_works);
    return DT_LOGON_REFUSED;
}

static enum dt_logon_verdict hung_up(const struct dt_logon *l, const struct dt_sshsocket *socket,
                                     struct dt_error *err)
{
    const struct dt_sshlogin *login = l->remote->login;

    if (socket->error)
        return DT_LOGON_BROKE;
    dt_error_set(err,
                 "authenticate as %s: the host closed the connection after %zu of %zu keys; name "
                 "the right one with identity= in the hostfile, or IdentitiesOnly in ~/.ssh/config",
                 login->config.user, l->key, login->keys.n);
    return DT_LOGON_REFUSED;
}

enum dt_logon_verdict dt_logon_step(struct dt_logon *l, LIBSSH2_SESSION *session,
                                    const struct dt_sshsocket *socket, struct dt_error *err)
{
    const struct dt_sshlogin *login = l->remote->login;
    const struct dt_auth_keys *keys = &login->keys;

    for (; l->key < keys->n; l->key++) {
        int rc;

        if (dt_auth_obstacle(&keys->v[l->key], login->rsa_works))
            continue;
        rc = offer(l, session, &keys->v[l->key]);
        if (rc == LIBSSH2_ERROR_EAGAIN)
            return DT_LOGON_WAITS;
        if (rc == 0)
            return DT_LOGON_IN;
        if (socket->hung_up) {
            l->key++;
            return hung_up(l, socket, err);
        }
    }
    return ask_methods(l, session, socket, err);
}

void dt_logon_close(struct dt_logon *l)
{
    l->closing = true;
    if (l->agent_call) {
        dt_sshagent_cancel(l->agent_call);
        return;
    }
    dt_strbuf_free(&l->signature);
    l->closed(l->arg);
}
