/* Which names and addresses mean this machine. Asks the kernel and /etc/hosts, but no name server.
 */
#ifndef DT_HOSTS_LOCALHOST_H
#define DT_HOSTS_LOCALHOST_H

#include <stdbool.h>

#include "runtime/wire/codec.h"

struct dt_localhost {
    struct dt_strs names; /* names, and addresses in numeric form */
};

/* hosts_path: /etc/hosts, or NULL for none. */
void dt_localhost_init(struct dt_localhost *l, const char *hosts_path);
void dt_localhost_free(struct dt_localhost *l);

/* A dt_is_local_f; arg is a struct dt_localhost. */
bool dt_localhost_is(const char *name, void *arg);

#endif
