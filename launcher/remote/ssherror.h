/* What ssh printed on standard error when it gave up, as "phase: reason; remedy". Pure. */
#ifndef DT_REMOTE_SSHERROR_H
#define DT_REMOTE_SSHERROR_H

#include "launcher/base/error.h"

/* host: as the user wrote it, for remedies. */
void dt_ssherror_explain(struct dt_error *why, const char *text, const char *host);

#endif
