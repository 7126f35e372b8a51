/* What --check found, for scripts. */
#ifndef DT_CHECK_JSON_H
#define DT_CHECK_JSON_H

#include "launcher/check/host.h"
#include "launcher/check/remarks.h"

/* The text, to be freed by the caller. np: how many ranks the job would have. */
char *dt_check_json(const struct dt_check_host *hosts, size_t n, const struct dt_remarks *remarks,
                    int np);

#endif
