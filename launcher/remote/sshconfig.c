#include "launcher/remote/sshconfig.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/base/number.h"
#include "launcher/base/strbuf.h"
#include "launcher/remote/child.h"

enum {
    ASK_MS = 20 * 1000, /* machines that start many jobs are busy */
    GRACE_MS = 100,
    CONNECT_TIMEOUT_S = 10,
    TEXT_MAX = 256 * 1024,
};

void dt_sshconfig_add_host_args(struct dt_strs *argv, const struct dt_host *host)
{
    char port[16];

    if (host->user) {
        dt_xstrs_add(argv, "-l");
        dt_xstrs_add(argv, host->user);
    }
    if (host->port) {
        snprintf(port, sizeof port, "%d", host->port);
        dt_xstrs_add(argv, "-p");
        dt_xstrs_add(argv, port);
    }
    if (host->identity) {
        dt_xstrs_add(argv, "-i");
        dt_xstrs_add(argv, host->identity);
    }
    dt_xstrs_add(argv, "--");
    dt_xstrs_add(argv, host->name);
}

/* ssh takes the home directory from the password file, not from HOME; so do we. */
static const struct passwd *me(void)
{
    static struct passwd nobody = { .pw_name = (char *)"root", .pw_dir = (char *)"/root" };
    const struct passwd *pw = getpwuid(getuid());

    return pw ? pw : &nobody;
}

static void set(char **field, const char *value)
{
    free(*field);
    *field = dt_xstrdup(value);
}

/* Expands "~/" and the percent tokens that a path of an identity may hold; NULL: one that is not
 * known here. */
static char *expand(const struct dt_sshconfig *c, const char *path)
{
    struct dt_strbuf b = { 0 };
    const struct passwd *pw = me();
    bool known = true;

    if (strncmp(path, "~/", 2) == 0) {
        dt_strbuf_puts(&b, pw->pw_dir);
        path++;
    } else if (*path == '~') { /* another user's home */
        return NULL;
    }
    for (; *path; path++) {
        if (*path != '%') {
            dt_strbuf_add(&b, path, 1);
            continue;
        }
        switch (*++path) {
        case '%':
            dt_strbuf_puts(&b, "%");
            break;
        case 'd':
            dt_strbuf_puts(&b, pw->pw_dir);
            break;
        case 'h':
            dt_strbuf_puts(&b, c->hostname);
            break;
        case 'r':
            dt_strbuf_puts(&b, c->user);
            break;
        case 'u':
            dt_strbuf_puts(&b, pw->pw_name);
            break;
        default:
            known = false;
            break;
        }
        if (*path == '\0')
            break;
    }
    if (!known || b.len == 0) {
        dt_strbuf_free(&b);
        return NULL;
    }
    return b.data;
}

int dt_sshconfig_check_identity(const char *path, struct dt_error *err)
{
    static const struct dt_sshconfig none = { 0 };
    char *full = strchr(path, '%') ? NULL : expand(&none, path);
    int rc = 0;

    if (full && access(full, R_OK) < 0)
        rc = dt_error_usage(err, "the identity file %s: %s", path, strerror(errno));
    free(full);
    return rc;
}

static void add_path(struct dt_sshconfig *c, struct dt_strs *list, const char *path)
{
    char *full = expand(c, path);

    if (full)
        dt_xstrs_add(list, full);
    else if (*path)
        c->beyond = "a token in IdentityFile";
    free(full);
}

static void add_words(struct dt_sshconfig *c, struct dt_strs *list, const char *words)
{
    while (*words) {
        size_t n = strcspn(words, " ");
        char *word = dt_xstrndup(words, n);

        if (n)
            add_path(c, list, word);
        free(word);
        words += n + (words[n] == ' ');
    }
}

static bool is_set(const char *value)
{
    return *value && strcmp(value, "none") != 0;
}

/* Settings that only OpenSSH can honour, wherever they have a value. */
static const char *const beyond[] = {
    "ProxyJump",         "ProxyCommand",    "PKCS11Provider", "CertificateFile",
    "KnownHostsCommand", "RevokedHostKeys", "BindAddress",    "BindInterface",
};

static void set_agent(struct dt_sshconfig *c, const char *value)
{
    const char *socket = value;

    if (strcmp(value, "SSH_AUTH_SOCK") == 0)
        socket = getenv("SSH_AUTH_SOCK");
    else if (*value == '$')
        socket = getenv(value + 1);
    free(c->identityagent);
    c->identityagent = socket && is_set(socket) ? expand(c, socket) : NULL;
}

static void take_setting(struct dt_sshconfig *c, const char *key, const char *value)
{
    if (*value == '\0')
        return;
    if (strcmp(key, "hostname") == 0)
        set(&c->hostname, value);
    else if (strcmp(key, "user") == 0)
        set(&c->user, value);
    else if (strcmp(key, "port") == 0)
        dt_number_parse(value, 1, 65535, &c->port, NULL);
    else if (strcmp(key, "hostkeyalias") == 0 && is_set(value))
        set(&c->hostkeyalias, value);
    else if (strcmp(key, "identityagent") == 0)
        set_agent(c, value);
    else if (strcmp(key, "identitiesonly") == 0)
        c->identitiesonly = strcmp(value, "yes") == 0;
    else if (strcmp(key, "stricthostkeychecking") == 0)
        c->accept_new = strcmp(value, "accept-new") == 0;
    else if (strcmp(key, "connecttimeout") == 0)
        dt_number_parse(value, 1, INT_MAX, &c->connecttimeout, NULL);
    else if (strcmp(key, "identityfile") == 0)
        add_path(c, &c->identityfile, value);
    else if (strcmp(key, "userknownhostsfile") == 0)
        add_words(c, &c->userknownhosts, value);
    else if (strcmp(key, "globalknownhostsfile") == 0)
        add_words(c, &c->globalknownhosts, value);
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++)
        if (strcasecmp(key, beyond[i]) == 0 && is_set(value) && !c->beyond)
            c->beyond = beyond[i];
}

