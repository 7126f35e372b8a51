/* Turns what ssh printed on standard error when it gave up into "phase: reason; remedy". Pure, but
 * for dt_ssherror_unresolved. */
#ifndef DT_REMOTE_SSH_SSHERROR_H
#define DT_REMOTE_SSH_SSHERROR_H

#include <stdbool.h>

#include "launcher/base/error.h"

struct dt_ssherror_host { /* for remedies */
    const char *name;     /* as the user wrote it */
    const char *known_as; /* in known_hosts: "host3", "[host3]:2222" */
    const char *keyscan;  /* the command that adds its key there */
    const char *copy_id;  /* the command that puts the user's key on it */
};

void dt_ssherror_explain(struct dt_error *why, const char *text,
                         const struct dt_ssherror_host *host);

/* Whether the server closed the connection before it said who it is. */
bool dt_ssherror_turned_away(const char *text);

/* For a name that has no address, whichever resolver looked it up. reason is n bytes long. It looks
 * for a file of that name, which the user may have meant. */
void dt_ssherror_unresolved(struct dt_error *why, const char *name, const char *reason, int n);

/* The remedy for a host that closes the connection before anybody has logged in. */
#define DT_SSHERROR_CLOSED                                                                         \
    "look at its sshd's log; if many logins begin at once, see --fanout and MaxStartups"

#endif
