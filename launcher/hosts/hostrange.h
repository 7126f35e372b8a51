/* Ranges in host names: node[01-03,7] stands for node01 node02 node03 node7. Pure. */
#ifndef DT_HOSTS_HOSTRANGE_H
#define DT_HOSTS_HOSTRANGE_H

#include "launcher/base/error.h"
#include "runtime/wire/codec.h"

/* Adds every name that pattern stands for to names, in order; a pattern may have several ranges, of
 * which the last counts fastest. A number is as wide as the first of its range. Fails (exit code 2)
 * on a malformed range and beyond DT_HOSTS_MAX names; names then holds some of them. */
int dt_hostrange_expand(struct dt_strs *names, const char *pattern, struct dt_error *err);

#endif