static void set_first_defaults(struct dt_sshconfig *c, const struct dt_host *host)
{
    *c = (struct dt_sshconfig){ .port = host->port ? host->port : 22,
                                .connecttimeout = CONNECT_TIMEOUT_S };
    c->hostname = dt_xstrdup(host->name);
    c->user = dt_xstrdup(host->user ? host->user : me()->pw_name);
    set_agent(c, "SSH_AUTH_SOCK");
}

/* Where the text gave none: what OpenSSH would use. */
static void set_last_defaults(struct dt_sshconfig *c, const struct dt_host *host)
{
    static const char *const keys[] = { "~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519" };

    if (c->identityfile.n == 0) {
        if (host->identity)
            add_path(c, &c->identityfile, host->identity);
        for (size_t i = 0; i < sizeof keys / sizeof *keys && !host->identity; i++)
            add_path(c, &c->identityfile, keys[i]);
    }
    if (c->userknownhosts.n == 0)
        add_words(c, &c->userknownhosts, "~/.ssh/known_hosts ~/.ssh/known_hosts2");
    if (c->globalknownhosts.n == 0)
        add_words(c, &c->globalknownhosts, "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2");
}

void dt_sshconfig_parse(struct dt_sshconfig *c, const struct dt_host *host, const char *text)
{
    set_first_defaults(c, host);
    while (*text) {
        size_t n = strcspn(text, "\n");
        char *line = dt_xstrndup(text, n);
        char *blank = strchr(line, ' ');

        if (blank) {
            *blank = '\0';
            take_setting(c, line, blank + 1);
        }
        free(line);
        text += n + (text[n] == '\n');
    }
    set_last_defaults(c, host);
}

void dt_sshconfig_free(struct dt_sshconfig *c)
{
    free(c->hostname);
    free(c->user);
    free(c->hostkeyalias);
    free(c->identityagent);
    dt_strs_free(&c->identityfile);
    dt_strs_free(&c->userknownhosts);
    dt_strs_free(&c->globalknownhosts);
    *c = (struct dt_sshconfig){ 0 };
}

struct dt_sshconfig_query {
    const struct dt_host *host;
    dt_sshconfig_f done;
    void *arg;
    struct dt_child *child;
    uv_timer_t timer;
    bool expired;
    struct dt_strbuf out;
    struct dt_strbuf err;
    struct dt_child_end end;
};

static void ignore(void *arg)
{
    (void)arg;
}

static void data(void *arg, const void *bytes, size_t n)
{
    struct dt_sshconfig_query *q = arg;

    if (q->out.len < TEXT_MAX)
        dt_strbuf_add(&q->out, bytes, n);
}

static void noise(void *arg, const void *bytes, size_t n)
{
    struct dt_sshconfig_query *q = arg;

    if (q->err.len < TEXT_MAX)
        dt_strbuf_add(&q->err, bytes, n);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct dt_sshconfig_query *q = handle->data;
    struct dt_sshconfig config;
    struct dt_error err = { 0 };
    bool usable = q->end.spawn_error == 0 && q->end.code == 0 && !q->end.closed;
    const char *said = dt_strbuf_text(&q->err);

    if (q->expired)
        dt_error_set(&err, "ssh -G %s gave no answer for %d s; look at ~/.ssh/config",
                     q->host->name, ASK_MS / 1000);
    else if (q->end.spawn_error == 0 && q->end.code != 0 && !q->end.closed)
        dt_error_set(&err, "ssh -G %s failed: %.*s", q->host->name, (int)strcspn(said, "\r\n"),
                     said);
    else if (usable && q->out.len == 0)
        dt_error_set(&err, "ssh -G %s printed nothing; which ssh comes first in PATH?",
                     q->host->name);
    dt_sshconfig_parse(&config, q->host, usable ? dt_strbuf_text(&q->out) : "");
    config.has_ssh = q->end.spawn_error == 0;
    q->done(q->arg, &config, &err);
    dt_strbuf_free(&q->out);
    dt_strbuf_free(&q->err);
    free(q);
}

static void ended(void *arg, const struct dt_child_end *end)
{
    struct dt_sshconfig_query *q = arg;

    q->end = *end;
    uv_close((uv_handle_t *)&q->timer, on_timer_closed);
}

static void on_expired(uv_timer_t *timer)
{
    struct dt_sshconfig_query *q = timer->data;

    q->expired = true;
    dt_child_close(q->child);
}

struct dt_sshconfig_query *dt_sshconfig_ask(uv_loop_t *loop, const struct dt_host *host,
                                            dt_sshconfig_f done, void *arg)
{
    static const struct dt_child_events events = { ignore, data, noise, ignore, ended };
    struct dt_sshconfig_query *q = dt_xcalloc(1, sizeof *q);
    struct dt_strs argv = { 0 };

    q->host = host;
    q->done = done;
    q->arg = arg;
    uv_timer_init(loop, &q->timer);
    q->timer.data = q;
    uv_timer_start(&q->timer, on_expired, ASK_MS, 0);
    dt_xstrs_add(&argv, "ssh");
    dt_xstrs_add(&argv, "-G");
    dt_sshconfig_add_host_args(&argv, host);
    q->child = dt_child_open(loop, (const char *const *)argv.v, NULL, GRACE_MS, &events, q);
    dt_strs_free(&argv);
    return q;
}

void dt_sshconfig_cancel(struct dt_sshconfig_query *q)
{
    dt_child_close(q->child);
}
