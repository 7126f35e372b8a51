/* Memory files of a fixed size: whoever maps one cannot be hurt by another who has its descriptor,
 * for nobody can make it shorter (SIGBUS) or longer any more. They have no name anywhere, and the
 * size of /dev/shm does not limit them. */
#ifndef DT_WIRE_SEALED_H
#define DT_WIRE_SEALED_H

#include <stdbool.h>
#include <stddef.h>

/* Returns a descriptor, which the caller closes, or -1 with errno. name: for /proc/PID/maps. */
int dt_sealed_create(const char *name, size_t bytes);
/* Whether it is such a file, of this size. False: errno tells why (EPROTO: it is not). */
bool dt_sealed_check(int fd, size_t bytes);

#endif
