/* The findings of --check as JSON, for scripts. */
#ifndef DT_CHECK_JSON_H
#define DT_CHECK_JSON_H

#include <cjson/cJSON.h>

#include "launcher/check/host.h"
#include "launcher/check/remarks.h"

/* np is the number of ranks that the job would have. */
cJSON *dt_check_json(const struct dt_check_host *hosts, size_t n, const struct dt_remarks *remarks,
                     int np);

#endif
