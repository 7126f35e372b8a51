#include "launcher/remote/sshlogin.h"

#include <libssh2.h>
#include <stdlib.h>

#include "launcher/base/mem.h"
#include "launcher/remote/ssh/sshagent.h"
#include "launcher/remote/sshask.h"

enum { AGENT_MS = 3000, RSA_SHA2_VERSION = 0x010b00 };

struct dt_sshlogin_query {
    uv_loop_t *loop;
    struct dt_sshlogin *login;
    struct dt_sshask *config_query;
    struct dt_sshagent_call *agent_call;
    struct dt_error err;
    bool cancelled;
    dt_sshlogin_f done;
    void *arg;
};

static void finish_query(struct dt_sshlogin_query *q)
{
    dt_auth_add_files(&q->login->keys, &q->login->config);
    dt_knownhosts_load(&q->login->known, &q->login->config);
    q->done(q->arg, q->login, &q->err);
    free(q);
}

static void on_agent_keys(void *arg, const struct dt_strbuf *reply, const char *why)
{
    struct dt_sshlogin_query *q = arg;

    q->agent_call = NULL;
    if (reply && dt_sshagent_list_reply(reply, &q->login->keys))
        why = "its answer is malformed";
    if (why)
        q->login->keys.agent_error = dt_xasprintf("%s: %s", q->login->config.identityagent, why);
    finish_query(q);
}

static void on_config(void *arg, struct dt_sshconfig *config, const struct dt_error *err)
{
    struct dt_sshlogin_query *q = arg;
    struct dt_strbuf request = { 0 };

    q->config_query = NULL;
    q->login->config = *config;
    q->err = *err;
    if (q->cancelled || !config->identityagent) {
        finish_query(q);
        return;
    }
    dt_sshagent_list_request(&request);
    q->agent_call =
        dt_sshagent_ask(q->loop, config->identityagent, &request, AGENT_MS, on_agent_keys, q);
    dt_strbuf_free(&request);
}

struct dt_sshlogin_query *dt_sshlogin_ask(uv_loop_t *loop, const struct dt_host *host,
                                          dt_sshlogin_f done, void *arg)
{
    struct dt_sshlogin_query *q = dt_xcalloc(1, sizeof *q);

    q->loop = loop;
    q->login = dt_xcalloc(1, sizeof *q->login);
    q->login->rsa_works = libssh2_version(RSA_SHA2_VERSION) != NULL;
    q->done = done;
    q->arg = arg;
    q->config_query = dt_sshask_start(loop, host, on_config, q);
    return q;
}

void dt_sshlogin_cancel(struct dt_sshlogin_query *q)
{
    q->cancelled = true;
    if (q->config_query)
        dt_sshask_cancel(q->config_query);
    if (q->agent_call)
        dt_sshagent_cancel(q->agent_call);
}

void dt_sshlogin_free(struct dt_sshlogin *login)
{
    dt_sshconfig_free(&login->config);
    dt_auth_free(&login->keys);
    dt_knownhosts_free(&login->known);
    free(login);
}
