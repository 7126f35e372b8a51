/* How a host looks in the table of --check. Pure. */
#ifndef DT_CHECK_CELLS_H
#define DT_CHECK_CELLS_H

#include "launcher/base/strbuf.h"
#include "launcher/check/host.h"
#include "launcher/check/remarks.h"

/* Appends the table: a line for each host, "-" for an unknown value, "!" after a cell that a remark
 * or the host's problem is about. width is as in dt_table_print. */
void dt_check_print(struct dt_strbuf *out, const struct dt_check_host *hosts, size_t n,
                    const struct dt_remarks *remarks, size_t width);

#endif
