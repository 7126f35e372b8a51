/* The text of a hostfile, as dtrun-hostfile(5) describes it. Pure. */
#ifndef DT_HOSTS_HOSTFILE_H
#define DT_HOSTS_HOSTFILE_H

#include "launcher/hosts/hostlist.h"

/* Adds the hosts of text (n bytes) to list, which is empty. name is the file's name for messages.
 * On a mistake, err is "NAME:LINE: what is wrong", with exit code 2. */
int dt_hostfile_parse(struct dt_hostlist *list, const char *name, const char *text, size_t n,
                      struct dt_error *err);

#endif
