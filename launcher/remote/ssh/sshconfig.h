/* The user's SSH settings for one host, as `ssh -G` evaluates them. */
#ifndef DT_REMOTE_SSH_SSHCONFIG_H
#define DT_REMOTE_SSH_SSHCONFIG_H

#include <stdbool.h>

#include "launcher/hosts/hostlist.h"
#include "runtime/wire/codec.h"

struct dt_sshconfig {
    char *hostname;
    char *user;
    int port;
    char *hostkeyalias;  /* or NULL */
    char *identityagent; /* path of the agent's socket, or NULL: none */
    bool identitiesonly;
    bool accept_new;    /* StrictHostKeyChecking accept-new; less strict is not possible here */
    int connecttimeout; /* seconds */
    struct dt_strs identityfile;
    struct dt_strs userknownhosts;
    struct dt_strs globalknownhosts;
    bool hashknownhosts;
    char *beyond; /* what only OpenSSH can honour, as "proxyjump is set", or NULL */
    bool has_ssh; /* ssh is installed: all this is the user's, not the default */
};

/* Adds "-l user -p port -i identity" as far as the host entry gives them, and "-- name". */
void dt_sshconfig_add_host_args(struct dt_strs *argv, const struct dt_host *host);

/* An identity file that the user named must be there (exit code 2): ssh would go on without it.
 * What only OpenSSH can expand (~anna/, %h) is taken on trust. */
int dt_sshconfig_check_identity(const char *path, struct dt_error *err);

/* Fills c from text, which ssh -G printed for the host; what is missing there keeps its default.
 * defaults: what ssh -G prints without a configuration file. Pure but for c's defaults, which come
 * from SSH_AUTH_SOCK and the password file. */
void dt_sshconfig_parse(struct dt_sshconfig *c, const struct dt_host *host, const char *text,
                        const char *defaults);
void dt_sshconfig_free(struct dt_sshconfig *c);

#endif
