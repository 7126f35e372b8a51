/* The user's SSH settings for one host, as `ssh -G` evaluates them. */
#ifndef DT_REMOTE_SSHCONFIG_H
#define DT_REMOTE_SSHCONFIG_H

#include <stdbool.h>
#include <uv.h>

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
    /* The first setting that only OpenSSH can honour, as "ProxyJump", or NULL. */
    const char *beyond;
    bool has_ssh; /* ssh is installed: all this is the user's, not the default */
};

/* Adds "-l user -p port -i identity" as far as the host entry gives them, and "-- name". */
void dt_sshconfig_add_host_args(struct dt_strs *argv, const struct dt_host *host);

/* An identity file that the user named must be there (exit code 2): ssh would go on without it.
 * What only OpenSSH can expand (~anna/, %h) is taken on trust. */
int dt_sshconfig_check_identity(const char *path, struct dt_error *err);

/* Fills c from what ssh -G printed; what is missing there keeps its default. Pure but for the
 * defaults, which come from the environment (HOME, SSH_AUTH_SOCK) and the password file. */
void dt_sshconfig_parse(struct dt_sshconfig *c, const struct dt_host *host, const char *text);
void dt_sshconfig_free(struct dt_sshconfig *c);

/* Runs ssh -G, for a while at most. done is called once, from the loop; config is then the callee's
 * to free, empty of meaning after a cancel. err->text is not empty when ssh refused (a mistake in
 * the configuration file), or did not answer. */
struct dt_sshconfig_query;
typedef void (*dt_sshconfig_f)(void *arg, struct dt_sshconfig *config, const struct dt_error *err);
struct dt_sshconfig_query *dt_sshconfig_ask(uv_loop_t *loop, const struct dt_host *host,
                                            dt_sshconfig_f done, void *arg);
void dt_sshconfig_cancel(struct dt_sshconfig_query *q); /* done comes soon */

#endif
