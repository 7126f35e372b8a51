#include "launcher/remote/ssh/sshconfig.h"

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

enum { CONNECT_TIMEOUT_S = 10 };

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

void dt_sshconfig_quote(struct dt_strbuf *out, const char *path)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%,=";
    size_t home = strncmp(path, "~/", 2) == 0 ? 2 : 0;

    dt_strbuf_add(out, path, home);
    path += home;
    if (!path[strspn(path, plain)]) {
        dt_strbuf_puts(out, path);
        return;
    }
    dt_strbuf_puts(out, "'");
    for (; *path; path++) {
        if (*path == '\'')
            dt_strbuf_puts(out, "'\\''");
        else
            dt_strbuf_add(out, path, 1);
    }
    dt_strbuf_puts(out, "'");
}

void dt_sshconfig_copy_id(const struct dt_host *host, struct dt_strbuf *out)
{
    dt_strbuf_puts(out, "ssh-copy-id ");
    if (host->identity) {
        dt_strbuf_puts(out, "-i ");
        dt_sshconfig_quote(out, host->identity);
        dt_strbuf_puts(out, " ");
    }
    if (host->port)
        dt_strbuf_printf(out, "-p %d ", host->port);
    if (host->user)
        dt_strbuf_printf(out, "%s@", host->user);
    dt_strbuf_puts(out, host->name);
}

bool dt_sshconfig_user_is_known(void)
{
    return getpwuid(getuid()) != NULL;
}

/* Like ssh, takes the home directory from the password file and not from HOME, as long as there is
 * an entry. */
static const struct passwd *me(void)
{
    static struct passwd unknown = { .pw_name = (char *)"" };
    const struct passwd *pw = getpwuid(getuid());

    unknown.pw_dir = getenv("HOME");
    if (!unknown.pw_dir)
        unknown.pw_dir = (char *)"/";
    return pw ? pw : &unknown;
}

static void set(char **field, const char *value)
{
    free(*field);
    *field = dt_xstrdup(value);
}

/* Expands "~/" and the percent tokens of a path. Returns NULL if a token is unknown, or the path
 * names a variable (${HOME}) or another user's home. */
