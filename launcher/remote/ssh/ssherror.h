/* What ssh printed on standard error when it gave up, as "phase: reason; remedy". Pure. */
#ifndef DT_REMOTE_SSH_SSHERROR_H
#define DT_REMOTE_SSH_SSHERROR_H

#include "launcher/base/error.h"

/* host: as the user wrote it, for remedies. */
void dt_ssherror_explain(struct dt_error *why, const char *text, const char *host);

/* A name that has no address, whoever looked it up; reason is n bytes long. */
void dt_ssherror_unresolved(struct dt_error *why, const char *reason, int n);

/* What to do about a host that hangs up before anybody has logged in. */
#define DT_SSHERROR_CLOSED                                                                         \
    "look at its sshd's log; where many log in at once: --fanout, MaxStartups"

#endif
