/* --dry-run: shows what would run where, without a connection to any host. */
#ifndef DT_CMD_DRYRUN_H
#define DT_CMD_DRYRUN_H

#include "cmd/options.h"
#include "launcher/hosts/hostlist.h"
#include "launcher/place/plan.h"

/* Prints the plan to standard output: a table, or JSON with --json. What only the host knows is "?"
 * in the table and null in JSON. Returns 0, or -1 if the output cannot be written. */
int dt_dryrun_print(const struct dt_hostlist *hosts, const struct dt_plan *plan,
                    const struct dt_options *options, struct dt_error *err);
/* --display-map: the same table on standard error, before the job starts. */
void dt_dryrun_print_map(const struct dt_hostlist *hosts, const struct dt_plan *plan,
                         const struct dt_options *options);

#endif