static char *expand(const struct dt_sshconfig *c, const char *path)
{
    struct dt_strbuf b = { 0 };
    const struct passwd *pw = me();
    bool known = !strstr(path, "${");

    if (strncmp(path, "~/", 2) == 0) {
        dt_strbuf_puts(&b, pw->pw_dir);
        path++;
    } else if (*path == '~') {
        known = false;
    }
    for (; known && *path; path++) {
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
    }
    if (!known || b.len == 0) {
        dt_strbuf_free(&b);
        return NULL;
    }
    return dt_strbuf_take(&b);
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

static void need_openssh(struct dt_sshconfig *c, const char *what, const char *is)
{
    if (!c->beyond)
        c->beyond = dt_xasprintf("%s is %s", what, is);
}

/* Like expand, but if the path cannot be expanded here, the host will be reached through ssh. */
static char *expand_or_need_openssh(struct dt_sshconfig *c, const char *path)
{
    char *full = expand(c, path);

    if (!full && *path)
        need_openssh(c, path, "a path that only ssh can expand");
    return full;
}

static void add_path(struct dt_sshconfig *c, struct dt_strs *list, const char *path)
{
    char *full = expand_or_need_openssh(c, path);

    if (full)
        dt_xstrs_add(list, full);
    free(full);
}

/* ssh -G separates paths by blanks, but a path may contain blanks, too. The text after such a blank
 * hardly ever begins as a path does. */
static bool has_blanks(const char *paths)
{
    while (*paths && strchr("/~%$", *paths)) {
        paths += strcspn(paths, " ");
        paths += *paths == ' ';
    }
    return *paths != '\0';
}

static void add_paths(struct dt_sshconfig *c, struct dt_strs *list, const char *paths)
{
    if (strcmp(paths, "none") == 0)
        paths = "/dev/null";
    if (strchr(paths, ' ') && has_blanks(paths)) {
        need_openssh(c, paths, "a list of paths that only ssh can tell apart");
        return;
    }
    while (*paths) {
        size_t n = strcspn(paths, " ");
        char *path = dt_xstrndup(paths, n);

        add_path(c, list, path);
        free(path);
        paths += n + (paths[n] == ' ');
    }
}

static bool is_set(const char *value)
{
    return *value && strcmp(value, "none") != 0;
}

static void take_hostname(struct dt_sshconfig *c, const char *value)
{
    set(&c->hostname, value);
}

static void take_user(struct dt_sshconfig *c, const char *value)
{
    set(&c->user, value);
}

static void take_port(struct dt_sshconfig *c, const char *value)
{
    dt_number_parse(value, 1, 65535, &c->port, NULL);
}

static void take_alias(struct dt_sshconfig *c, const char *value)
{
    if (is_set(value))
        set(&c->hostkeyalias, value);
}

/* The value is a path, or names a variable that holds one. ssh expands the former, not the latter.
 */
static void take_agent(struct dt_sshconfig *c, const char *value)
{
    const char *socket;

    free(c->identityagent);
    c->identityagent = NULL;
    if (strcmp(value, "SSH_AUTH_SOCK") == 0 || (*value == '$' && value[1] != '{')) {
        socket = getenv(value + (*value == '$'));
        if (socket && *socket)
            c->identityagent = dt_xstrdup(socket);
    } else if (is_set(value)) {
        c->identityagent = expand_or_need_openssh(c, value);
    }
}

static void take_identities_only(struct dt_sshconfig *c, const char *value)
{
    c->identitiesonly = strcmp(value, "yes") == 0;
}

/* ssh -G prints "false" for "no" and "off". */
static void take_strictness(struct dt_sshconfig *c, const char *value)
{
    c->accept_new = strcmp(value, "accept-new") == 0 || strcmp(value, "false") == 0;
}

static void take_hashing(struct dt_sshconfig *c, const char *value)
{
    c->hashknownhosts = strcmp(value, "yes") == 0;
}

static void take_timeout(struct dt_sshconfig *c, const char *value)
{
    dt_number_parse(value, 1, INT_MAX, &c->connecttimeout, NULL);
}

/* ssh has had this setting since version 8.7, like SessionType. */
static void take_stdinnull(struct dt_sshconfig *c, const char *value)
{
    (void)value;
    c->has_stdinnull = true;
}

static void take_identity(struct dt_sshconfig *c, const char *value)
{
    add_path(c, &c->identityfile, value);
}

static void take_user_files(struct dt_sshconfig *c, const char *value)
{
    add_paths(c, &c->userknownhosts, value);
}

static void take_global_files(struct dt_sshconfig *c, const char *value)
{
    add_paths(c, &c->globalknownhosts, value);
}

/* dtrun itself sends these, with the rest of its environment, so it can ignore the SendEnv that
 * distributions set for them. */
static void take_sendenv(struct dt_sshconfig *c, const char *value)
{
    static const char *const sent[] = { "XMODIFIERS", "COLORTERM", "NO_COLOR" };

    if (strncmp(value, "LANG", 4) == 0 || strncmp(value, "LC_", 3) == 0)
        return;
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++) {
        if (strcmp(value, sent[i]) == 0)
            return;
    }
    need_openssh(c, "sendenv", "set");
}

/* The settings that the libssh2 transport implements as ssh does. Any other setting, known or
 * unknown, must have the value that it has without a configuration file. */
