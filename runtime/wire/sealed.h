/* Memory files of a fixed size. A process that maps one is safe from others with the descriptor: no
 * process can shrink it (SIGBUS) or grow it. They have no name, and the size of /dev/shm does not
 * limit them. */
#ifndef DT_WIRE_SEALED_H
#define DT_WIRE_SEALED_H

#include <stdbool.h>
#include <stddef.h>

/* Returns a descriptor, which the caller closes, or -1 with errno. name appears in
 * /proc/PID/maps. */
int dt_sealed_create(const char *name, size_t bytes);
/* Whether fd is such a file of this size. False: see errno (EPROTO: it is not). */
bool dt_sealed_check(int fd, size_t bytes);

#endif
