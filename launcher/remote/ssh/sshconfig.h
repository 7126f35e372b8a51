/* The user's SSH settings for one host, as `ssh -G` evaluates them. */
#ifndef DT_REMOTE_SSH_SSHCONFIG_H
#define DT_REMOTE_SSH_SSHCONFIG_H

#include <stdbool.h>

#include "launcher/base/strbuf.h"
#include "launcher/hosts/hostlist.h"
#include "runtime/wire/codec.h"

struct dt_sshconfig {
    char *hostname;
    char *user;
    int port;
    char *hostkeyalias;  /* or NULL */
    char *identityagent; /* path of the agent's socket, or NULL: none */
    bool identitiesonly;
    bool accept_new;    /* StrictHostKeyChecking is accept-new, or no, which counts as accept-new */
    int connecttimeout; /* seconds */
    bool has_stdinnull; /* ssh knows StdinNull and SessionType */
    struct dt_strs identityfile;
    struct dt_strs userknownhosts;
    struct dt_strs globalknownhosts;
    bool hashknownhosts;
    char *beyond; /* a setting that only OpenSSH can honour, as in "proxyjump is set", or NULL */
    /* Why ssh does not run, so that these are defaults and not the user's settings; or NULL. */
    const char *without_ssh;
    bool ignored_file; /* the user has a configuration file, which was not read for that reason */
};

/* Whether the password file has an entry for this user. A container's user may lack one, and ssh
 * does not run without it. */
bool dt_sshconfig_user_is_known(void);

/* Adds "-l user -p port -i identity", as far as the host entry has them, and "-- name". */
void dt_sshconfig_add_host_args(struct dt_strs *argv, const struct dt_host *host);

/* Writes a path as a word for a shell, which expands "~/". */
void dt_sshconfig_quote(struct dt_strbuf *out, const char *path);

/* Writes the command that puts the user's key there: "ssh-copy-id -p 2222 anna@host3". */
void dt_sshconfig_copy_id(const struct dt_host *host, struct dt_strbuf *out);

/* Checks that an identity file named by the user exists (exit code 2): ssh would continue without
 * it. A path that only OpenSSH can expand (~anna/, %h) is not checked. */
int dt_sshconfig_check_identity(const char *path, struct dt_error *err);

/* Fills c from text, which ssh -G printed for the host; settings that text lacks keep their
 * defaults. The user is "" if neither names one. defaults is what ssh -G prints without a
 * configuration file. Pure except for c's defaults, which come from SSH_AUTH_SOCK and the password
 * file. */
void dt_sshconfig_parse(struct dt_sshconfig *c, const struct dt_host *host, const char *text,
                        const char *defaults);
/* Notes that ssh does not run, for this reason. */
void dt_sshconfig_without_ssh(struct dt_sshconfig *c, const char *why);
void dt_sshconfig_free(struct dt_sshconfig *c);

#endif