static const struct setting {
    const char *key;
    void (*take)(struct dt_sshconfig *c,
                 const char *value); /* NULL: the setting changes nothing here */
} settings[] = {
    { "hostname", take_hostname },
    { "user", take_user },
    { "port", take_port },
    { "hostkeyalias", take_alias },
    { "identityagent", take_agent },
    { "identitiesonly", take_identities_only },
    { "stricthostkeychecking", take_strictness },
    { "hashknownhosts", take_hashing },
    { "connecttimeout", take_timeout },
    { "identityfile", take_identity },
    { "userknownhostsfile", take_user_files },
    { "globalknownhostsfile", take_global_files },
    { "sendenv", take_sendenv },
    { "stdinnull", take_stdinnull },
    /* ssh -G has applied these */
    { "host", NULL },
    { "tag", NULL },
    { "canonicaldomains", NULL },
    { "canonicalizefallbacklocal", NULL },
    { "canonicalizehostname", NULL },
    { "canonicalizemaxdots", NULL },
    { "canonicalizepermittedcnames", NULL },
    /* the ssh transport overrides these */
    { "batchmode", NULL },
    { "clearallforwardings", NULL },
    { "controlmaster", NULL },
    { "controlpath", NULL },
    { "controlpersist", NULL },
    { "dynamicforward", NULL },
    { "exitonforwardfailure", NULL },
    { "gatewayports", NULL },
    { "localcommand", NULL },
    { "localforward", NULL },
    { "loglevel", NULL },
    { "logverbose", NULL },
    { "permitlocalcommand", NULL },
    { "permitremoteopen", NULL },
    { "remotecommand", NULL },
    { "remoteforward", NULL },
    { "requesttty", NULL },
    { "serveralivecountmax", NULL },
    { "serveraliveinterval", NULL },
    { "sessiontype", NULL },
    { "streamlocalbindmask", NULL },
    { "streamlocalbindunlink", NULL },
    /* these matter only to a person at a terminal */
    { "addkeystoagent", NULL },
    { "enableescapecommandline", NULL },
    { "escapechar", NULL },
    { "fingerprinthash", NULL },
    { "forwardx11timeout", NULL },
    { "forwardx11trusted", NULL },
    { "kbdinteractiveauthentication", NULL },
    { "kbdinteractivedevices", NULL },
    { "numberofpasswordprompts", NULL },
    { "obscurekeystroketiming", NULL },
    { "passwordauthentication", NULL },
    { "syslogfacility", NULL },
    { "updatehostkeys", NULL },
    { "visualhostkey", NULL },
    { "xauthlocation", NULL },
    /* heartbeats find a lost connection */
    { "tcpkeepalive", NULL },
    /* distributions enable Kerberos by default; to log in with nothing but Kerberos, use
     * --transport ssh */
    { "gssapiauthentication", NULL },
    { "gssapidelegatecredentials", NULL },
    { "gssapikexalgorithms", NULL },
    { "gssapikeyexchange", NULL },
    { "gssapirenewalforcesrekey", NULL },
    { "gssapitrustdns", NULL },
};

static bool has_line(const char *text, const char *line)
{
    size_t n = strlen(line);

    for (const char *at = text; (at = strstr(at, line)); at += n)
        if ((at == text || at[-1] == '\n') && (at[n] == '\n' || at[n] == '\0'))
            return true;
    return false;
}

static void take_line(struct dt_sshconfig *c, char *line, const char *defaults)
{
    size_t n = strcspn(line, " ");
    const char *value = line + n + strspn(line + n, " ");

    if (!*value)
        return;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (strncasecmp(settings[i].key, line, n) != 0 || settings[i].key[n])
            continue;
        if (settings[i].take)
            settings[i].take(c, value);
        return;
    }
    if (!is_set(value) || has_line(defaults, line))
        return;
    line[n] = '\0';
    need_openssh(c, line, "set");
}

static void set_first_defaults(struct dt_sshconfig *c, const struct dt_host *host)
{
    *c = (struct dt_sshconfig){ .port = host->port ? host->port : 22,
                                .connecttimeout = CONNECT_TIMEOUT_S };
    c->hostname = dt_xstrdup(host->name);
    c->user = dt_xstrdup(host->user ? host->user : me()->pw_name);
    take_agent(c, "SSH_AUTH_SOCK");
}

/* Sets what OpenSSH would use for settings that the text lacks. */
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
        add_paths(c, &c->userknownhosts, "~/.ssh/known_hosts ~/.ssh/known_hosts2");
    if (c->globalknownhosts.n == 0)
        add_paths(c, &c->globalknownhosts, "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2");
}

void dt_sshconfig_parse(struct dt_sshconfig *c, const struct dt_host *host, const char *text,
                        const char *defaults)
{
    set_first_defaults(c, host);
    while (*text) {
        size_t n = strcspn(text, "\n");
        char *line = dt_xstrndup(text, n);

        take_line(c, line, defaults);
        free(line);
        text += n + (text[n] == '\n');
    }
    set_last_defaults(c, host);
}

void dt_sshconfig_without_ssh(struct dt_sshconfig *c, const char *why)
{
    char *path = expand(c, "~/.ssh/config");

    c->without_ssh = why;
    c->ignored_file = path && access(path, R_OK) == 0;
    free(path);
}

void dt_sshconfig_free(struct dt_sshconfig *c)
{
    free(c->hostname);
    free(c->user);
    free(c->hostkeyalias);
    free(c->identityagent);
    free(c->beyond);
    dt_strs_free(&c->identityfile);
    dt_strs_free(&c->userknownhosts);
    dt_strs_free(&c->globalknownhosts);
    *c = (struct dt_sshconfig){ 0 };
}
