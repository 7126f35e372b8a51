/* Ranges in host names: node[01-03,7] stands for node01 node02 node03 node7. Pure. */
#ifndef DT_HOSTS_HOSTRANGE_H
#define DT_HOSTS_HOSTRANGE_H

#include "launcher/base/error.h"
#include "runtime/wire/codec.h"

enum { DT_HOST_NAME_MAX = 255 };

/* Adds every name that text stands for to names, in order. With several ranges the last one changes
 * fastest. Numbers have the width of the first number of their range. Fails (exit code 2), and adds
 * nothing, if a range is malformed, if text stands for more than DT_HOSTS_MAX names, or if one of
 * them would be longer than DT_HOST_NAME_MAX bytes. */
int dt_hostrange_expand(struct dt_strs *names, const char *text, struct dt_error *err);

#endif
