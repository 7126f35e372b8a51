/* One host as users write it, in -H and in a hostfile: [user@]host[:slots]. host may hold ranges,
 * as in node[01-16,20], or be an IPv6 address in brackets. Pure. */
#ifndef DT_HOSTS_HOSTWORD_H
#define DT_HOSTS_HOSTWORD_H

#include "launcher/base/error.h"
#include "runtime/wire/codec.h"

struct dt_hostword {
    char *user;           /* or NULL */
    struct dt_strs names; /* all names that the ranges stand for, in order; IPv6 without brackets */
    int slots;            /* -1: not given */
};

/* Fills w. On failure (exit code 2) w holds nothing, and err says what is wrong, beginning with
 * word. */
int dt_hostword_parse(struct dt_hostword *w, const char *word, struct dt_error *err);
void dt_hostword_free(struct dt_hostword *w);

/* Returns 0 if text can be a user's name and contains nothing that ssh or a shell would interpret.
 */
int dt_hostword_check_user(const char *text, struct dt_error *err);

#endif
