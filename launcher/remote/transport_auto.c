/* The SSH transports as the launcher sees them: they query the user's settings and keys, then let
 * libssh2 or ssh carry the bytes. A host that closes the connection before the login is tried
 * again, because sshd turns clients away at random while many of them log in (MaxStartups), as the
 * jobs of an array do. */
#include <stdlib.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/base/random.h"
#include "launcher/remote/choose.h"
#include "launcher/remote/pass.h"
#include "launcher/remote/sshlogin.h"
#include "launcher/remote/transport.h"

enum {
    ATTEMPTS = 6,
    /* before another attempt: a random time, so that those who were turned away come apart */
    PAUSE_MIN_MS = 300,
    PAUSE_MAX_MS = 1500,
};

struct dt_transport {
    struct dt_pass pass;
    uv_loop_t *loop;
    struct dt_remote remote;
    const struct dt_transport_ops *forced; /* NULL: auto chooses */
    struct dt_sshlogin_query *query;       /* NULL once it has answered */
    struct dt_sshlogin *login;
    const struct dt_transport_ops *ops; /* of inner */
    struct dt_transport *inner;         /* NULL until chosen, and between two attempts */
    int attempts;
    uv_timer_t pause; /* before the next attempt */
    bool closing;
};

static void free_auto(uv_handle_t *pause)
{
    struct dt_transport *t = pause->data;

    dt_sshlogin_free(t->login);
    free(t);
}

static void end(struct dt_transport *t, const struct dt_error *why)
{
    t->pass.events.closed(t->pass.arg, why);
    t->inner = NULL;
    uv_close((uv_handle_t *)&t->pause, free_auto);
}

static void open_inner(struct dt_transport *t);

static void on_pause_over(uv_timer_t *pause)
{
    struct dt_transport *t = pause->data;

    if (t->closing)
        end(t, &(struct dt_error){ 0 });
    else
        open_inner(t);
}

static uint64_t choose_pause_ms(void)
{
    uint32_t random;

    dt_random_fill(&random, sizeof random);
    return PAUSE_MIN_MS + random % (PAUSE_MAX_MS - PAUSE_MIN_MS + 1);
}

static void on_inner_closed(void *arg, const struct dt_error *why)
{
    struct dt_transport *t = arg;

    if (t->closing || !t->ops->turned_away || !t->ops->turned_away(t->inner) ||
        t->attempts == ATTEMPTS) {
        end(t, why);
        return;
    }
    dt_verbose("%s: %s; trying again", t->remote.host->name, why->text);
    t->inner = NULL;
    uv_timer_start(&t->pause, on_pause_over, choose_pause_ms(), 0);
}

static void open_inner(struct dt_transport *t)
{
    static const struct dt_transport_events inner_events = { dt_pass_data, dt_pass_noise,
                                                             dt_pass_drained, on_inner_closed };

    t->attempts++;
    t->inner = t->ops->open(t->loop, &t->remote, &inner_events, t);
}

/* Many hosts use the same file, so it warns once. */
static void warn_of_garbage(const struct dt_knownhosts *known)
{
    static bool warned;

    if (known->garbage && !warned) {
        warned = true;
        dt_say("%s: this line cannot be read and is ignored", known->garbage);
    }
}

static void warn_of_ignored_file(const struct dt_sshconfig *config)
{
    static bool warned;

    if (config->ignored_file && !warned) {
        warned = true;
        dt_say("%s: ~/.ssh/config is not read", config->without_ssh);
    }
}

static void choose(struct dt_transport *t)
{
    const struct dt_sshlogin *l = t->login;
    const char *reason = dt_choose_openssh(&l->config, &l->keys, &l->known, l->rsa_works);

    if (t->forced)
        t->ops = t->forced;
    else
        t->ops = reason && !l->config.without_ssh ? &dti_carrier_ssh : &dti_carrier_libssh2;
    dt_verbose("%s: transport %s%s%s", t->remote.host->name, t->ops->name,
               reason && !t->forced ? ": " : "", reason && !t->forced ? reason : "");
}

static void on_login(void *arg, struct dt_sshlogin *login, const struct dt_error *err)
{
    struct dt_transport *t = arg;
    struct dt_error why = { 0 };

    t->query = NULL;
    t->login = login;
    if (t->closing || err->text[0]) {
        if (!t->closing)
            dt_error_set(&why, "settings: %s", err->text);
        end(t, &why);
        return;
    }
    t->remote.login = login;
    login->config.accept_new |= t->remote.accept_new;
    t->remote.accept_new = login->config.accept_new;
    warn_of_garbage(&login->known);
    warn_of_ignored_file(&login->config);
    choose(t);
    open_inner(t);
}

static struct dt_transport *open_with(uv_loop_t *loop, const struct dt_remote *remote,
                                      const struct dt_transport_events *events, void *arg,
                                      const struct dt_transport_ops *forced)
{
    struct dt_transport *t = dt_xcalloc(1, sizeof *t);

    t->loop = loop;
    t->remote = *remote;
    t->pass = (struct dt_pass){ *events, arg };
    t->forced = forced;
    uv_timer_init(loop, &t->pause);
    t->pause.data = t;
    t->query = dt_sshlogin_ask(loop, remote->host, on_login, t);
    return t;
}

static struct dt_transport *open_auto(uv_loop_t *loop, const struct dt_remote *remote,
                                      const struct dt_transport_events *events, void *arg)
{
    return open_with(loop, remote, events, arg, NULL);
}

static struct dt_transport *open_libssh2(uv_loop_t *loop, const struct dt_remote *remote,
                                         const struct dt_transport_events *events, void *arg)
{
    return open_with(loop, remote, events, arg, &dti_carrier_libssh2);
}

static struct dt_transport *open_ssh(uv_loop_t *loop, const struct dt_remote *remote,
                                     const struct dt_transport_events *events, void *arg)
{
    return open_with(loop, remote, events, arg, &dti_carrier_ssh);
}

static void auto_write(struct dt_transport *t, const void *bytes, size_t n)
{
    t->ops->write(t->inner, bytes, n);
}

static const char *auto_phase(const struct dt_transport *t)
{
    if (t->inner)
        return t->ops->phase(t->inner);
    return t->attempts ? "handshake" : "settings (ssh -G, or the SSH agent)";
}

static size_t auto_pending(const struct dt_transport *t)
{
    return t->inner ? t->ops->pending(t->inner) : 0;
}

static void auto_close(struct dt_transport *t)
{
    t->closing = true;
    if (t->inner)
        t->ops->close(t->inner);
    else if (t->query)
        dt_sshlogin_cancel(t->query);
    else
        uv_timer_start(&t->pause, on_pause_over, 0, 0);
}

static void auto_greeted(struct dt_transport *t)
{
    if (t->ops->greeted)
        t->ops->greeted(t->inner);
}

static const char *auto_carrier(const struct dt_transport *t)
{
    return t->ops ? t->ops->name : "auto";
}

#define OPS(label, opener)                                                                         \
    {                                                                                              \
        .name = label, .open = opener, .write = auto_write, .phase = auto_phase,                   \
        .pending = auto_pending, .close = auto_close, .greeted = auto_greeted,                     \
        .carrier = auto_carrier                                                                    \
    }

const struct dt_transport_ops dti_transport_auto = OPS("auto", open_auto);
const struct dt_transport_ops dti_transport_libssh2 = OPS("libssh2", open_libssh2);
const struct dt_transport_ops dti_transport_ssh = OPS("ssh", open_ssh);
