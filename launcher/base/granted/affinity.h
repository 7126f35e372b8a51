/* The CPUs on which the kernel lets this process run. */
#ifndef DT_BASE_GRANTED_AFFINITY_H
#define DT_BASE_GRANTED_AFFINITY_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the mask, of *size bytes, for as many CPUs as the kernel knows. The caller frees it with
 * CPU_FREE. Returns NULL if it cannot be read. */
cpu_set_t *dt_affinity_read(size_t *size);
/* Returns the number of CPUs in the mask, which never contains offline CPUs, or 1 if it is unknown.
 */
uint32_t dt_affinity_count(void);

#endif
