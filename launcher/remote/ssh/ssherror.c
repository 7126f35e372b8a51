#include "launcher/remote/ssh/ssherror.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

struct span {
    const char *p;
    int n;
};

static struct span line_at(const char *p)
{
    int n = (int)strcspn(p, "\r\n");

    while (n && p[n - 1] == '.')
        n--;
    return (struct span){ p, n };
}

static struct span last_line(const char *text)
{
    size_t end = strlen(text);
    size_t begin;

    while (end && isspace((unsigned char)text[end - 1]))
        end--;
    for (begin = end; begin && text[begin - 1] != '\n'; begin--)
        ;
    return (struct span){ text + begin, (int)(end - begin) };
}

void dt_ssherror_unresolved(struct dt_error *why, const char *name, const char *reason, int n)
{
    struct stat st;

    if (stat(name, &st) == 0 && S_ISREG(st.st_mode))
        dt_error_set(why, "resolve: %.*s; %s is a file here: --hostfile names a file with hosts", n,
                     reason, name);
    else
        dt_error_set(why,
                     "resolve: %.*s; check the name, or give its address as HostName in "
                     "~/.ssh/config",
                     n, reason);
}

/* What a proxy prints comes first and concerns another host or a command:
 * "ssh: connect to host jump port 22: Connection refused"
 * "kex_exchange_identification: Connection closed by remote host" */
static bool explain_proxy(struct dt_error *why, const char *text, const char *host)
{
    const char *closed = strstr(text, "kex_exchange_identification: ");
    struct span first = line_at(text);

    if (!closed || closed == text)
        return false;
    dt_error_set(why,
                 "handshake: ssh: %.*s; does its ProxyJump or ProxyCommand work? try: ssh %s true",
                 first.n, first.p, host);
    return true;
}

/* "ssh: Could not resolve hostname nowhere: Name or service not known" */
static bool explain_resolve(struct dt_error *why, const char *text, const char *host)
{
    const char *at = strstr(text, "Could not resolve hostname ");
    const char *reason = at ? strstr(at, ": ") : NULL;
    struct span line;

    if (!reason)
        return false;
    line = line_at(reason + 2);
    dt_ssherror_unresolved(why, host, line.p, line.n);
    return true;
}

/* "ssh: connect to host host3 port 22: Connection refused" */
static bool explain_connect(struct dt_error *why, const char *text)
{
    const char *at = strstr(text, "connect to host ");
    const char *port = at ? strstr(at, " port ") : NULL;
    struct span line;

    if (!port)
        return false;
    line = line_at(port + 1);
    dt_error_set(why, "connect: %.*s; is the host up, and sshd running there?", line.n, line.p);
    return true;
}

bool dt_ssherror_turned_away(const char *text)
{
    static const char *const lines[] = {
        "kex_exchange_identification: Connection closed by remote host",
        "kex_exchange_identification: read: Connection reset by peer",
    };

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (strncmp(text, lines[i], strlen(lines[i])) == 0)
            return true;
    }
    return false;
}

/* "kex_exchange_identification: Connection closed by remote host". ssh does not say whether an SSH
 * server did that. */
static bool explain_handshake(struct dt_error *why, const char *text, const char *host)
{
    static const char *const marks[] = { "kex_exchange_identification: ", "banner exchange",
                                         "Connection closed by ", "Connection reset by " };
    struct span line = last_line(text);

    if (strstr(text, "Unable to negotiate with ")) {
        dt_error_set(why, "handshake: ssh: %.*s; try: ssh %s true", line.n, line.p, host);
        return true;
    }
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (!strstr(text, marks[i]))
            continue;
        dt_error_set(why, "handshake: ssh: %.*s; " DT_SSHERROR_CLOSED "%s", line.n, line.p,
                     dt_ssherror_turned_away(text)
                         ? "; if no SSH server listens there, see --ssh-port"
                         : "");
        return true;
    }
    return false;
}

static bool explain_hostkey(struct dt_error *why, const char *text,
                            const struct dt_ssherror_host *host)
{
    const char *print = strstr(text, "SHA256:");
    const char *none = strstr(text, "host key is known for ");
    struct span fingerprint = line_at(print ? print : "");
    struct span line = last_line(text);

    if (strstr(text, "IDENTIFICATION HAS CHANGED"))
        dt_error_set(why,
                     "host key: it HAS CHANGED (now %.*s); someone may be listening in, or the "
                     "host was reinstalled; only if you know why: ssh-keygen -R '%s'",
                     fingerprint.n, fingerprint.p, host->known_as);
    else if (strstr(text, "REVOKED HOST KEY") || strstr(text, "is marked as revoked"))
        dt_error_set(why, "host key: it is marked as revoked; do not trust this host");
    else if (none)
        dt_error_set(why,
                     "host key: none is known; compare it with the host's own, then: %s   (or: "
                     "--ssh-accept-new)",
                     host->keyscan);
    else if (strstr(text, "Host key verification failed"))
        dt_error_set(why, "host key: %.*s", line.n, line.p);
    else
        return false;
    return true;
}

/* "Load key "/keys/id_rsa": bad permissions". libssh2 ignores permissions. */
static bool explain_open_key(struct dt_error *why, const char *text)
{
    const char *end = strstr(text, "\": bad permissions");
    const char *path = end;

    while (path && path > text && path[-1] != '"')
        path--;
    if (!path || path == text)
        return false;
    dt_error_set(why,
                 "authenticate: ssh ignores the key %.*s, because others may read it; chmod 600 "
                 "it, or try --transport libssh2",
                 (int)(end - path), path);
    return true;
}

/* "anna@host3: Permission denied (publickey,password)." */
static bool explain_auth(struct dt_error *why, const char *text, const char *copy_id)
{
    const char *denied = strstr(text, ": Permission denied (");
    const char *begin = denied;
    const char *at;
    int user;

    if (!denied && !strstr(text, "Too many authentication failures"))
        return false;
    if (explain_open_key(why, text))
        return true;
    if (!denied) {
        dt_error_set(why,
                     "authenticate: the host disconnected after too many keys; name the right one "
                     "with identity= in the hostfile, or IdentitiesOnly in ~/.ssh/config");
        return true;
    }
    while (begin > text && !isspace((unsigned char)begin[-1]))
        begin--;
    at = memchr(begin, '@', (size_t)(denied - begin));
    user = (int)((at ? at : denied) - begin);
    denied += strlen(": Permission denied (");
    if (*denied == ')')
        denied = "nothing)";
    dt_error_set(why,
                 "authenticate as %.*s: ssh has no key that is accepted (the host accepts: %.*s); "
                 "try: %s",
                 user, begin, (int)strcspn(denied, ")\n"), denied, copy_id);
    return true;
}

void dt_ssherror_explain(struct dt_error *why, const char *text,
                         const struct dt_ssherror_host *host)
{
    const char *name = host->name;
    struct span line = last_line(text);

    if (explain_proxy(why, text, name) || explain_hostkey(why, text, host) ||
        explain_auth(why, text, host->copy_id) || explain_resolve(why, text, name) ||
        explain_connect(why, text) || explain_handshake(why, text, name))
        return;
    dt_error_set(why, "ssh: %.*s; try: ssh %s true", line.n, line.p, name);
}
