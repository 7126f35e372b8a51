/* The LIST of -H: [user@]host[:slots],... Blanks around items are allowed. Pure. */
#ifndef DT_HOSTS_HOSTARG_H
#define DT_HOSTS_HOSTARG_H

#include "launcher/hosts/hostlist.h"

/* Adds the hosts of text to list. If the list already has a host, adds to its slots. Fails with
 * exit code 2. */
int dt_hostarg_parse(struct dt_hostlist *list, const char *text, struct dt_error *err);

/* The same for a list from another source: err does not begin with "-H: ". */
int dt_hostarg_list(struct dt_hostlist *list, const char *text, struct dt_error *err);

#endif
